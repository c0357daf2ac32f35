import { loadSecretRules, type SecretMatch } from './secrets/rules.ts'
import { mayHoldSecret } from './secrets/suspicion.ts'

/**
 * Removes secrets before text is stored (C12). It recognizes credentials by their shape, so it misses secrets without one
 * (a bare password) and secrets that are encoded or split over two fields.
 */
export interface Redactor {
  /** Replaces each secret by `[redacted:<rule>]`; returns the same string if there is none. */
  redact(text: string): string
  /** Redacts every string and key of a JSON value; returns the same object if there is no secret. */
  redactData<T>(value: T): T
  /** Redacts serialised JSON, and parses it only if it may hold a secret. */
  redactJson(json: string): string
}

/** Redacting may join parts into a new secret. Only hostile text needs more rounds than this. */
const MAX_ROUNDS = 4
const MARKER = /^\[redacted:[a-z0-9-]+\]$/

export async function openRedactor(): Promise<Redactor> {
  const findSecrets = await loadSecretRules()

  function redact(text: string): string {
    let current = text
    for (let round = 0; round < MAX_ROUNDS && mayHoldSecret(current); round++) {
      const next = replaceMatches(current, findSecrets(current))
      if (next === current) break
      current = next
    }
    return current
  }

  function redactData<T>(value: T): T {
    return redactValue(value, redact) as T
  }

  return {
    redact,
    redactData,
    redactJson(json) {
      if (!mayHoldSecret(json)) return json
      const value: unknown = JSON.parse(json)
      const redacted = redactData(value)
      return redacted === value ? json : JSON.stringify(redacted)
    },
  }
}

function replaceMatches(text: string, matches: SecretMatch[]): string {
  matches.sort((a, b) => a.start - b.start || b.end - a.end)
  let result = ''
  let done = 0
  for (let index = 0; index < matches.length; ) {
    const { start, rule } = matches[index]!
    let { end } = matches[index]!
    // Rules overlap (a token inside a URL): overlapping matches become one marker.
    for (index++; index < matches.length && matches[index]!.start < end; index++) {
      end = Math.max(end, matches[index]!.end)
    }
    if (MARKER.test(text.slice(start, end))) continue
    result += `${text.slice(done, start)}[redacted:${rule}]`
    done = end
  }
  return done === 0 ? text : result + text.slice(done)
}

function redactValue(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => redactValue(item, redact))
    return items.every((item, index) => item === value[index]) ? value : items
  }
  let changed = false
  const entries = new Map<string, unknown>()
  for (const [key, item] of Object.entries(value)) {
    const redactedItem = redactValue(item, redact)
    const redactedKey = redact(key)
    changed ||= redactedItem !== item || redactedKey !== key
    entries.set(unusedKey(redactedKey, entries), redactedItem)
  }
  return changed ? Object.fromEntries(entries) : value
}

/** Keeps two redacted keys distinct, or a value would be lost. */
function unusedKey(key: string, taken: ReadonlyMap<string, unknown>): string {
  let unused = key
  for (let count = 2; taken.has(unused); count++) unused = `${key}#${count}`
  return unused
}
