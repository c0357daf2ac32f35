import { Webhooks } from '@octokit/webhooks'

/** Whether whoever sent these bytes knows the secret. `body` is what came, before anything looked into it. */
export async function isSigned(
  secret: string,
  body: string,
  signature: string | undefined,
): Promise<boolean> {
  if (signature === undefined || !/^sha256=[0-9a-f]{64}$/.test(signature) || body === '') return false
  return await new Webhooks({ secret }).verify(body, signature)
}
