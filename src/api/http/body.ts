import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../../base/errors.ts'

interface BodyLimits {
  bytes: number
  /** For a body that does not begin with `[`. */
  unlessArray?: number
}

/**
 * Reads a body and stops at the limit: what is over it is never held in memory, whatever Content-Length claims.
 * Gives the text; a body that is no UTF-8 would be changed by reading it, so it is refused.
 */
export async function readText(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limits: BodyLimits,
): Promise<string> {
  const { headers } = incoming
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new AppError('INVALID_REQUEST', `A body in the encoding "${encoding.slice(0, 40)}" is not taken`, {
      hint: 'Send it uncompressed: a small compressed body can hide a huge one.',
    })
  }
  if (Number(headers['content-length'] ?? 0) > limits.bytes) throw tooLarge(limits.bytes)
  // Asked before it sends: a body that was refused above is never sent at all.
  if (headers.expect !== undefined) outgoing.writeContinue()
  const bytes = await readBytes(incoming, limits)
  if (!isUtf8(bytes)) {
    throw new AppError('INVALID_REQUEST', 'The body is not valid UTF-8', { hint: 'Encode it as UTF-8.' })
  }
  return bytes.toString('utf8', startsWithMark(bytes) ? 3 : 0)
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
    // Comes after every end, a broken connection's too.
    incoming.on('close', () => {
      if (!incoming.readableEnded) reject(cutOff())
    })
  })
}

const SPACE = 0x20
const ARRAY = 0x5b
const OBJECT = 0x7b

/** Undefined while only white space has come. */
function limitFor(chunk: Buffer, { bytes, unlessArray }: BodyLimits): number | undefined {
  if (unlessArray === undefined) return bytes
  const isText = (byte: number) => byte > SPACE && !MARK.includes(byte)
  // The first byte is the one, but for those who indent.
  const first = chunk[0]! === OBJECT ? OBJECT : chunk.find(isText)
  return first === undefined ? undefined : first === ARRAY ? bytes : unlessArray
}

/** Without its parameters. */
export function mediaTypeOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const end = header.indexOf(';')
  return (end < 0 ? header : header.slice(0, end)).trim().toLowerCase()
}

/** Some programs put it before UTF-8 text; it is no part of the text. */
const MARK = Buffer.from([0xef, 0xbb, 0xbf])

function startsWithMark(bytes: Buffer): boolean {
  return bytes.length >= 3 && bytes[0] === MARK[0] && bytes[1] === MARK[1] && bytes[2] === MARK[2]
}

function tooLarge(limit: number): AppError {
  return new AppError('TOO_LARGE', `The body is over ${limit / 1024} KiB`, {
    hint: 'Send fewer commands at once. Large content belongs into a file whose path is sent.',
  })
}

function cutOff(): AppError {
  return new AppError('INVALID_REQUEST', 'The body ended before it was whole')
}
