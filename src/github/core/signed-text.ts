/** The signature and the hidden mark of everything that the service writes on GitHub. */

const MARK = 'orchub:action='
const KEY = /^[0-9a-f]{32}$/

/** A hidden comment. After a crash between the call and its record, it shows that the call was made. */
export function markOf(key: string): string {
  if (!KEY.test(key)) throw new Error(`not an action key: ${key.slice(0, 40)}`)
  return `<!-- ${MARK}${key} -->`
}

interface TextSignature {
  readonly key: string
  readonly agent: string
  /** `req_7`, if people approved it. */
  readonly approvedAs?: string
  /** Logins that the text may mention; other mentions are defused. */
  readonly mayMention: readonly string[]
}

/** Tells readers that an agent wrote the text. */
export function signed(text: string, { key, agent, approvedAs, mayMention }: TextSignature): string {
  const approval = approvedAs === undefined ? '' : ` and approved by people (${approvedAs})`
  return [
    withoutMentions(withoutMarks(text), mayMention),
    '',
    '---',
    `<sub>🤖 Written by the AI agent **${agent}**${approval}. It can be wrong. \`/agent help\` says what it can do; the label \`AI-PAUSE\` stops it here.</sub>`,
    markOf(key),
  ].join('\n')
}

/** Otherwise a manipulated model could notify every member of an organization. */
export function withoutMentions(text: string, allowed: readonly string[]): string {
  const may = new Set(allowed.map((login) => login.toLowerCase()))
  // After a letter or a digit, the @ belongs to an email address. Mentions in code are defused too: only GitHub's parser
  // knows where code begins.
  return text.replace(
    /(?<![A-Za-z0-9])(?:@|&#0*64;|&#x0*40;|&commat;)([A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\/[\w.-]+)?)/gi,
    (whole, name: string) => (may.has(name.toLowerCase()) ? whole : `@\u200b${name}`),
  )
}

/** An agent's text must not contain the mark of another action. */
function withoutMarks(text: string): string {
  return text.replaceAll(MARK, 'orchub:')
}
