/** Texts that the service posts on GitHub: signatures, marks, mentions and approval requests. */
import type { RepositoryAction } from './action.ts'

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
    `<sub>🤖 Written by the AI agent **${agent}**${approval}. It can be wrong. \`/agent help\` lists its commands; the label \`AI-PAUSE\` stops it here.</sub>`,
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

/** A third of GitHub's limit for a comment; the inbox shows the rest. */
const MAX_SHOWN = 20_000

interface ApprovalQuestion {
  /** `req_7`. */
  readonly id: string
  readonly agent: string
  readonly what: string
  readonly action: RepositoryAction
  /** Absent if the agent's words are not public (S3.15). */
  readonly rationale?: string
  readonly reason: string
  readonly quorum: number
  readonly confidence: number | undefined
  /** Time to decide. */
  readonly hours: number
}

/** The comment that asks for approval. It shows the whole proposal, because people decide right there. */
export function questionText(question: ApprovalQuestion, redact: (text: string) => string): string {
  const { id, agent, what, action, reason, quorum, confidence, hours } = question
  const sure = confidence === undefined ? '' : ` (confidence ${confidence})`
  const rationale = redact(question.rationale ?? '').trim()
  return [
    `**${agent}** wants to ${what}${sure}.`,
    ...(rationale === '' ? [] : ['', `> ${rationale.replaceAll(/\r\n|\r|\n/g, '\n> ')}`]),
    ...shownProposal(action, question.rationale === undefined, redact),
    '',
    `This needs approval, because ${reason}.${quorum > 1 ? ` ${quorum} people must approve.` : ''}`,
    '',
    `Comment \`/agent approve ${id}\` or \`/agent reject ${id}\`. Without a decision within ${hours} ${hours === 1 ? 'hour' : 'hours'}, nothing is done.`,
  ].join('\n')
}

function shownProposal(
  action: RepositoryAction,
  isConfidential: boolean,
  redact: (text: string) => string,
): string[] {
  const parts = partsOf(action)
  if (parts.length === 0) return []
  if (isConfidential) return ['', 'To see the proposal: `orc inbox`.']
  // Redacted before the cut, which could otherwise split a secret and leave half of it.
  const text = redact(parts.join('\n\n').toWellFormed())
  const isCut = text.length > MAX_SHOWN
  const kept = isCut ? text.slice(0, MAX_SHOWN).toWellFormed() : text
  const fence = '`'.repeat(Math.max(3, longestRun(kept) + 1))
  return [
    '',
    '<details><summary>The proposal</summary>',
    '',
    `${fence}text`,
    kept,
    fence,
    ...(isCut ? ['', 'The rest: `orc inbox`.'] : []),
    '',
    '</details>',
  ]
}

/** The fields that `describeAction` leaves out. */
function partsOf(action: RepositoryAction): string[] {
  const { files = [], ...fields } = action as { files?: readonly { path: string; content: string }[] }
  const texts = fields as Readonly<Record<string, unknown>>
  const lines = ['branch', 'head', 'base', 'title', 'message', 'reason'].flatMap((name) =>
    typeof texts[name] === 'string' ? [`${name}: ${texts[name]}`] : [],
  )
  return [
    ...(lines.length === 0 ? [] : [lines.join('\n')]),
    ...(typeof texts.body === 'string' ? [texts.body] : []),
    ...files.map(({ path, content }) => `--- ${path}\n${content}`),
  ]
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length))
}
