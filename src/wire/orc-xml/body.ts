/** The text between the tags: either a message as it is, or the child elements of the legacy form (S0.3). */
import { decodeReferences } from './entities.ts'

export interface Child {
  name: string
  value: string
}

/** More elements than this are no parameters. */
const MOST_CHILDREN = 64

/** The text of a body or child: without the space around it, references decoded, CDATA sections as they are. */
export function textOf(body: string): string {
  if (!hasSection(body)) return decodeReferences(body.trim())
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

function hasSection(body: string): boolean {
  return body.includes('<![') && body.includes(']]>')
}

function splitSections(body: string): Part[] {
  const opening = /<!\[CDATA\[/gi
  const parts: Part[] = []
  let at = 0
  while (opening.test(body)) {
    const start = opening.lastIndex
    const end = body.indexOf(']]>', start)
    if (end < 0) break
    const before = start - '<![CDATA['.length
    if (before > at) parts.push({ text: body.slice(at, before), isSection: false, at })
    parts.push({ text: body.slice(start, end), isSection: true, at: start })
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
  const visible = hasSection(body) ? withoutSections(body) : body
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
  let visible = ''
  for (const part of splitSections(body)) {
    if (part.isSection) visible = visible.padEnd(part.at + part.text.length, '.')
    else visible = visible.padEnd(part.at, '.') + part.text
  }
  return visible
}

/** Where the element's closing tag is, elements of the same name within it being balanced. */
function closingOf(text: string, name: string, from: number): { start: number; end: number } | undefined {
  const next = text.indexOf('<', from)
  const closing = `</${name}>`
  if (next >= 0 && text.startsWith(closing, next)) return { start: next, end: next + closing.length }
  const tag = new RegExp(`</?${name.replaceAll('.', '\\.')}\\s*>`, 'gi')
  tag.lastIndex = from
  let depth = 1
  while (tag.test(text)) {
    const start = text.lastIndexOf('<', tag.lastIndex - 1)
    depth += text[start + 1] === '/' ? -1 : 1
    if (depth === 0) return { start, end: tag.lastIndex }
  }
  return undefined
}
