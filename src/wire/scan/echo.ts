/** The service's own words, echoed back by an agent: response blocks (S1.15, C17) and messages in their frame (C4). */
import { isBlank, isSpace, NEWLINE } from '../ascii.ts'
import { prefixBefore } from './lines.ts'

export interface Echo {
  kind: 'response' | 'message'
  /** The text that ends the block. */
  terminator: string
}

const RESPONSE = '[ORCHESTRATOR RESPONSE]'
const MESSAGE = '[ORCHUB MESSAGE '
const ID_LIMIT = 128
const LINE_LIMIT = 1024

/**
 * The block that begins with the bracket at `at`. A marker counts at the beginning of its line, behind quote marks and
 * the like too, or at the end of one; in the middle it is a mention.
 */
export function openingEcho(bytes: Buffer, at: number, isFinal: boolean): Echo | undefined | 'unsettled' {
  const seen = bytes.toString('latin1', at, at + MESSAGE.length + ID_LIMIT)
  if (seen.startsWith(RESPONSE)) {
    const echo: Echo = { kind: 'response', terminator: '[END ORCHESTRATOR RESPONSE]' }
    return startsLine(bytes, at) ? echo : ifLineEnds(bytes, at + RESPONSE.length, isFinal, echo)
  }
  if (seen.startsWith(MESSAGE)) {
    let end = MESSAGE.length
    while (end < seen.length && seen[end] !== ']' && !isSpace(seen.charCodeAt(end))) end++
    const isCut = end === seen.length
    if (isCut) return isFinal || end === MESSAGE.length + ID_LIMIT ? undefined : 'unsettled'
    const id = seen.slice(MESSAGE.length, end)
    const echo: Echo = { kind: 'message', terminator: `[END ORCHUB MESSAGE ${id}]` }
    if (startsLine(bytes, at)) return echo
    return seen[end] === ']' ? ifLineEnds(bytes, at + end + 1, isFinal, echo) : undefined
  }
  const isCut = RESPONSE.startsWith(seen) || MESSAGE.startsWith(seen)
  return isCut && !isFinal ? 'unsettled' : undefined
}

function startsLine(bytes: Buffer, at: number): boolean {
  return prefixBefore(bytes, at) !== undefined
}

function ifLineEnds(bytes: Buffer, at: number, isFinal: boolean, echo: Echo): Echo | undefined | 'unsettled' {
  const limit = at + LINE_LIMIT
  let i = at
  while (i < bytes.length && i < limit && isBlank(bytes[i]!)) i++
  if (i === bytes.length && i < limit) return isFinal ? echo : 'unsettled'
  return bytes[i] === NEWLINE ? echo : undefined
}
