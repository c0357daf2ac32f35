import { Webhooks } from '@octokit/webhooks'

/** Cached, because creating the verifier takes longer than verifying. */
let verifier: { secret: string; webhooks: Webhooks } | undefined

/** Whether the sender of the unparsed body knows the secret. */
export async function isSigned(
  secret: string,
  body: string,
  signature: string | undefined,
): Promise<boolean> {
  if (signature === undefined || !/^sha256=[0-9a-f]{64}$/.test(signature) || body === '') return false
  if (verifier?.secret !== secret) verifier = { secret, webhooks: new Webhooks({ secret }) }
  return await verifier.webhooks.verify(body, signature)
}
