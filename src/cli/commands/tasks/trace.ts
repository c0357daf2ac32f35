import type { AnswerOf, TaskStreamEvent } from '../../../api/contract.ts'
import { OPERATOR } from '../../../base/agent.ts'
import { AppError } from '../../../base/errors.ts'
import { openClient } from '../../connection/client.ts'
import { table } from '../../output/layout.ts'
import { paint } from '../../output/print.ts'
import { shortTime } from '../../output/receipt-text.ts'
import type { Verb } from '../../verb.ts'
import { taskTree } from './show.ts'
import { brief, saidBrief } from './task-event-text.ts'

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
      throw new AppError('USAGE', "--json can't be combined with --mermaid", { hint: 'Drop one of them.' })
    }
    const client = await openClient(location)
    const trace = await client.trace(words[0]!, given('limit'))
    return show(trace, () => (flag('mermaid') ? sequenceDiagram(trace) : traceText(trace)))
  },
}

type TaskTrace = AnswerOf<'trace'>

/** The tree of tasks, then one line per event. */
function traceText({ task, tasks, steps, more }: TaskTrace): string {
  return [
    taskTree(tasks),
    '',
    `From ${shortTime(task.created_at)}${task.ended_at === undefined ? '' : ` to ${shortTime(task.ended_at)}`}:`,
    table(
      steps.flatMap((step) => rowOf(step) ?? []).map((row) => [timeOf(row.at), ...row.cells]),
      '  ',
    ),
    ...(more ? [paint('dim', 'There are more events; raise --limit to see them.')] : []),
  ].join('\n')
}

/** To the millisecond; the heading has the day. */
function timeOf(iso: string): string {
  return iso.slice(11, 23)
}

interface TraceRow {
  at: string
  cells: readonly [way: string, what: string, task: string, text: string]
}

function rowOf(step: TaskStreamEvent): TraceRow[] | undefined {
  const { at, task_id } = step
  const row = (way: string, what: string, text: string): TraceRow[] => [
    { at, cells: [way, what, task_id, text] },
  ]
  switch (step.type) {
    case 'selected':
      return row(
        step.agent,
        'chosen',
        `${step.chosen.join(', ') || 'nobody'} (${step.by}): ${brief(step.why)}`,
      )
    case 'message':
      return row(`${step.from} → ${step.to}`, step.kind, `${saidBrief(step)}${deliveryText(step)}`)
    case 'asked':
      return row(
        `${step.from} → ${OPERATOR}`,
        step.awaits ? step.kind : 'notice',
        `${step.request_id}: ${brief(step.text)}`,
      )
    case 'verdict': {
      const { by, to, verdict, request_id, text } = step
      return row(
        to === undefined ? by : `${by} → ${to}`,
        verdict,
        `${request_id}${text === '' ? '' : `: ${brief(text)}`}`,
      )
    }
    case 'state':
      return isShownState(step) ? row(step.agent, step.state, brief(withoutHead(step.text))) : undefined
    case 'evidence':
      return row(step.agent, step.step, `${step.outcome}: ${brief(step.text)}`)
    case 'halt':
      return row(step.by, step.over ? 'go' : 'stop', brief(step.text))
    case 'note':
      return row('', 'note', brief(step.text))
    case 'delegated':
    case 'end':
      return undefined
  }
}

/** Drops the beginning that repeats the columns before it. */
function withoutHead(text: string): string {
  return text.replace(/^\S+ is \w+(, |: )?/, '')
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

type TraceSteps = Pick<AnswerOf<'trace'>, 'steps'>

/** Renders a trace as a Mermaid sequence diagram. */
export function sequenceDiagram({ steps }: TraceSteps): string {
  const names = new Map<string, string>()
  const idOf = (name: string) => {
    if (!names.has(name)) names.set(name, `p${names.size}`)
    return names.get(name)!
  }
  const lines = steps.flatMap((step) => lineOf(step, idOf) ?? [])
  const participants = [...names].map(
    ([name, id]) => `${name === OPERATOR ? 'actor' : 'participant'} ${id} as ${label(name)}`,
  )
  return ['sequenceDiagram', ...[...participants, ...lines].map((line) => `  ${line}`)].join('\n')
}

const DOTTED: ReadonlySet<string> = new Set([
  'answer',
  'report',
  'partial',
  'needs_help',
  'failed',
  'cancelled',
])

function lineOf(step: TaskStreamEvent, idOf: (name: string) => string): string | undefined {
  const note = (over: string, text: string) => `Note over ${idOf(over)}: ${label(text)}`
  switch (step.type) {
    case 'selected':
      return note(step.agent, `chosen: ${step.chosen.join(', ') || 'nobody'}. ${brief(step.why)}`)
    case 'message': {
      const { from, to, kind, task_id, attempts = 1 } = step
      const arrow = DOTTED.has(kind) ? '-->>' : '->>'
      const again = attempts > 1 ? `, delivered ${attempts} times` : ''
      return `${idOf(from)}${arrow}${idOf(to)}: ${label(`${kind} ${task_id}${again}: ${saidBrief(step)}`)}`
    }
    case 'asked':
      return `${idOf(step.from)}->>${idOf(OPERATOR)}: ${label(`${step.kind} ${step.request_id}: ${brief(step.text)}`)}`
    case 'verdict': {
      const { to, by, request_id, verdict, text } = step
      const words = `${verdict} ${request_id}${text === '' ? '' : `: ${brief(text)}`}`
      return to === undefined ? note(by, words) : `${idOf(by)}-->>${idOf(to)}: ${label(words)}`
    }
    case 'state':
      return isShownState(step) ? note(step.agent, brief(step.text)) : undefined
    case 'evidence':
      return note(step.agent, `${step.task_id} ${step.step} ${step.outcome}: ${brief(step.text)}`)
    case 'halt':
      return note(step.by, brief(step.text))
    case 'delegated':
    case 'note':
    case 'end':
      return undefined
  }
}

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'skipped', 'blocked'])

/** Only ends and new attempts; waiting shows in the messages. */
function isShownState({ state, attempt, text }: Extract<TaskStreamEvent, { type: 'state' }>): boolean {
  return ENDS.has(state) || (attempt > 1 && text.includes(', attempt '))
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
