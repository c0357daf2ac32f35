/** A range of text that a rule takes for a secret. */
export interface SecretMatch {
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
