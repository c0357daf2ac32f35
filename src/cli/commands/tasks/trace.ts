import type { AnswerOf, TaskStreamEvent } from '../../../api/contract.ts'
import { OPERATOR } from '../../../base/agent.ts'
import { openClient } from '../../connection/client.ts'
import { usage } from '../../errors.ts'
import { table } from '../../output/layout.ts'
import { paint } from '../../output/print.ts'
import { shortTime } from '../../output/receipt-text.ts'
import type { Verb } from '../../verb.ts'
import { taskTree } from './show.ts'
import { brief, messageBrief } from './task-event-text.ts'

export const verb: Verb = {
  name: 'task trace',
  summary: 'show the full history of a task and its subtasks',
  arguments: [{ name: 'TASK' }],
  options: [
    { name: 'mermaid', summary: 'as a Mermaid sequence diagram' },
    { name: 'limit', value: 'N', summary: 'at most N steps (default: 10000)' },
  ],
  examples: [
    'orc task trace task_7',
    'orc task trace task_7 --mermaid > flow.mmd',
    'orc task trace task_7 --json',
  ],
  async run({ location, words, flag, given, json, show }) {
    if (json && flag('mermaid')) {
      throw usage("--json can't be combined with --mermaid", 'Drop one of them.')
    }
    const client = await openClient(location)
    const trace = await client.trace(words[0]!, given('limit'))
    return show(trace, () => (flag('mermaid') ? sequenceDiagram(trace) : traceText(trace)))
  },
}

type TaskTrace = AnswerOf<'trace'>

/** The tree of tasks, then one line per event. */
function traceText({ task, tasks, steps, more }: TaskTrace): string {
  const rows = steps.flatMap((step) => {
    const line = describeStep(step)
    if (line === undefined) return []
    const { from, to, what, text } = line
    const delivery = step.type === 'message' ? deliveryText(step) : ''
    const parties = to === undefined ? from : `${from} → ${to}`
    // To the millisecond; the heading has the day.
    return [[step.at.slice(11, 23), parties, what, step.task_id, text + delivery]]
  })
  return [
    taskTree(tasks),
    '',
    `From ${shortTime(task.created_at)}${task.ended_at === undefined ? '' : ` to ${shortTime(task.ended_at)}`}:`,
    table(rows, '  '),
    ...(more ? [paint('dim', 'There are more events; raise --limit to see them.')] : []),
  ].join('\n')
}

function deliveryText({
  message_id,
  delivery,
  attempts = 1,
}: Extract<TaskStreamEvent, { type: 'message' }>): string {
  const how = [
    message_id,
    ...(delivery === undefined || delivery === 'read' ? [] : [delivery]),
    ...(attempts > 1 ? [`delivered ${attempts} times`] : []),
  ]
  return paint('dim', ` (${how.join(', ')})`)
}

/** One event of a trace, for the table and the diagram. */
interface TraceLine {
  from: string
  /** Undefined for an event that concerns one party only. */
  to?: string
  what: string
  text: string
}

/** Undefined for events that others already show. */
function describeStep(step: TaskStreamEvent): TraceLine | undefined {
  switch (step.type) {
    case 'selected': {
      const chosen = step.chosen.join(', ') || 'nobody'
      return { from: step.agent, what: 'chosen', text: `${chosen} (${step.by}): ${brief(step.why)}` }
    }
    case 'message':
      return { from: step.from, to: step.to, what: step.kind, text: messageBrief(step) }
    case 'asked': {
      const text = `${step.request_id}: ${brief(step.text)}`
      return { from: step.from, to: OPERATOR, what: step.awaits ? step.kind : 'notice', text }
    }
    case 'verdict': {
      const { by, to, verdict, request_id } = step
      const text = `${request_id}${step.text === '' ? '' : `: ${brief(step.text)}`}`
      return { from: by, ...(to === undefined ? {} : { to }), what: verdict, text }
    }
    case 'state': {
      if (!isShownState(step)) return undefined
      // The text begins with the agent and the state.
      const text = brief(step.text.replace(/^\S+ is \w+(, |: )?/, ''))
      return { from: step.agent, what: step.state, text }
    }
    case 'evidence':
      return { from: step.agent, what: step.step, text: `${step.outcome}: ${brief(step.text)}` }
    case 'halt':
      return { from: step.by, what: step.over ? 'go' : 'stop', text: brief(step.text) }
    case 'note':
      return { from: '', what: 'note', text: brief(step.text) }
    case 'delegated':
    case 'end':
      return undefined
  }
}

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'skipped', 'blocked'])

/** Only ends and new attempts; waiting shows in the messages. */
function isShownState({ state, attempt, text }: Extract<TaskStreamEvent, { type: 'state' }>): boolean {
  return ENDS.has(state) || (attempt > 1 && text.includes(', attempt '))
}

/** Drawn with dotted arrows, like verdicts. */
const REPLIES = /^(answer|report|partial|needs_help|failed|cancelled)$/

/** Renders a trace as a Mermaid sequence diagram. */
export function sequenceDiagram({ steps }: Pick<TaskTrace, 'steps'>): string {
  const ids = new Map<string, string>()
  const idOf = (name: string) => {
    if (!ids.has(name)) ids.set(name, `p${ids.size}`)
    return ids.get(name)!
  }
  const lines = steps.flatMap((step) => {
    const line = step.type === 'note' ? undefined : describeStep(step)
    if (line === undefined) return []
    const { from, to, what, text } = line
    const words = label(`${what} ${step.task_id}: ${text}`)
    if (to === undefined) return [`Note over ${idOf(from)}: ${words}`]
    const arrow = step.type === 'verdict' || REPLIES.test(what) ? '-->>' : '->>'
    return [`${idOf(from)}${arrow}${idOf(to)}: ${words}`]
  })
  const participants = [...ids].map(
    ([name, id]) => `${name === OPERATOR ? 'actor' : 'participant'} ${id} as ${label(name)}`,
  )
  return ['sequenceDiagram', ...[...participants, ...lines].map((line) => `  ${line}`)].join('\n')
}

/**
 * Escapes text for Mermaid: everything but letters, digits and a few signs becomes an entity, so that nothing ends the
 * line, starts a comment or directive, or counts as markup. Mermaid marks entities with the ligature itself.
 */
function label(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\p{L}\p{N} .,()/_!?'+=-]|ﬂ/gu, (character) => `#${character.codePointAt(0)};`)
}
