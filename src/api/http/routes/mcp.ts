import { idempotencyKey, LIMITS } from '../../../commands/routes/commands.ts'
import { SECURITY_HEADERS, send } from '../answer.ts'
import { readText } from '../body.ts'
import { type RouteHandler, SENT } from '../call.ts'
import { parseJson } from '../json.ts'

/**
 * MCP over HTTP. The gate has settled who calls; the protocol itself is answered by `service/mcp`. Nobody's token and
 * none of the other headers get further than this.
 */
export const answerMcp: RouteHandler<'mcp'> = async ({ mcp }, { incoming, outgoing, caller }) => {
  const key = idempotencyKey(incoming.headers['idempotency-key'])
  const body = parseJson(await readText(incoming, outgoing, LIMITS.json))
  const response = await mcp({
    principal: caller.principal,
    request: new Request('http://localhost/mcp', {
      method: 'POST',
      headers: protocolHeaders(incoming.headers),
    }),
    body,
    onTaken: (effect) => void outgoing.once('finish', effect),
    ...(key === undefined ? {} : { idempotencyKey: key }),
  })
  const text = await response.text()
  if (text === '') outgoing.writeHead(response.status, SECURITY_HEADERS).end()
  else send(outgoing, response.status, response.headers.get('content-type') ?? 'application/json', text)
  return SENT
}

/** What the protocol says in headers. Whatever the client accepts, it gets JSON, the only form of most answers. */
function protocolHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const kept = new Headers({ accept: 'application/json, text/event-stream' })
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string') continue
    if (name === 'content-type' || name.startsWith('mcp-')) kept.set(name, value)
  }
  return kept
}
