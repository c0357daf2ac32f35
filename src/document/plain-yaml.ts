import {
  boolCoreTag,
  CHOMPING_KEEP,
  COLLECTION_STYLE_BLOCK,
  EVENT_DOCUMENT,
  EVENT_MAPPING,
  EVENT_POP,
  EVENT_SCALAR,
  EVENT_SEQUENCE,
  type Event,
  floatCoreTag,
  getScalarValue,
  intCoreTag,
  NOT_RESOLVED,
  nullCoreTag,
  parseEvents,
  SCALAR_STYLE_PLAIN,
  type ScalarEvent,
} from 'js-yaml'
import { DEEPEST } from './plain.ts'

/** Thrown out of the reading, and caught at its door: it is no mistake, only more than is read here. */
const UNUSUAL = Symbol('unusual')

/** What else than text a word without quotes can be begins with one of these. */
const MAY_MEAN_MORE = /^(?:[-+.~\d]|[TtFfNn]|$)/

/**
 * Readers do not agree about tabs, byte order marks, carriage returns alone, characters beyond all, folded lines after a backslash, marks between
 * documents, and an indentation that is given as a number.
 */
const UNUSUAL_TEXT = /[\t\ufeff]|\r(?!\n)|\\U|\\\r?\n *\r?\n|^ *(?:---|\.\.\.|%)|[|>][-+]?\d/m

/** Beyond that a key must be announced, which not all readers insist on. */
const LONGEST_KEY = 1000

/**
 * The value of YAML as nearly everybody writes it: maps, lists and scalars, nothing twice. Undefined is no verdict: there are anchors or
 * tags, there is a mistake, or it is only odd, and the reader that knows places and words for all that has to look (decision 0023).
 */
export function readPlainYaml(text: string, maxNodes: number): { readonly value: unknown } | undefined {
  if (UNUSUAL_TEXT.test(text)) return undefined
  try {
    const events = parseEvents(text, { maxDepth: DEEPEST })
    return events.length > 0 && events.length <= maxNodes ? { value: build(events, text) } : undefined
  } catch {
    return undefined
  }
}

function build(events: readonly Event[], text: string): unknown {
  let at = 0

  function next(): Event {
    return events[at++]!
  }

  function value(event: Event): unknown {
    if (event.type === EVENT_SCALAR) return scalar(event, text)
    if (event.type !== EVENT_SEQUENCE && event.type !== EVENT_MAPPING) throw UNUSUAL
    if (event.anchorStart >= 0 || event.tagStart >= 0) throw UNUSUAL
    return event.type === EVENT_SEQUENCE ? list() : map(event.style === COLLECTION_STYLE_BLOCK)
  }

  function list(): unknown[] {
    const items: unknown[] = []
    for (let event = next(); event.type !== EVENT_POP; event = next()) items.push(value(event))
    return items
  }

  function map(isBlock: boolean): Record<string, unknown> {
    const result: Record<string, unknown> = {}
    let isFirst = true
    for (let event = next(); event.type !== EVENT_POP; event = next(), isFirst = false) {
      if (event.type !== EVENT_SCALAR) throw UNUSUAL
      // After `- []` this parser takes what follows in the same line for a key of the map around.
      if (isBlock && !isFirst && !beginsLine(event, text)) throw UNUSUAL
      if (!text.slice(event.valueEnd, event.valueStart + LONGEST_KEY).includes(':')) throw UNUSUAL
      const key = wordOf(event, text)
      if (key === '' || key === '__proto__' || Object.hasOwn(result, key)) throw UNUSUAL
      result[key] = value(next())
    }
    return result
  }

  const document = next()
  if (document.type !== EVENT_DOCUMENT || document.directives.length > 0) throw UNUSUAL
  const whole = next()
  if (whole.type === EVENT_SCALAR) throw UNUSUAL
  const result = value(whole)
  next()
  if (at !== events.length) throw UNUSUAL
  return result
}

function beginsLine({ valueStart, style }: ScalarEvent, text: string): boolean {
  const start = style === SCALAR_STYLE_PLAIN ? valueStart : valueStart - 1
  return text.slice(text.lastIndexOf('\n', start - 1) + 1, start).trimStart() === ''
}

function wordOf(event: ScalarEvent, text: string): string {
  if (event.anchorStart >= 0 || event.tagStart >= 0 || event.chomping === CHOMPING_KEEP) throw UNUSUAL
  return getScalarValue(text, event)
}

function scalar(event: ScalarEvent, text: string): unknown {
  const word = wordOf(event, text)
  if (event.style !== SCALAR_STYLE_PLAIN || !MAY_MEAN_MORE.test(word)) return word
  for (const { resolve, tagName } of [nullCoreTag, boolCoreTag, intCoreTag, floatCoreTag]) {
    const meant = resolve(word, false, tagName)
    if (meant !== NOT_RESOLVED) return meant
  }
  // Infinite for one reader, and text for another.
  if (!Number.isNaN(Number(word))) throw UNUSUAL
  return word
}
