/** Text of `{"orc_command": {…}}` → command (S1.18). Its extent was found by scan/object-reader.ts. */
import { brief, type KnownCommands, type Problem, problem, type Reading } from '../codec.ts'
import { chooseName, commandNamed, fieldNamed, missingType, saidTwice } from '../naming.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export function decodeObject(text: string, known: KnownCommands): Reading | Problem {
  let whole: { [key: string]: Json }
  try {
    whole = JSON.parse(text)
  } catch (error) {
    return notJson(error as SyntaxError)
  }
  const { outer, keys } = outline(text)
  const repeated = firstRepeated(outer) ?? firstRepeated(keys)
  if (repeated !== undefined) return saidTwice(repeated)
  // The scanner has seen that the first key is `orc_command`, and that it holds an object.
  const [wrapper, ...others] = outer
  const said = whole[wrapper!] as { [key: string]: Json }
  const find = (key: string) => keys.find((other) => same(other, key))
  const named = nameObject(said, find, known)
  if (!named.ok) return named
  const { shape, key: naming } = named

  const reading: Reading = { ok: true, type: shape.type, fields: {}, ignored: [], notation: 'json' }
  for (const key of keys) {
    const isName =
      key === naming || ((same(key, 'name') || same(key, 'type')) && fieldNamed(key, shape) === undefined)
    const value = said[key]
    if (isName || value === null || value === undefined) continue
    const field = fieldNamed(key, shape)
    if (field === undefined) reading.ignored.push(brief(key))
    else if (reading.fields[field] !== undefined) return saidTwice(key)
    else reading.fields[field] = typeof value === 'string' ? value : JSON.stringify(value)
  }
  reading.ignored.push(...others.map(brief))
  return reading
}

function nameObject(
  said: { [key: string]: Json },
  find: (key: string) => string | undefined,
  known: KnownCommands,
) {
  const nameKey = find('name')
  const typeKey = find('type')
  const textOf = (key: string | undefined) => {
    const value = key === undefined ? undefined : said[key]
    return typeof value === 'string' ? value : undefined
  }
  const chosen = chooseName(textOf(nameKey), textOf(typeKey), known)
  if (!chosen.ok) return chosen
  const key = chosen.key === 'name' ? nameKey : typeKey
  const type = textOf(key)
  const command = type === undefined ? missingType() : commandNamed(type, known)
  return command.ok ? { ...command, key } : command
}

function same(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

function firstRepeated(keys: readonly string[]): string | undefined {
  const seen = new Set<string>()
  return keys.find((key) => seen.size === seen.add(key.toLowerCase()).size)
}

/**
 * The keys around the command and those in it, as they are written: `JSON.parse` would keep only the last of two equal
 * ones, and change their order. The text is known to be JSON.
 */
function outline(text: string): { outer: string[]; keys: string[] } {
  const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/gs
  const outer: string[] = []
  const keys: string[] = []
  let depth = 0
  let isKey = false
  for (const [found] of text.matchAll(token)) {
    if (found === '{' || found === '[') depth++
    if (found === '}' || found === ']') depth--
    if (isKey && found[0] === '"') {
      if (depth === 1) outer.push(JSON.parse(found))
      else if (depth === 2 && outer.length === 1) keys.push(JSON.parse(found))
    }
    isKey = found === '{' || found === ','
  }
  return { outer, keys }
}

function notJson(error: SyntaxError): Problem {
  return problem(
    'NOT_WELL_FORMED',
    `The JSON command is not well-formed: ${brief(error.message)}`,
    'Check its commas, quotation marks and braces.',
  )
}
