import { AppError, asAppError } from '../base/errors.ts'
import { failure, type Result } from '../base/result.ts'
import type { CommandOrigin } from '../commands/commands.ts'
import { heardCommands, problemReceipt } from '../delivery/listener.ts'
import type { RawCommand } from '../protocol/command.ts'
import { fieldsSchema } from '../protocol/field-schema.ts'
import { errorReceipt, type Receipt } from '../protocol/receipt.ts'
import { scanText } from '../protocol/scanner.ts'
import { MAX_COMMANDS } from './contract.ts'
import { type AlreadySent, type ApiCall, type ApiContext, type RouteHandler, SENT } from './handle-request.ts'
import { sendJson, sendReceipt } from './http-response.ts'
import { COMMAND_BODY_LIMITS, idempotencyKey, mediaTypeOf, parseJson, readText } from './request-input.ts'

/** Passes commands from HTTP to `handle`. Runs for every command, so keep it small. */
export async function receiveCommands(context: ApiContext, call: ApiCall<'command'>): Promise<AlreadySent> {
  const { incoming, outgoing, caller } = call
  const key = idempotencyKey(incoming.headers['idempotency-key'])
  const kind = mediaType(incoming.headers['content-type'])
  const text = await readText(incoming, outgoing, COMMAND_BODY_LIMITS[kind])
  if (kind === 'text') {
    const found = scanText(text, heardCommands(context.engine.registry))
    if (found.length > MAX_COMMANDS) throw tooMany('text', found.length)
    const receipts = found.map((one, index) => {
      // Report quoted commands too, so that the sender sees why they had no effect.
      if (!one.ok) return problemReceipt(one)
      const { type, fields, ignored } = one
      return act(context, caller, { type, fields, ignored }, at(key, index))
    })
    sendAll(outgoing, await Promise.all(receipts))
    return SENT
  }
  const body = parseJson(text)
  if (Array.isArray(body)) {
    if (body.length > MAX_COMMANDS) throw tooMany('array', body.length)
    // Handled concurrently, they are committed in this order and share a sync to disk.
    const receipts = body.map((one, index) => {
      const command = toCommand(one)
      return command.ok ? act(context, caller, command.value, at(key, index)) : errorReceipt(command.error)
    })
    sendAll(outgoing, await Promise.all(receipts))
    return SENT
  }
  const command = toCommand(body)
  if (!command.ok) throw command.error
  sendReceipt(
    outgoing,
    await act(context, caller, command.value, key === undefined ? undefined : { idempotencyKey: key }),
  )
  return SENT
}

async function act(
  { engine }: ApiContext,
  caller: ApiCall['caller'],
  command: RawCommand,
  origin: CommandOrigin | undefined,
): Promise<Receipt> {
  try {
    return await engine.handle(caller.principal, command, origin)
  } catch (thrown) {
    engine.log.error({ err: thrown, command: command.type.slice(0, 100) }, 'a command failed')
    return errorReceipt(asAppError(thrown))
  }
}

/** The handler of a route that is the HTTP form of a command: its details are the response. */
export const sendCommand =
  (type: string) =>
  async ({ engine }: ApiContext, { incoming, caller, params, body }: ApiCall): Promise<unknown> => {
    const key = idempotencyKey(incoming.headers['idempotency-key'])
    const fields = { ...(body as Record<string, unknown> | undefined), ...params }
    const receipt = await engine.handle(
      caller.principal,
      { type, fields },
      key === undefined ? {} : { idempotencyKey: key },
    )
    if (receipt.status === 'ok') return receipt.details
    if (receipt.status !== 'error') throw new Error(`the receipt of ${type} is "${receipt.status}"`)
    const { code, message, hint, retry_after_ms: retryAfterMs } = receipt
    throw new AppError(code, message, {
      ...(hint === undefined ? {} : { hint }),
      ...(retryAfterMs === undefined ? {} : { data: { retryAfterMs } }),
    })
  }

/** Splits `{type, …fields}`. Field names may be anything, even `__proto__`: `handle` reads only the ones it knows. */
function toCommand(body: unknown): Result<RawCommand> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return failure(invalid('A command must be a JSON object'))
  }
  // Also accept the full JSON notation (S1.18).
  if ('orc_command' in body) return toCommand(body.orc_command)
  const { type, ...fields } = body as Record<string, unknown>
  if (typeof type !== 'string') return failure(invalid('A command needs a "type", which must be a string'))
  return { ok: true, value: { type, fields } }
}

function invalid(message: string): AppError {
  return new AppError('INVALID_COMMAND', message, {
    hint: 'For example {"type": "send_message", "to": "Worker", "content": "…"}. GET /api/v1/commands lists all types.',
  })
}

function sendAll(outgoing: ApiCall['outgoing'], receipts: readonly Receipt[]) {
  sendJson(outgoing, 200, JSON.stringify(receipts))
}

function at(key: string | undefined, index: number): CommandOrigin | undefined {
  return key === undefined ? undefined : { idempotencyKey: `${key} ${index}` }
}

function mediaType(header: string | undefined): 'json' | 'text' {
  const type = mediaTypeOf(header)
  if (type === 'application/json') return 'json'
  if (type === 'text/plain') return 'text'
  throw new AppError(
    'INVALID_REQUEST',
    header === undefined
      ? 'The request has no Content-Type'
      : `The content type "${header.slice(0, 80)}" is not supported`,
    {
      hint: 'Send application/json (a command or an array of commands) or text/plain (text to scan for commands).',
    },
  )
}

function tooMany(what: string, count: number): AppError {
  return new AppError('TOO_LARGE', `The ${what} contains ${count} commands; the limit is ${MAX_COMMANDS}`, {
    hint: 'Send them in several requests.',
  })
}

export const listCommandTypes: RouteHandler<'commandTypes'> = ({ engine }) => ({
  commands: engine.registry.all().map((definition) => ({
    type: definition.type,
    summary: definition.summary,
    example: definition.example,
    ...(definition.body === undefined ? {} : { body: definition.body }),
    schema: fieldsSchema(definition),
  })),
})
