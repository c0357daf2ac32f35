/** Decodes an element into a command, in the modern and the legacy form (S0.2–S0.5). */
import {
  brief,
  type CommandShape,
  chooseName,
  commandNamed,
  type Decoded,
  type DecodedCommand,
  duplicateName,
  fieldNamed,
  type KnownCommands,
  missingType,
} from '../codec.ts'
import { type Attribute, decodeReferences, parseTag } from './tag.ts'

/** `body` is undefined for a self-closing tag. */
export function decodeElement(tag: string, body: string | undefined, known: KnownCommands): Decoded {
  const opening = decodeTag(tag, known)
  if (!opening.ok) return opening
  const { shape, attributes } = opening.value
  const decoded: DecodedCommand = { type: shape.type, fields: {}, ignored: [], notation: 'modern' }
  for (const { name, key, value } of attributes) {
    if (isNaming(key, opening.value)) continue
    const field = fieldNamed(key, shape)
    if (field === undefined) decoded.ignored.push(brief(name))
    else if (decoded.fields[field] === undefined) decoded.fields[field] = value
    else return duplicateName(name)
  }
  return body === undefined ? { ok: true, value: decoded } : readBody(body, opening.value, decoded)
}

interface Opening {
  shape: CommandShape
  attributes: Attribute[]
  /** The attribute that names the command. With `type`, the older form, elements may precede the body's text. */
  naming: 'name' | 'type' | undefined
}

/** Whether the attribute with this key names the command, or repeats its name. */
function isNaming(key: string, { naming, shape }: Opening): boolean {
  return key === naming || ((key === 'name' || key === 'type') && !shape.fields.has(key))
}

/** The command that an opening tag names. */
export function decodeTag(tag: string, known: KnownCommands): Decoded<Opening> {
  const parsed = parseTag(tag)
  if (!parsed.ok) return parsed
  const attributes = parsed.value
  const name = valueOfKey(attributes, 'name')
  const type = valueOfKey(attributes, 'type')
  const chosen = chooseName(name, type, known)
  if (!chosen.ok) return chosen
  const written = chosen.value === 'name' ? name : type
  const command = written === undefined ? missingType() : commandNamed(written, known)
  if (!command.ok) return command
  return { ok: true, value: { shape: command.value, attributes, naming: chosen.value } }
}

function valueOfKey(attributes: readonly Attribute[], key: string): string | undefined {
  for (const attribute of attributes) if (attribute.key === key) return attribute.value
  return undefined
}

/** Adds the fields of the body. Attributes win over the body, unless they are empty. */
function readBody(body: string, { shape, naming }: Opening, decoded: DecodedCommand): Decoded {
  const { fields, ignored } = decoded
  const setField = (field: string, value: string) => {
    const isSet = fields[field] !== undefined && fields[field] !== ''
    if (!isSet) fields[field] = value
    return !isSet
  }
  const children = legacyChildren(body, shape)
  if (children === undefined) {
    const text = textOf(naming === 'type' ? takeLeading(body, shape, decoded) : body)
    if (text !== '' && (shape.body === undefined || !setField(shape.body, text))) ignored.push('body')
    return { ok: true, value: decoded }
  }
  const seen = new Set<string>()
  for (const { name, value, field } of children) {
    if (field !== undefined && seen.has(field)) return duplicateName(name)
    if (field === undefined || !setField(field, value)) ignored.push(brief(name))
    else seen.add(field)
  }
  decoded.notation = 'legacy'
  return { ok: true, value: decoded }
}

/** Takes the parameters from the beginning of `<to>B</to>Hello`, unless attributes set them, and returns the rest. */
function takeLeading(body: string, shape: CommandShape, decoded: DecodedCommand): string {
  const wanted = (name: string) => {
    const field = fieldNamed(name, shape)
    return field !== undefined && field !== shape.body && (decoded.fields[field] ?? '') === ''
      ? field
      : undefined
  }
  const taken = new Set<string>()
  const { children, rest } = leadingChildren(body, (name) => {
    const field = wanted(name)
    if (field === undefined || taken.has(field)) return false
    taken.add(field)
    return true
  })
  for (const { name, value } of children) decoded.fields[wanted(name)!] = value
  if (children.length > 0) decoded.notation = 'legacy'
  return rest
}

/**
 * The body is in the legacy form if it is made of elements and each is a parameter, or one is the parameter that a body
 * would fill. Anything else, such as HTML, is text.
 */
function legacyChildren(body: string, shape: CommandShape) {
  const children = childrenOf(body)?.map((child) => ({ ...child, field: fieldNamed(child.name, shape) }))
  if (children === undefined || children.length === 0) return undefined
  const parameters = children.filter((child) => child.field !== undefined)
  const isLegacy =
    parameters.length === children.length ||
    (shape.body === undefined
      ? parameters.length > 0
      : parameters.some((child) => child.field === shape.body))
  return isLegacy ? children : undefined
}

// The body of an element: either text, or the child elements of the legacy form (S0.3).

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
function textOf(body: string): string {
  const trimmed = body.trim()
  return replaceSections(trimmed, decodeReferences, (section, start, end) => {
    // Space at the beginning and end of the text is layout, also inside a section.
    const begun = start === 0 ? section.trimStart() : section
    return end === trimmed.length ? begun.trimEnd() : begun
  })
}

/** The child elements; undefined if the body contains anything but elements, space and comments. */
function childrenOf(body: string): ChildElement[] | undefined {
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
function leadingChildren(
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
