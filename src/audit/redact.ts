import { type Finding, loadSecretRules } from './secrets/rules.ts'
import { mayHoldSecret } from './secrets/suspicion.ts'

/**
 * Takes secrets out of what is about to be written down (C12). It knows the shapes of credentials, so it finds
 * neither a secret of no known shape (a bare password) nor one that is split over two fields or encoded.
 */
export interface Redactor {
  /** The text with each secret replaced by `[redacted:<rule>]`; the same string if there is none. */
  redact(text: string): string
  /** The same for every string and key of a JSON value; the same object if there is no secret in it. */
  redactData<T>(value: T): T
  /** The same for serialised JSON, without parsing it unless it may hold a secret. */
  redactJson(json: string): string
}

/** Redacting may bring together what was apart; nobody but an attacker needs more rounds than this to settle. */
const MAX_ROUNDS = 4
const MARKER = /^\[redacted:[a-z0-9-]+\]$/

export async function openRedactor(): Promise<Redactor> {
  const findSecrets = await loadSecretRules()

  function redact(text: string): string {
    let current = text
    for (let round = 0; round < MAX_ROUNDS && mayHoldSecret(current); round++) {
      const next = replaceFindings(current, findSecrets(current))
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

function replaceFindings(text: string, findings: Finding[]): string {
  findings.sort((a, b) => a.start - b.start || b.end - a.end)
  let result = ''
  let done = 0
  for (let index = 0; index < findings.length; ) {
    const { start, rule } = findings[index]!
    let { end } = findings[index]!
    // Rules overlap (a token inside a URL): the stretch they cover together becomes one marker.
    for (index++; index < findings.length && findings[index]!.start < end; index++) {
      end = Math.max(end, findings[index]!.end)
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

/** Two secret keys must not fall into one, or a value would be lost. */
function unusedKey(key: string, taken: ReadonlyMap<string, unknown>): string {
  let unused = key
  for (let count = 2; taken.has(unused); count++) unused = `${key}#${count}`
  return unused
}
