/** The service's own words, echoed back by an agent: response blocks (S1.15, C17) and messages in their frame (C4). */
import { isBlank, isSpace, NEWLINE, RIGHT_BRACKET } from '../ascii.ts'
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
    return ifAlone(bytes, at, at + RESPONSE.length, isFinal, {
      kind: 'response',
      terminator: '[END ORCHESTRATOR RESPONSE]',
    })
  }
  if (seen.startsWith(MESSAGE)) {
    let end = MESSAGE.length
    while (end < seen.length && !isSpace(seen.charCodeAt(end)) && seen[end] !== ']') end++
    if (end === seen.length) return isFinal || seen.length >= MESSAGE.length + ID_LIMIT ? undefined : 'unsettled'
    const bracket = bytes.indexOf(RIGHT_BRACKET, at + end)
    const after = bracket < 0 ? at + end : bracket + 1
    return ifAlone(bytes, at, after, isFinal, {
      kind: 'message',
      terminator: `[END ORCHUB MESSAGE ${seen.slice(MESSAGE.length, end)}]`,
    })
  }
  const isCut = RESPONSE.startsWith(seen) || MESSAGE.startsWith(seen)
  return isCut && !isFinal ? 'unsettled' : undefined
}

function ifAlone(bytes: Buffer, at: number, after: number, isFinal: boolean, echo: Echo) {
  if (prefixBefore(bytes, at) !== undefined) return echo
  const limit = Math.min(bytes.length, after + LINE_LIMIT)
  let i = after
  while (i < limit && isBlank(bytes[i]!)) i++
  if (i === bytes.length) return isFinal ? echo : 'unsettled'
  return bytes[i] === NEWLINE ? echo : undefined
}
