/** Decodes an element into a command, in the modern and the legacy form (S0.2–S0.5). */
import {
  brief,
  type CommandShape,
  type DecodedCommand,
  type KnownCommands,
  type ScanProblem,
} from '../codec.ts'
import { chooseName, commandNamed, duplicateName, fieldNamed, missingType } from '../resolve-names.ts'
import { childrenOf, leadingChildren, textOf } from './body.ts'
import { type Attribute, parseTag } from './tag.ts'

/** `body` is undefined for a self-closing tag. */
export function decodeElement(
  tag: string,
  body: string | undefined,
  known: KnownCommands,
): DecodedCommand | ScanProblem {
  const opening = decodeTag(tag, known)
  if (!opening.ok) return opening
  const { shape, attributes } = opening
  const decoded: DecodedCommand = { ok: true, type: shape.type, fields: {}, ignored: [], notation: 'modern' }
  for (const { name, key, value } of attributes) {
    if (isNaming(key, opening)) continue
    const field = fieldNamed(key, shape)
    if (field === undefined) decoded.ignored.push(brief(name))
    else if (decoded.fields[field] === undefined) decoded.fields[field] = value
    else return duplicateName(name)
  }
  return body === undefined ? decoded : readBody(body, opening, decoded)
}

interface Opening {
  ok: true
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
export function decodeTag(tag: string, known: KnownCommands): Opening | ScanProblem {
  const parsed = parseTag(tag)
  if (!parsed.ok) return parsed
  const { attributes } = parsed
  const name = valueOfKey(attributes, 'name')
  const type = valueOfKey(attributes, 'type')
  const chosen = chooseName(name, type, known)
  if (!chosen.ok) return chosen
  const said = chosen.key === 'name' ? name : type
  const command = said === undefined ? missingType() : commandNamed(said, known)
  if (!command.ok) return command
  return { ok: true, shape: command.shape, attributes, naming: chosen.key }
}

function valueOfKey(attributes: readonly Attribute[], key: string): string | undefined {
  for (const attribute of attributes) if (attribute.key === key) return attribute.value
  return undefined
}

/** Adds the fields of the body. Attributes win over the body, unless they are empty. */
function readBody(
  body: string,
  { shape, naming }: Opening,
  decoded: DecodedCommand,
): DecodedCommand | ScanProblem {
  const { fields, ignored } = decoded
  const say = (field: string, value: string) => {
    const isSaid = fields[field] !== undefined && fields[field] !== ''
    if (!isSaid) fields[field] = value
    return !isSaid
  }
  const children = legacyChildren(body, shape)
  if (children === undefined) {
    const text = textOf(naming === 'type' ? takeLeading(body, shape, decoded) : body)
    if (text !== '' && (shape.body === undefined || !say(shape.body, text))) ignored.push('body')
    return decoded
  }
  const seen = new Set<string>()
  for (const { name, value, field } of children) {
    if (field !== undefined && seen.has(field)) return duplicateName(name)
    if (field === undefined || !say(field, value)) ignored.push(brief(name))
    else seen.add(field)
  }
  decoded.notation = 'legacy'
  return decoded
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
