/** The text between the tags: either a message as it is, or the child elements of the legacy form (S0.3). */
import { decodeReferences } from './entities.ts'

/** More elements than this are no parameters. */
const MOST_CHILDREN = 64

export interface Child {
  name: string
  value: string
}

/** The text of a body or child: without the space around it, references decoded, CDATA sections as they are. */
export function textOf(body: string): string {
  const parts = splitSections(body)
  trim(parts)
  return parts.map((part) => (part.isSection ? part.text : decodeReferences(part.text))).join('')
}

interface Part {
  text: string
  isSection: boolean
  /** Where `text` begins in the body. */
  at: number
}

function splitSections(body: string): Part[] {
  const opening = /<!\[CDATA\[/gi
  const parts: Part[] = []
  let at = 0
  for (let found = opening.exec(body); found !== null; found = opening.exec(body)) {
    const end = body.indexOf(']]>', opening.lastIndex)
    if (end < 0) break
    parts.push({ text: body.slice(at, found.index), isSection: false, at })
    parts.push({ text: body.slice(opening.lastIndex, end), isSection: true, at: opening.lastIndex })
    at = end + 3
    opening.lastIndex = at
  }
  parts.push({ text: body.slice(at), isSection: false, at })
  return parts
}

/** Space that is written out is layout, in a section too; `&#32;` and the like are meant. */
function trim(parts: Part[]) {
  for (const part of parts) {
    part.text = part.text.trimStart()
    if (part.text !== '') break
  }
  for (const part of parts.toReversed()) {
    part.text = part.text.trimEnd()
    if (part.text !== '') break
  }
}

/** The child elements, if the body consists of elements only; what is inside them is text. */
export function childrenOf(body: string): Child[] | undefined {
  if (!/^\s*</.test(body)) return undefined
  const visible = withoutSections(body)
  const children: Child[] = []
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

/** The same text with everything in CDATA sections blanked out, so that tags there are not seen. */
function withoutSections(body: string): string {
  const parts = splitSections(body)
  if (parts.length === 1) return body
  let visible = ''
  for (const part of parts) {
    if (part.isSection) visible = visible.padEnd(part.at + part.text.length, '.')
    else visible = visible.padEnd(part.at, '.') + part.text
  }
  return visible
}

/** Where the element's closing tag is, elements of the same name within it being balanced. */
function closingOf(text: string, name: string, from: number): { start: number; end: number } | undefined {
  const tag = new RegExp(`<(/?)${name.replaceAll('.', '\\.')}\\s*>`, 'gi')
  tag.lastIndex = from
  let depth = 1
  for (let found = tag.exec(text); found !== null; found = tag.exec(text)) {
    depth += found[1] === '/' ? -1 : 1
    if (depth === 0) return { start: found.index, end: tag.lastIndex }
  }
  return undefined
}
