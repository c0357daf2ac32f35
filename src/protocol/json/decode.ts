/** Decodes `{"orc_command": {…}}` (S1.18) or a message (S2.2) into a command. scan/json-reader.ts found its end. */
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
  type ScanFailure,
  scanProblem,
} from '../codec.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

type ParsedObject = { [key: string]: Json }

function parse(text: string): Decoded<ParsedObject> {
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return notJson(error as SyntaxError)
  }
}

/** `keys` and `outerKeys` are the numbers of keys that the scanner counted in the command and around it. */
export function decodeObject(text: string, keys: number, outerKeys: number, known: KnownCommands): Decoded {
  const parsed = parse(text)
  if (!parsed.ok) return parsed
  const whole = parsed.value
  const outer = Object.keys(whole)
  const wrapper = outer.find((key) => same(key, 'orc_command'))!
  // The scanner checked that the first key is `orc_command` and that its value is an object.
  const object = whole[wrapper] as ParsedObject
  const isRepeated = outer.length < outerKeys || Object.keys(object).length < keys
  const repeated = isRepeated ? findRepeated(text, 2) : undefined
  if (repeated !== undefined) return duplicateName(repeated)
  const decoded = readCommand(object, known)
  if (decoded.ok) for (const key of outer) if (key !== wrapper) decoded.value.ignored.push(brief(key))
  return decoded
}

/** Decodes an object that is the command itself. */
export function decodeMessage(text: string, keys: number, known: KnownCommands): Decoded {
  const parsed = parse(text)
  if (!parsed.ok) return parsed
  const object = parsed.value
  const repeated = Object.keys(object).length < keys ? findRepeated(text, 1) : undefined
  return repeated === undefined ? readCommand(object, known) : duplicateName(repeated)
}

function readCommand(object: ParsedObject, known: KnownCommands): Decoded {
  const named = nameObject(object, known)
  if (!named.ok) return named
  const { shape, key: naming } = named.value
  const decoded: DecodedCommand = { type: shape.type, fields: {}, ignored: [], notation: 'json' }
  for (const [key, value] of Object.entries(object)) {
    const field = fieldNamed(key, shape)
    const isName = key === naming || (field === undefined && (same(key, 'name') || same(key, 'type')))
    if (isName || value === null) continue
    if (field === undefined) decoded.ignored.push(brief(key))
    else if (decoded.fields[field] !== undefined) return duplicateName(key)
    else decoded.fields[field] = typeof value === 'string' ? value : JSON.stringify(value)
  }
  return { ok: true, value: decoded }
}

function nameObject(
  object: ParsedObject,
  known: KnownCommands,
): Decoded<{ shape: CommandShape; key: string | undefined }> {
  const keys = Object.keys(object)
  const nameKey = keys.find((key) => same(key, 'name'))
  const typeKey = keys.find((key) => same(key, 'type'))
  const textOf = (key: string | undefined) => {
    const value = key === undefined ? undefined : object[key]
    return typeof value === 'string' ? value : undefined
  }
  const chosen = chooseName(textOf(nameKey), textOf(typeKey), known)
  if (!chosen.ok) return chosen
  const key = chosen.value === 'name' ? nameKey : typeKey
  const type = textOf(key)
  const command = type === undefined ? missingType() : commandNamed(type, known)
  return command.ok ? { ok: true, value: { shape: command.value, key } } : command
}

function same(one: string, other: string): boolean {
  return one.length === other.length && one.toLowerCase() === other
}

/** Finds a key that is written twice; `JSON.parse` keeps only the last one. The text is valid JSON. */
function findRepeated(text: string, depth: number): string | undefined {
  const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/gs
  const seen: Set<string>[] = []
  let isKey = false
  for (const [found] of text.matchAll(token)) {
    if (found === '{' || found === '[') seen.push(new Set())
    if (found === '}' || found === ']') seen.pop()
    if (isKey && found[0] === '"' && seen.length <= depth) {
      const key = JSON.parse(found)
      if (seen.at(-1)?.has(key)) return key
      seen.at(-1)?.add(key)
    }
    isKey = found === '{' || found === ','
  }
  return undefined
}

function notJson(error: SyntaxError): ScanFailure {
  return scanProblem(
    'NOT_WELL_FORMED',
    `The JSON command is not well-formed: ${brief(error.message)}`,
    'Check its commas, quotation marks and braces.',
  )
}
