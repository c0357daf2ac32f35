/** What everything that the service writes on GitHub carries, and how it finds its own words again. */

const MARK = 'orchub:action='
const KEY = /^[0-9a-f]{32}$/

/** Not to be seen, but there: after a crash between the call and its record, it says that the call was made. */
export function markOf(key: string): string {
  if (!KEY.test(key)) throw new Error(`no key of an action: ${key.slice(0, 40)}`)
  return `<!-- ${MARK}${key} -->`
}

export interface Signed {
  readonly key: string
  readonly agent: string
  /** `req_7`: people let it pass. */
  readonly approvedAs?: string
  /** Logins that may be addressed; every other mention is made harmless. */
  readonly mayMention: readonly string[]
}

/** Says that an agent wrote it; nobody should have to guess. */
export function signed(text: string, { key, agent, approvedAs, mayMention }: Signed): string {
  const approval = approvedAs === undefined ? '' : ` and approved by people (${approvedAs})`
  return [
    withoutMentions(withoutMarks(text), mayMention),
    '',
    '---',
    `<sub>🤖 Written by the AI agent **${agent}**${approval}. It can be wrong. \`/agent help\` says what it can do; the label \`AI-PAUSE\` stops it here.</sub>`,
    markOf(key),
  ].join('\n')
}

/** A model that was talked into it could otherwise ring the bell of every member of an organisation. */
export function withoutMentions(text: string, allowed: readonly string[]): string {
  const may = new Set(allowed.map((login) => login.toLowerCase()))
  // After a letter or a digit it is an address. In code it is none either, but where code begins only GitHub knows.
  return text.replace(
    /(?<![A-Za-z0-9])(?:@|&#0*64;|&#x0*40;|&commat;)([A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\/[\w.-]+)?)/gi,
    (whole, name: string) => (may.has(name.toLowerCase()) ? whole : `@\u200b${name}`),
  )
}

/** Nobody else's text may pass for the record of an action. */
function withoutMarks(text: string): string {
  return text.replaceAll(MARK, 'orchub:')
}
