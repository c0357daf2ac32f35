/** GitHub as Apps see it: JWTs, installation tokens that expire, and webhook deliveries. */
import { generateKeyPairSync, randomUUID, verify } from 'node:crypto'
import { description } from './description.ts'
import { type Result, refusal } from './routes.ts'

export const APP = { id: 12345, slug: 'orchub-app', installation: 77 }
/** This repository has an installation of its own; all others share one. */
export const OTHER_OWNER = 'elsewhere'
const TOKEN_MS = 3600_000
/** GitHub rejects JWTs that are valid for longer. */
const LONGEST_PROOF_S = 600

interface FakeDelivery {
  readonly id: number
  readonly guid: string
  readonly at: number
  readonly event: string
  readonly body: string
  readonly redelivery: boolean
  status: string
  code: number
}

export type FakeApp = ReturnType<typeof createApp>

/** `post`: posts a body to the webhook and returns its answer; undefined if there is none. */
export function createApp(post: (event: string, guid: string, body: string) => Promise<number | undefined>) {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  })
  const tokens = new Map<string, number>()
  const deliveries: FakeDelivery[] = []
  let installation = APP.installation
  let made = 0

  /** Returns the problem of the JWT, or undefined. */
  function problemOfProof(jwt: string): string | undefined {
    const [head, claims, signature] = jwt.split('.')
    if (signature === undefined) return 'A JSON web token could not be decoded'
    const parse = (part: string) =>
      JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
    if (parse(head!).alg !== 'RS256') return "'alg' must be RS256"
    if (!verify('sha256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature, 'base64url')))
      return 'A JSON web token could not be decoded'
    const { iss, iat, exp } = parse(claims!) as { iss: unknown; iat: number; exp: number }
    const now = Date.now() / 1000
    if (Number(iss) !== APP.id) return 'Integration not found'
    if (exp <= now || exp > now + LONGEST_PROOF_S || iat > now + 60)
      return "'exp' is too far in the future or past"
    return undefined
  }

  async function deliver(event: string, body: string, guid: string = randomUUID(), redelivery = false) {
    const delivery = { id: 900 + ++made, guid, at: Date.now(), event, body, redelivery, status: '', code: 0 }
    // GitHub records a delivery when it knows the outcome.
    const code = await post(event, guid, body)
    delivery.code = code ?? 0
    delivery.status =
      code === undefined ? 'failed to connect to host' : code < 300 ? 'OK' : `Invalid HTTP Response: ${code}`
    deliveries.push(delivery)
    return delivery
  }

  function show({ id, guid, at, event, redelivery, status, code }: FakeDelivery) {
    const [shown] = description().example('get', '/app/hook/deliveries', 200) as object[]
    const delivered_at = new Date(at).toISOString()
    return { ...shown, id, guid, delivered_at, event, redelivery, status, status_code: code }
  }

  const example = (method: string, template: string, status: number) =>
    description().example(method, template, status) as object

  return {
    privateKey,
    deliveries,
    deliver,
    tokens,
    /** Reinstalls the App: its tokens expire, and the installation gets another id. */
    reinstall() {
      tokens.clear()
      installation += 1
    },
    /** The caller of a request: undefined for an anonymous one, or the refusal. */
    identify(scheme: string, secret: string, path: string): 'app' | 'installation' | Result | undefined {
      const isForApp = path.startsWith('/app') || path.endsWith('/installation')
      if (secret.split('.').length === 3) {
        const problem = problemOfProof(secret)
        if (problem !== undefined || scheme.toLowerCase() !== 'bearer')
          return refusal(401, problem ?? 'Bad credentials')
        return isForApp ? 'app' : refusal(403, 'Resource not accessible by integration')
      }
      const endsAt = tokens.get(secret)
      if (endsAt === undefined) return undefined
      if (endsAt <= Date.now()) return refusal(401, 'Bad credentials')
      return isForApp ? refusal(401, 'A JSON web token could not be decoded') : 'installation'
    },
    route(method: string, path: string, query: URLSearchParams): Result | undefined {
      if (method === 'GET' && path === '/app')
        return { status: 200, data: { ...example('get', '/app', 200), id: APP.id, slug: APP.slug } }
      const [, owner] = /^\/repos\/([^/]+)\/[^/]+\/installation$/.exec(path) ?? []
      if (method === 'GET' && owner !== undefined) {
        const id = owner === OTHER_OWNER ? installation + 1000 : installation
        const shown = example('get', '/repos/{owner}/{repo}/installation', 200)
        return { status: 200, data: { ...shown, id, app_id: APP.id, app_slug: APP.slug } }
      }
      const [, wanted] = /^\/app\/installations\/(\d+)\/access_tokens$/.exec(path) ?? []
      if (method === 'POST' && wanted !== undefined) {
        if (![installation, installation + 1000].includes(Number(wanted))) return refusal(404, 'Not Found')
        const token = `ghs_${randomUUID().replaceAll('-', '')}`
        const endsAt = Date.now() + TOKEN_MS
        tokens.set(token, endsAt)
        const shown = example('post', '/app/installations/{installation_id}/access_tokens', 201)
        return { status: 201, data: { ...shown, token, expires_at: new Date(endsAt).toISOString() } }
      }
      if (method === 'GET' && path === '/app/hook/deliveries') return list(query)
      const [, again] = /^\/app\/hook\/deliveries\/(\d+)\/attempts$/.exec(path) ?? []
      if (method !== 'POST' || again === undefined) return undefined
      const delivery = deliveries.find(({ id }) => id === Number(again))
      if (delivery === undefined) return refusal(404, 'Not Found')
      void deliver(delivery.event, delivery.body, delivery.guid, true)
      return { status: 202, data: {} }
    },
  }

  /** Newest first, with an opaque cursor. */
  function list(query: URLSearchParams): Result {
    const size = Number(query.get('per_page') ?? 30)
    const from = Number(/^v1_(\d+)$/.exec(query.get('cursor') ?? 'v1_0')?.[1] ?? Number.NaN)
    if (Number.isNaN(from)) return refusal(400, 'Invalid cursor')
    const wanted = query.get('status')
    // The filter compares status codes, as described. An undeliverable webhook has none and matches neither value.
    const isWanted = ({ code }: FakeDelivery) =>
      wanted === null || (wanted === 'success' ? code >= 200 && code < 400 : code >= 400 && code < 600)
    const fitting = deliveries.filter(isWanted).toReversed()
    const next = new URLSearchParams(query)
    next.set('cursor', `v1_${from + size}`)
    const link = `<https://api.github.example/app/hook/deliveries?${next}>; rel="next"`
    return {
      status: 200,
      data: fitting.slice(from, from + size).map(show),
      ...(from + size < fitting.length ? { headers: { link } } : {}),
    }
  }
}
