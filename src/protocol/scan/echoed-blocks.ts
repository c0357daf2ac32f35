/** Orchub's own text, repeated by an agent: response blocks (S1.15, C17) and messages in their frame (C4). */
import { isBlank, isSpace, NEWLINE, RIGHT_BRACKET } from '../ascii.ts'
import { commonLength } from './command-starts.ts'
import { prefixBefore } from './markdown-blocks.ts'

interface EchoedBlock {
  kind: 'response' | 'message'
  /** The text that ends the block. */
  terminator: Buffer
}

const RESPONSE = Buffer.from('[ORCHESTRATOR RESPONSE]')
const RESPONSE_END = Buffer.from('[END ORCHESTRATOR RESPONSE]')
const MESSAGE = Buffer.from('[ORCHUB MESSAGE ')
const ID_LIMIT = 128
const LINE_LIMIT = 1024

/**
 * The block that begins with the bracket at `at`. A marker counts at the beginning of its line, also behind quote marks
 * and list markers, and at the end of a line. In the middle of a line it is only a mention.
 */
export function openingEcho(
  bytes: Buffer,
  at: number,
  isFinal: boolean,
): EchoedBlock | undefined | 'unsettled' {
  const response = commonLength(bytes, at, RESPONSE)
  if (response === RESPONSE.length) return openingResponse(bytes, at, isFinal)
  const message = commonLength(bytes, at, MESSAGE)
  if (message === MESSAGE.length) return openingMessage(bytes, at, isFinal)
  const isCut = at + Math.max(response, message) === bytes.length
  return isCut && !isFinal ? 'unsettled' : undefined
}

function openingResponse(bytes: Buffer, at: number, isFinal: boolean): EchoedBlock | undefined | 'unsettled' {
  const stands = prefixBefore(bytes, at) !== undefined || endsLine(bytes, at + RESPONSE.length, isFinal)
  if (stands === 'unsettled') return stands
  return stands ? { kind: 'response', terminator: RESPONSE_END } : undefined
}

function openingMessage(bytes: Buffer, at: number, isFinal: boolean): EchoedBlock | undefined | 'unsettled' {
  const id = at + MESSAGE.length
  let end = id
  while (end < bytes.length && end - id < ID_LIMIT && bytes[end] !== RIGHT_BRACKET && !isSpace(bytes[end]!))
    end++
  if (end === bytes.length) return isFinal ? undefined : 'unsettled'
  if (end === id || end - id === ID_LIMIT) return undefined
  const stands =
    prefixBefore(bytes, at) !== undefined ||
    (bytes[end] === RIGHT_BRACKET && endsLine(bytes, end + 1, isFinal))
  if (stands === 'unsettled') return stands
  if (!stands) return undefined
  const terminator = Buffer.from(`[END ORCHUB MESSAGE ${bytes.toString('latin1', id, end)}]`, 'latin1')
  return { kind: 'message', terminator }
}

function endsLine(bytes: Buffer, at: number, isFinal: boolean): boolean | 'unsettled' {
  const limit = at + LINE_LIMIT
  let i = at
  while (i < bytes.length && i < limit && isBlank(bytes[i]!)) i++
  if (i === bytes.length && i < limit) return isFinal || 'unsettled'
  return bytes[i] === NEWLINE
}
