import type { Result } from '../../base/result.ts'

/** File names that agents chose. They may contain anything but a slash and a zero byte. */

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Control characters, line separators and bidirectional controls. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/u
const EVERY_UNPRINTABLE = new RegExp(UNPRINTABLE.source, 'gu')

const LONGEST_NAME = 255
const LONGEST_SHOWN = 160

/** Fast path for nearly all names. */
const PLAIN = /^[\w.-]{1,255}$/

export function isPlainName(name: string): boolean {
  return PLAIN.test(name) && name !== '.' && name !== '..'
}

type ReadName = { ok: true; name: string } | { ok: false; shown: string; why: string }

/** The name as text, if it is safe to print and to store. */
export function readName(bytes: Buffer): ReadName {
  let name = bytes.toString('latin1')
  if (isPlainName(name)) return { ok: true, name }
  try {
    name = decoder.decode(bytes)
  } catch {
    return { ok: false, shown: showBytes(bytes), why: 'has a name that is not UTF-8' }
  }
  const why = faultOf(name)
  return why === undefined ? { ok: true, name } : { ok: false, shown: showName(name), why }
}

/** The problem with one name from a plan or a caller. */
export function faultOf(name: string): string | undefined {
  if (isPlainName(name)) return undefined
  if (name === '' || name === '.' || name === '..') return 'has an empty name or a name of dots'
  if (name.includes('/')) return 'has a slash in its name'
  if (!name.isWellFormed()) return 'has a name that is not UTF-8'
  if (UNPRINTABLE.test(name)) return 'has control characters in its name'
  if (Buffer.byteLength(name) > LONGEST_NAME) return 'has a name that is too long'
  return undefined
}

/** The segments of a relative path that a plan gives, or what is wrong with it. */
export function splitPath(path: string): Result<string[], string> {
  if (path.startsWith('/')) return { ok: false, error: 'is not a path below the workspace' }
  if (path.includes('\\')) return { ok: false, error: 'has a backslash in it' }
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..')) return { ok: false, error: 'leads out of the workspace' }
  const why = segments.map(faultOf).find((fault) => fault !== undefined)
  return why === undefined ? { ok: true, value: segments } : { ok: false, error: why }
}

/** Escapes a name for messages: always one line. */
export function showName(name: string): string {
  if (name.length <= LONGEST_SHOWN && PLAIN.test(name)) return name
  const plain = name
    .toWellFormed()
    .replace(EVERY_UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
  return clip(plain)
}

function showBytes(bytes: Buffer): string {
  const text = [...bytes].map((byte) =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
  )
  return clip(text.join(''))
}

function clip(text: string): string {
  return text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}…`
}
