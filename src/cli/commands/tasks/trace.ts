import type { AnswerOf, TaskStreamEvent } from '../../../api/contract.ts'
import { OPERATOR } from '../../../base/agent.ts'
import { AppError } from '../../../base/errors.ts'
import { openClient } from '../../connection/client.ts'
import { table } from '../../output/layout.ts'
import { shortTime } from '../../output/message-text.ts'
import { paint, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { isShownState, sequenceDiagram } from './sequence-diagram.ts'
import { brief, saidBrief } from './task-event-text.ts'
import { taskTree } from './task-text.ts'

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
  async run({ location, words, flag, option, json }) {
    if (json && flag('mermaid')) {
      throw new AppError('USAGE', '--json and --mermaid exclude each other', { hint: 'Drop one of them.' })
    }
    const limit = option('limit')
    const client = await openClient(location)
    const trace = await client.trace(words[0]!, limit === undefined ? {} : { limit })
    if (json) printJson(trace)
    else print(flag('mermaid') ? sequenceDiagram(trace) : traceText(trace))
    return 0
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
