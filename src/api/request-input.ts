/** Reads and checks the input of requests: bodies, idempotency keys, times. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseSince, SINCE_FORMS } from '../audit/since.ts'
import { AppError } from '../base/errors.ts'

interface BodyLimits {
  bytes: number
  /** The limit for a body that does not begin with `[`. */
  unlessArray?: number
}

/**
 * Reads a body as text and stops at the limit, whatever Content-Length claims: excess bytes never stay in memory.
 * Refuses bodies that are not valid UTF-8, because decoding would change them.
 */
export async function readText(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limits: BodyLimits,
): Promise<string> {
  const { headers } = incoming
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new AppError(
      'INVALID_REQUEST',
      `The content encoding "${encoding.slice(0, 40)}" is not supported`,
      {
        hint: 'Send the body uncompressed: a small compressed body can hide a huge one.',
      },
    )
  }
  if (Number(headers['content-length'] ?? 0) > limits.bytes) throw tooLarge(limits.bytes)
  // The client waits for this before it sends; a body refused above is never sent at all.
  if (headers.expect !== undefined) outgoing.writeContinue()
  const bytes = await readBytes(incoming, limits)
  if (!isUtf8(bytes)) {
    throw new AppError('INVALID_REQUEST', 'The body is not valid UTF-8', { hint: 'Encode it as UTF-8.' })
  }
  return bytes.toString('utf8', bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0)
}

function readBytes(incoming: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let length = 0
    let limit: number | undefined
    const stop = (error: AppError) => {
      chunks = []
      incoming.removeAllListeners('data')
      incoming.pause()
      reject(error)
    }
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length
      limit ??= limitFor(chunk, limits)
      if (length > (limit ?? limits.bytes)) stop(tooLarge(limit ?? limits.bytes))
      else chunks.push(chunk)
    })
    incoming.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length)))
    // Fires after every end, including a broken connection.
    incoming.on('close', () => {
      if (!incoming.readableEnded) reject(cutOff())
    })
  })
}

const SPACE_BYTE = 0x20
const ARRAY = 0x5b

/** Undefined while only white space has arrived. */
function limitFor(chunk: Buffer, { bytes, unlessArray }: BodyLimits): number | undefined {
  if (unlessArray === undefined) return bytes
  const isText = (byte: number) => byte > SPACE_BYTE && !BYTE_ORDER_MARK.includes(byte)
  const first = chunk.find(isText)
  return first === undefined ? undefined : first === ARRAY ? bytes : unlessArray
}

/** The media type of a Content-Type header without its parameters. */
export function mediaTypeOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const end = header.indexOf(';')
  return (end < 0 ? header : header.slice(0, end)).trim().toLowerCase()
}

/** The UTF-8 byte order mark that some programs write before the text. */
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

function tooLarge(limit: number): AppError {
  return new AppError('TOO_LARGE', `The body is over ${limit / 1024} KiB`, {
    hint: 'Send fewer commands at once. Put large content into a file and send its path.',
  })
}

function cutOff(): AppError {
  return new AppError('INVALID_REQUEST', 'The connection closed before the whole body arrived')
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const { message } = error as SyntaxError
    throw new AppError('INVALID_REQUEST', `The body is not valid JSON: ${message}`, {
      hint:
        text.trim() === ''
          ? 'The body is empty. Send {"type": …} or an array of such commands.'
          : 'Encode the body with a JSON library.',
      cause: error,
    })
  }
}

const MIB = 1024 * 1024

/** For the routes that take commands: POST /api/v1/commands and POST /mcp. */
export const COMMAND_BODY_LIMITS = {
  json: { bytes: 16 * MIB, unlessArray: MIB },
  text: { bytes: MIB },
}

const KEY = /^[!-~]{1,200}$/

export function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && KEY.test(header)) return header
  throw new AppError('INVALID_REQUEST', 'The Idempotency-Key must be 1 to 200 visible ASCII characters', {
    hint: 'Use a UUID, for example.',
  })
}

/** Parses a time, or a duration back from now, into epoch milliseconds. */
export function parseTime(text: string, now: number): number {
  const date = parseSince(text, new Date(now))
  if (date !== undefined) return date.getTime()
  throw new AppError('INVALID_REQUEST', `"${text.slice(0, 100)}" is not a valid time`, {
    hint: `Use ${SINCE_FORMS}.`,
  })
}
