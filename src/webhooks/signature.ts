import { createHmac } from 'node:crypto'

/** As Standard Webhooks has it: secrets of other shapes are taken as they are. */
const PREFIX = 'whsec_'
const KEY_BYTES = { least: 16, most: 64 }

/** The key that a secret from the environment stands for; a text says what is wrong with it. */
export function signingKey(secret: string): Buffer | string {
  const isEncoded = secret.startsWith(PREFIX)
  const encoded = secret.slice(PREFIX.length)
  if (isEncoded && !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return 'the secret after whsec_ is not base64'
  const key = isEncoded ? Buffer.from(encoded, 'base64') : Buffer.from(secret, 'utf8')
  if (key.length < KEY_BYTES.least) return `the secret is shorter than ${KEY_BYTES.least} bytes`
  if (isEncoded && key.length > KEY_BYTES.most) return `the secret is longer than ${KEY_BYTES.most} bytes`
  return key
}

/** Over the id, the time of this attempt and the very bytes of the body. */
export function sign(key: Buffer, id: string, seconds: number, body: string): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`
}
