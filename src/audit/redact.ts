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

/*
 * Running every rule takes tens of microseconds and nearly every text holds no secret, so a cheap check comes first. False
 * positives only cost time, but a false negative would leak a secret. Each rule's patterns need one of these literal
 * parts; tests/audit/suspicion.test.ts generates strings from the patterns of the installed rules and checks them against
 * this, which covers upgrades.
 *
 * The parts have no word boundary on the left on purpose: the check also runs on serialised JSON, where a newline before
 * a token has become the letter n. No part contains a character that JSON escapes.
 */

/** Parts with a separator. Searching for separators and looking back is several times faster than an alternation of words. */
const PREFIXED =
  /_(?:(?<=(?:npm|gsk|hf|lin_api|ntn|shp(?:pa|ca|at|ss)|[rs]k_(?:live|test)|gh[oprsu]|github_pat|glc|glsa|vc[aikpr]|dckr_pat|figd|cfk|cfut|cfat|orct)_)[A-Za-z0-9_+/-]|(?<=ops_)ey|authToken=)|-(?:(?<=(?:xox[abopr]|xapp|glpat|tskey)-)[A-Za-z0-9_-]|(?<=sk-)[A-Za-z0-9_-]{20}|BEGIN(?<=-----BEGIN))|\.(?<=(?:SG|hv[bsr])\.)[\w-]|:\/\/[^\s/@]*@/

/** Parts without a separator, or with any case. */
const LABELLED =
  /access_?key|dapi[0-9a-f]{8}|hooks\.slack\.com|x-oauth-basic|A(?:3T[A-Z0-9]|KIA|GPA|IDA|ROA|IPA|NPA|NVA|SIA)[A-Z0-9]{16}/i

/** The rules include one that parses JSON, where any part can be written with escapes. */
const JSON_TEXT = /^\s*[{["]/

export function mayHoldSecret(text: string): boolean {
  return PREFIXED.test(text) || LABELLED.test(text) || (text.includes('\\u') && JSON_TEXT.test(text))
}

/** A range of text that a rule takes for a secret. */
interface SecretMatch {
  start: number
  end: number
  /** Short name of the rule: `github`, `privatekey`, `orchub-token` … */
  rule: string
}

export type FindSecrets = (text: string) => SecretMatch[]

/** The part of secretlint's interface that its rules use on text. */
interface SecretlintRule {
  meta: { id: string }
  create(context: RuleContext, options: object): { file?(source: Source): unknown }
}

interface RuleContext {
  sharedOptions: object
  createTranslator(messages: unknown): (messageId: string, data?: object) => RuleMessage
  report(descriptor: { message: RuleMessage; range: readonly [number, number] }): void
  ignore(descriptor: unknown): void
}

interface RuleMessage {
  message: string
  messageId: string
  data: object | undefined
}

interface Source {
  content: string
  contentType: 'text'
  filePath: string | undefined
  ext: string
}

const RULE_PREFIX = '@secretlint/secretlint-rule-'

/** Would let comments in the text disable rules: the author of the text must not decide that. */
const COMMENT_FILTER = `${RULE_PREFIX}filter-comments`

/** Also redacts key ids (`AKIA…`), which the rule skips by default. */
const OPTIONS = { enableIDScanRule: true }

/** Enabled by that option too: an account number isn't secret and looks like any twelve digits. */
const HARMLESS_MESSAGES = new Set(['AWSAccountID'])

/** Some patterns apply to one kind of file only, so the rules see the text as each kind. */
const ANY_FILE = { filePath: undefined, ext: '.json' }
const NPMRC = { filePath: '.npmrc', ext: '' }

/** Orchub's bearer tokens, with any characters appended to them. */
const OWN_TOKEN = /orct_[A-Za-z0-9_-]{43,}/g

/**
 * Calls secretlint's recommended rules directly: they are plain synchronous functions, whereas `lintSource` is asynchronous,
 * counts lines and obeys `secretlint-disable` comments in the text.
 */
export async function loadSecretRules(): Promise<FindSecrets> {
  const { rules } = await import('@secretlint/secretlint-rule-preset-recommend')
  let text = ''
  let matches: SecretMatch[] = []
  const checks = (rules as readonly SecretlintRule[])
    .filter((rule) => rule.meta.id !== COMMENT_FILTER)
    .flatMap((rule) => {
      const name = rule.meta.id.replace(RULE_PREFIX, '')
      const context: RuleContext = {
        sharedOptions: {},
        createTranslator: () => (messageId, data) => ({ message: '', messageId, data }),
        report({ message, range }) {
          if (HARMLESS_MESSAGES.has(message.messageId)) return
          matches.push({ ...locate(text, range, message.data), rule: name })
        },
        ignore: () => {},
      }
      const handler = rule.create(context, OPTIONS)
      const files = name === 'npm' ? [ANY_FILE, NPMRC] : [ANY_FILE]
      return files.map(
        (file) => (content: string) => handler.file?.({ content, contentType: 'text', ...file }),
      )
    })

  return (input) => {
    text = input
    matches = []
    for (const match of text.matchAll(OWN_TOKEN)) {
      matches.push({ start: match.index, end: match.index + match[0].length, rule: 'orchub-token' })
    }
    for (const check of checks) {
      if (check(text) instanceof Promise) throw new Error('A secret rule has become asynchronous')
    }
    return matches
  }
}

/**
 * Rules that find a secret by its label (`AWS_SECRET_ACCESS_KEY=…`) report the position of the label with the length of the
 * secret, which would leave the end of the secret readable. The secret itself is in the message's data.
 */
function locate(text: string, [start, end]: readonly [number, number], data: object = {}) {
  const secret = Object.values(data).find(
    (value) => typeof value === 'string' && value.length === end - start,
  )
  if (secret === undefined || text.startsWith(secret, start)) return { start, end }
  const found = text.indexOf(secret, start)
  return found === -1 ? { start, end } : { start: found, end: found + secret.length }
}
