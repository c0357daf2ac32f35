/** Comments of the service on GitHub: their texts, signatures and marks, and the escalation of failures. */
import { ORCHESTRATOR } from '../base/agent.ts'
import { formatId } from '../base/ids.ts'
import { type HumanRequestRow, notifyPeople } from '../people/people.ts'
import type { Tx } from '../store/store.ts'
import { actionKey, describeAction, type RepositoryAction } from './core/action.ts'
import type { TaskError } from './core/report.ts'
import type { GithubDependencies } from './dependencies.ts'
import { approverLogins } from './roles.ts'
import { type ActionRow, type GithubWork, insertAction } from './store.ts'

/** A thread, and the reason for writing there: the same text for the same source is posted once, even after a crash. */
interface CommentThread {
  readonly source: string
  readonly repository: string
  readonly number: number
}

const ERROR_LABEL = 'agent-error'

/** Posts a comment of the service itself. Mentions only `tagged` logins, whatever agents wrote into the text. */
export async function commentAsService(
  tx: Tx,
  thread: CommentThread,
  text: string,
  tagged: readonly string[] = [],
) {
  const body = [withoutMentions(text, tagged), ...tagged.map((login) => `@${login}`)].join(' ')
  await insertServiceAction(tx, thread, { kind: 'comment', number: thread.number, body })
}

/** S3.12. */
async function labelError(tx: Tx, thread: CommentThread) {
  await insertServiceAction(tx, thread, { kind: 'label', number: thread.number, label: ERROR_LABEL })
}

async function insertServiceAction(
  tx: Tx,
  { source, repository, number }: CommentThread,
  action: RepositoryAction,
) {
  await insertAction(tx, {
    key: actionKey(source, action),
    work: source,
    agent: ORCHESTRATOR,
    repository,
    number,
    action: JSON.stringify(action),
    confidence: null,
    rationale: '',
    state: 'ready',
    request: null,
    note: null,
  })
}

/**
 * After the last attempt: tells people in the inbox, and on GitHub by mentioning the maintainers (S3.12, C7). The agent's
 * own words go to the inbox only: they may quote private text.
 */
export async function escalateFailedWork(
  { settings, redact }: GithubDependencies,
  tx: Tx,
  { id, agent, repository, number }: GithubWork,
  error: TaskError,
): Promise<void> {
  const where = number === null ? repository : `${repository}#${number}`
  const tries = error.retry_count === 0 ? '' : ` after ${error.retry_count} retries`
  await notifyPeople(tx, {
    agent,
    question: `${agent} failed at ${where}${tries}: ${error.error_type}`,
    reason: redact(`${error.error_message} ${error.suggested_action}`.slice(0, 2000)),
  })
  if (number === null) return
  const thread = { source: `${id}/failed`, repository, number }
  await labelError(tx, thread)
  const { maintainers } = settings()
  if (maintainers.length === 0) return
  const text = `**${agent}** could not do its work here (\`${error.error_type}\`${tries}). ${error.suggested_action}`
  await commentAsService(tx, thread, text, maintainers)
}

/** Not called for the service's own comments, or a failing comment would cause another one. */
export async function escalateFailedAction(
  { settings, redact }: GithubDependencies,
  tx: Tx,
  { agent, work, repository, number }: ActionRow,
  action: RepositoryAction,
  why: string,
): Promise<void> {
  if (number === null) return
  const thread = { source: `${work}/error`, repository, number }
  await labelError(tx, thread)
  const text = `**${agent}** could not ${describeAction(action)}: ${redact(why)}`
  await commentAsService(tx, thread, text, settings().maintainers)
}

/** Mentions the approvers, or the maintainers if no approver has a login (C9). The inbox has a notice already. */
export async function escalateExpiredRequest(
  { settings, team }: GithubDependencies,
  tx: Tx,
  { id: key, expires_at, created_at }: HumanRequestRow,
  { agent, repository, number }: ActionRow,
  what: string,
): Promise<void> {
  if (number === null) return
  const id = formatId('req', key)
  const hours = Math.round((expires_at - created_at) / 360_000) / 10
  const text = `Nobody decided on ${id} within ${hours} hours, so **${agent}** did not ${what}.`
  const thread = { source: `${id}/expired`, repository, number }
  const approvers = approverLogins(team())
  await commentAsService(tx, thread, text, approvers.length === 0 ? settings().maintainers : approvers)
}

const MARK = 'orchub:action='
const KEY = /^[0-9a-f]{32}$/

/** A hidden comment that identifies our text, so that it isn't posted again after a crash. */
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
  // The text must not contain the mark of another action.
  const unmarked = text.replaceAll(MARK, 'orchub:')
  return [
    withoutMentions(unmarked, mayMention),
    '',
    '---',
    `<sub>🤖 Written by the AI agent **${agent}**${approval}. It can be wrong. \`/agent help\` lists its commands; the label \`AI-PAUSE\` stops it here.</sub>`,
    markOf(key),
  ].join('\n')
}

/** Defuses mentions, so that a manipulated model cannot notify every member of an organization. */
export function withoutMentions(text: string, allowed: readonly string[]): string {
  const may = new Set(allowed.map((login) => login.toLowerCase()))
  // After a letter or a digit, the @ belongs to an email address. Mentions in code are defused too: only GitHub's parser
  // knows where code begins.
  return text.replace(
    /(?<![A-Za-z0-9])(?:@|&#0*64;|&#x0*40;|&commat;)([A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\/[\w.-]+)?)/gi,
    (whole, name: string) => (may.has(name.toLowerCase()) ? whole : `@\u200b${name}`),
  )
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
  const longest = Math.max(2, ...(kept.match(/`+/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(longest + 1)
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
