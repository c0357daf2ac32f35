import type { Action } from '../core/action.ts'

/** Of what GitHub takes in a comment, a third: the rest is in the inbox. */
const MOST_SHOWN = 20_000

export interface Question {
  /** `req_7`. */
  readonly id: string
  readonly agent: string
  readonly what: string
  readonly action: Action
  /** Left out where the agent's own words are not public (S3.15). */
  readonly words: { readonly rationale: string } | undefined
  readonly reason: string
  readonly quorum: number
  readonly confidence: number | undefined
  /** After which it is not done. */
  readonly hours: number
}

/** What stands in the thread: whoever answers there has seen what they say yes to. */
export function questionText(asked: Question, redact: (text: string) => string): string {
  const { id, agent, what, action, words, reason, quorum, confidence, hours } = asked
  const sure = confidence === undefined ? '' : ` (confidence ${confidence})`
  const rationale = words === undefined ? '' : redact(words.rationale).trim()
  return [
    `**${agent}** would like to ${what}${sure}.`,
    ...(rationale === '' ? [] : ['', `> ${rationale.replaceAll(/\r\n|\r|\n/g, '\n> ')}`]),
    ...shown(action, words === undefined, redact),
    '',
    `A person decides, because ${reason}.${quorum > 1 ? ` It takes ${quorum} people.` : ''}`,
    '',
    `Comment \`/agent approve ${id}\` or \`/agent reject ${id}\`. Without an answer within ${hours} ${hours === 1 ? 'hour' : 'hours'}, it is not done.`,
  ].join('\n')
}

function shown(action: Action, isConfidentialRole: boolean, redact: (text: string) => string): string[] {
  const parts = partsOf(action)
  if (parts.length === 0) return []
  if (isConfidentialRole) return ['', 'What it would write: `orc inbox`.']
  // Cleaned as a whole: of a secret that a cut goes through, the first half would stay.
  const text = redact(parts.join('\n\n').toWellFormed())
  const isCut = text.length > MOST_SHOWN
  const kept = isCut ? text.slice(0, MOST_SHOWN).toWellFormed() : text
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

/** What the one line about it does not say. */
function partsOf(action: Action): string[] {
  const { files = [], ...fields } = action as { files?: readonly { path: string; content: string }[] }
  const said = fields as Readonly<Record<string, unknown>>
  const lines = ['branch', 'head', 'base', 'title', 'message', 'reason'].flatMap((name) =>
    typeof said[name] === 'string' ? [`${name}: ${said[name]}`] : [],
  )
  return [
    ...(lines.length === 0 ? [] : [lines.join('\n')]),
    ...(typeof said.body === 'string' ? [said.body] : []),
    ...files.map(({ path, content }) => `--- ${path}\n${content}`),
  ]
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length))
}
