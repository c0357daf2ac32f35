/** A stretch of text that some rule takes for a secret. */
export interface Finding {
  start: number
  end: number
  /** Short name of the rule: `github`, `privatekey`, `orchub-token` … */
  rule: string
}

export type FindSecrets = (text: string) => Finding[]

/** The part of secretlint's rule interface that its rules use on text. */
interface Rule {
  meta: { id: string }
  create(context: RuleContext, options: object): { file?(source: Source): unknown }
}

interface RuleContext {
  sharedOptions: object
  createTranslator(messages: unknown): (messageId: string, data?: object) => Message
  report(descriptor: { message: Message; range: readonly [number, number] }): void
  ignore(descriptor: unknown): void
}

interface Message {
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

/** Lets a comment in the text switch rules off: whoever writes the text must not decide that. */
const COMMENT_FILTER = `${RULE_PREFIX}filter-comments`

/** Key ids (`AKIA…`) are only looked for on demand; in a log nobody misses them. */
const OPTIONS = { enableIDScanRule: true }

/** Comes with that option: an account number is no secret and looks like any twelve digits. */
const HARMLESS_MESSAGES = new Set(['AWSAccountID'])

/** Some patterns are tied to a kind of file; a text can be any, so the rules see it as each. */
const ANY_FILE = { filePath: undefined, ext: '.json' }
const NPMRC = { filePath: '.npmrc', ext: '' }

/** Our own bearer tokens, with whatever is glued to their end. */
const OWN_TOKEN = /orct_[A-Za-z0-9_-]{43,}/g

/**
 * Secretlint's recommended rules, driven directly. Its own `lintSource` is asynchronous, counts lines, and obeys
 * `secretlint-disable` comments in the text it checks; the rules themselves are plain synchronous functions.
 */
export async function loadSecretRules(): Promise<FindSecrets> {
  const { rules } = await import('@secretlint/secretlint-rule-preset-recommend')
  let text = ''
  let findings: Finding[] = []
  const checks = (rules as readonly Rule[])
    .filter((rule) => rule.meta.id !== COMMENT_FILTER)
    .flatMap((rule) => {
      const name = rule.meta.id.replace(RULE_PREFIX, '')
      const context: RuleContext = {
        sharedOptions: {},
        createTranslator: () => (messageId, data) => ({ message: '', messageId, data }),
        report({ message, range }) {
          if (HARMLESS_MESSAGES.has(message.messageId)) return
          findings.push({ ...locate(text, range, message.data), rule: name })
        },
        ignore: () => {},
      }
      const handler = rule.create(context, OPTIONS)
      const guises = name === 'npm' ? [ANY_FILE, NPMRC] : [ANY_FILE]
      return guises.map(
        (guise) => (content: string) => handler.file?.({ content, contentType: 'text', ...guise }),
      )
    })

  return (input) => {
    text = input
    findings = []
    for (const match of text.matchAll(OWN_TOKEN)) {
      findings.push({ start: match.index, end: match.index + match[0].length, rule: 'orchub-token' })
    }
    for (const check of checks) {
      if (check(text) instanceof Promise) throw new Error('A secret rule has become asynchronous')
    }
    return findings
  }
}

/**
 * Rules that know a secret by its label (`AWS_SECRET_ACCESS_KEY=…`) report the place of the label with the length
 * of the secret, which would leave the secret's end readable. What they found is in the message's data.
 */
function locate(text: string, [start, end]: readonly [number, number], data: object = {}) {
  const secret = Object.values(data).find(
    (value) => typeof value === 'string' && value.length === end - start,
  )
  if (secret === undefined || text.startsWith(secret, start)) return { start, end }
  const found = text.indexOf(secret, start)
  return found === -1 ? { start, end } : { start: found, end: found + secret.length }
}
