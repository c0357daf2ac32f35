import { MAX_COMMANDS } from '../../api/contract.ts'
import { sendJson, sendReceipt } from '../../api/http/answer.ts'
import { mediaTypeOf, readText } from '../../api/http/body.ts'
import { type Call, type Desk, SENT, type Sent } from '../../api/http/call.ts'
import type { Caller } from '../../api/http/gate.ts'
import { parseJson } from '../../api/http/json.ts'
import { AppError, asAppError } from '../../base/errors.ts'
import { heardCommands, problemReceipt } from '../../delivery/listener.ts'
import type { SaidCommand } from '../../protocol/command.ts'
import { errorReceipt, type Receipt } from '../../protocol/receipt.ts'
import { scanText } from '../../protocol/scanner.ts'
import type { CommandOrigin } from '../commands.ts'

const MIB = 1024 * 1024
export const LIMITS = {
  json: { bytes: 16 * MIB, unlessArray: MIB },
  text: { bytes: MIB },
}

/** The way of a command through HTTP to the one door. Everything here is paid for by every command: keep it small. */
export async function takeCommands(desk: Desk, call: Call<'command'>): Promise<Sent> {
  const { incoming, outgoing, caller } = call
  const key = idempotencyKey(incoming.headers['idempotency-key'])
  const kind = mediaType(incoming.headers['content-type'])
  const text = await readText(incoming, outgoing, LIMITS[kind])
  if (kind === 'text') {
    const found = scanText(text, heardCommands(desk.engine.registry))
    if (found.length > MAX_COMMANDS) throw tooMany('text', found.length)
    const receipts = found.map((one, index) => {
      // Quoted commands are told of as well: whoever sent the text wants to see why nothing came of them.
      if (!one.ok) return problemReceipt(one)
      const { type, fields, ignored } = one
      return act(desk, caller, { type, fields, ignored }, at(key, index))
    })
    sendAll(outgoing, await Promise.all(receipts))
    return SENT
  }
  const body = parseJson(text)
  if (Array.isArray(body)) {
    if (body.length > MAX_COMMANDS) throw tooMany('array', body.length)
    // Handed over without waiting for each other, they are committed in this order and share a sync to disk.
    const receipts = body.map((one, index) => {
      const said = toCommand(one)
      return said instanceof AppError ? errorReceipt(said) : act(desk, caller, said, at(key, index))
    })
    sendAll(outgoing, await Promise.all(receipts))
    return SENT
  }
  const said = toCommand(body)
  if (said instanceof AppError) throw said
  sendReceipt(
    outgoing,
    await act(desk, caller, said, key === undefined ? undefined : { idempotencyKey: key }),
  )
  return SENT
}

async function act(
  { engine }: Desk,
  caller: Caller,
  said: SaidCommand,
  circumstances: CommandOrigin | undefined,
): Promise<Receipt> {
  try {
    return await engine.handle(caller.principal, said, circumstances)
  } catch (thrown) {
    engine.log.error({ err: thrown, command: said.type.slice(0, 100) }, 'a command failed')
    return errorReceipt(asAppError(thrown))
  }
}

/** `{type, …fields}`. A field may be called anything, `__proto__` too: the door takes only those it knows. */
function toCommand(body: unknown): SaidCommand | AppError {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return invalid('A command is a JSON object')
  }
  // The JSON notation in full (S1.18) says the same.
  if ('orc_command' in body) return toCommand(body.orc_command)
  const { type, ...fields } = body as Record<string, unknown>
  if (typeof type !== 'string') return invalid('A command needs a "type", which is a text')
  return { type, fields }
}

function invalid(message: string): AppError {
  return new AppError('INVALID_COMMAND', message, {
    hint: 'For example {"type": "send_message", "to": "Worker", "content": "…"}. GET /api/v1/commands lists all types.',
  })
}

function sendAll(outgoing: Call['outgoing'], receipts: readonly Receipt[]) {
  sendJson(outgoing, 200, JSON.stringify(receipts))
}

function at(key: string | undefined, index: number): CommandOrigin | undefined {
  return key === undefined ? undefined : { idempotencyKey: `${key} ${index}` }
}

const KEY = /^[!-~]{1,200}$/

export function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && KEY.test(header)) return header
  throw new AppError('INVALID_REQUEST', 'The Idempotency-Key is not 1 to 200 visible ASCII characters', {
    hint: 'Use a UUID, for example.',
  })
}

function mediaType(header: string | undefined): 'json' | 'text' {
  // The common case first, without taking the header apart.
  if (header === 'application/json') return 'json'
  const type = mediaTypeOf(header)
  if (type === 'application/json') return 'json'
  if (type === 'text/plain') return 'text'
  throw new AppError(
    'INVALID_REQUEST',
    header === undefined
      ? 'The request has no Content-Type'
      : `The content type "${header.slice(0, 80)}" is not taken`,
    { hint: 'Send application/json (a command or an array of them) or text/plain (text to be scanned).' },
  )
}

function tooMany(what: string, count: number): AppError {
  return new AppError('TOO_LARGE', `The ${what} holds ${count} commands; ${MAX_COMMANDS} are the most`, {
    hint: 'Send them in several requests.',
  })
}
