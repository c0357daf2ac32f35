import { Webhooks } from '@octokit/webhooks'

/** Making one costs more than the proof itself. */
let made: { secret: string; webhooks: Webhooks } | undefined

/** Whether whoever sent these bytes knows the secret. `body` is what came, before anything looked into it. */
export async function isSigned(
  secret: string,
  body: string,
  signature: string | undefined,
): Promise<boolean> {
  if (signature === undefined || !/^sha256=[0-9a-f]{64}$/.test(signature) || body === '') return false
  if (made?.secret !== secret) made = { secret, webhooks: new Webhooks({ secret }) }
  return await made.webhooks.verify(body, signature)
}
