/** Reads the body of an element: either text, or the child elements of the legacy form (S0.3). */
import { decodeReferences } from './entities.ts'

interface ChildElement {
  name: string
  value: string
}

const CDATA_OPENING = '<![CDATA['
const CDATA_CLOSING = ']]>'
/** A body with more child elements, or with elements nested deeper in their own kind, is text. */
const MOST_CHILDREN = 64
const MOST_LEVELS = 64
/** Most bodies do not begin with an element or a comment, and are text for certain. */
const BEGINS_WITH_NODE = /^\s*<(?:[A-Za-z_]|!--)/

/** The text of a body or child element: trimmed, with references decoded and CDATA sections unwrapped. */
export function textOf(body: string): string {
  const trimmed = body.trim()
  return replaceSections(trimmed, decodeReferences, (section, start, end) => {
    // Space at the beginning and end of the text is layout, also inside a section.
    const begun = start === 0 ? section.trimStart() : section
    return end === trimmed.length ? begun.trimEnd() : begun
  })
}

/** The child elements; undefined if the body contains anything but elements, space and comments. */
export function childrenOf(body: string): ChildElement[] | undefined {
  if (!BEGINS_WITH_NODE.test(body)) return undefined
  const visible = withoutSections(body)
  const children: ChildElement[] = []
  const node = /\s*(?:<!--|<([A-Za-z_][\w.-]*)\s*(\/?)>|$)/y
  for (let found = node.exec(visible); found !== null; found = node.exec(visible)) {
    const [text, name, slash] = found
    if (children.length > MOST_CHILDREN) return undefined
    if (text.endsWith('<!--')) {
      const end = visible.indexOf('-->', node.lastIndex)
      if (end < 0) return undefined
      node.lastIndex = end + 3
    } else if (name === undefined) {
      return children
    } else if (slash === '/') {
      children.push({ name, value: '' })
    } else {
      const closing = closingOf(visible, name, node.lastIndex)
      if (closing === undefined) return undefined
      children.push({ name, value: textOf(body.slice(node.lastIndex, closing.start)) })
      node.lastIndex = closing.end
    }
  }
  return undefined
}

/** The wanted elements at the beginning of a body, and the text after them. */
export function leadingChildren(
  body: string,
  isWanted: (name: string) => boolean,
): { children: ChildElement[]; rest: string } {
  if (!BEGINS_WITH_NODE.test(body)) return { children: [], rest: body }
  const visible = withoutSections(body)
  const children: ChildElement[] = []
  const opening = /\s*<([A-Za-z_][\w.-]*)\s*>/y
  let end = 0
  for (let found = opening.exec(visible); found !== null; found = opening.exec(visible)) {
    const name = found[1]!
    const closing = isWanted(name) ? closingOf(visible, name, opening.lastIndex) : undefined
    if (closing === undefined || children.length === MOST_CHILDREN) break
    children.push({ name, value: textOf(body.slice(opening.lastIndex, closing.start)) })
    end = closing.end
    opening.lastIndex = end
  }
  return { children, rest: body.slice(end) }
}

/** Finds the closing tag of an element that may contain elements of the same name. */
function closingOf(text: string, name: string, from: number): { start: number; end: number } | undefined {
  const next = text.indexOf('<', from)
  const closing = `</${name}>`
  if (next >= 0 && text.startsWith(closing, next)) return { start: next, end: next + closing.length }
  const tag = new RegExp(`</?${name.replaceAll('.', '\\.')}\\s*>`, 'gi')
  tag.lastIndex = from
  for (let depth = 1; depth < MOST_LEVELS && tag.test(text); ) {
    const start = text.lastIndexOf('<', tag.lastIndex - 1)
    depth += text[start + 1] === '/' ? -1 : 1
    if (depth === 0) return { start, end: tag.lastIndex }
  }
  return undefined
}

/**
 * Replaces the text outside of CDATA sections and the sections themselves. `inside` receives a section's content and the
 * offsets of the whole section. A section without an end is outside.
 */
function replaceSections(
  text: string,
  outside: (text: string) => string,
  inside: (text: string, start: number, end: number) => string,
): string {
  if (!text.includes(CDATA_CLOSING)) return outside(text)
  let replaced = ''
  let at = 0
  for (let start = nextOpening(text, 0); start >= 0; start = nextOpening(text, at)) {
    const from = start + CDATA_OPENING.length
    const to = text.indexOf(CDATA_CLOSING, from)
    if (to < 0) break
    if (start > at) replaced += outside(text.slice(at, start))
    at = to + CDATA_CLOSING.length
    replaced += inside(text.slice(from, to), start, at)
  }
  return replaced + outside(text.slice(at))
}

function nextOpening(text: string, from: number): number {
  let at = text.indexOf('<![', from)
  while (at >= 0 && !isOpening(text, at)) at = text.indexOf('<![', at + 1)
  return at
}

function isOpening(text: string, at: number): boolean {
  return (
    text.startsWith(CDATA_OPENING, at) ||
    text.slice(at, at + CDATA_OPENING.length).toUpperCase() === CDATA_OPENING
  )
}

/** The same text with the content of CDATA sections blanked out, so that tags in it are not found. */
function withoutSections(text: string): string {
  return replaceSections(
    text,
    (outside) => outside,
    (inside) => CDATA_OPENING + '.'.repeat(inside.length) + CDATA_CLOSING,
  )
}
