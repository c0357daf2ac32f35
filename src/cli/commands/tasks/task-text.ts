import type { AnswerOf } from '../../../api/contract.ts'
import { table } from '../../output/layout.ts'
import { shortTime } from '../../output/message-text.ts'
import { paint, plainLine } from '../../output/print.ts'

type TaskLine = AnswerOf<'tasks'>['tasks'][number]

const SHOWN = 60

export function shortLine(text: string): string {
  const line = plainLine(text.split('\n', 1)[0]!)
  return line.length > SHOWN ? `${line.slice(0, SHOWN - 1)}…` : line
}

/** Groups tasks by tree, children below their parents. */
export function taskTree(tasks: readonly TaskLine[]): string {
  const known = new Set(tasks.map(({ id }) => id))
  const childrenOf = Map.groupBy(tasks, ({ parent }) =>
    parent !== undefined && known.has(parent) ? parent : '',
  )
  const states: TaskLine['state'][] = []
  function rows(parent: string, indent: string): string[][] {
    const tasks = childrenOf.get(parent) ?? []
    return tasks.flatMap((task, index) => {
      const isLast = index === tasks.length - 1
      const branch = parent === '' ? '' : isLast ? '└─ ' : '├─ '
      const below = parent === '' ? '' : isLast ? '   ' : '│  '
      states.push(task.state)
      return [
        [
          `${indent}${branch}${task.id}`,
          `${task.delegator} → ${task.agent}`,
          task.attempt > 1 ? `${task.state}, attempt ${task.attempt}` : task.state,
          shortLine(task.task),
        ],
        ...rows(task.id, indent + below),
      ]
    })
  }
  const all = rows('', '')
  let row = 0
  return table(all, '', (cell, column) => {
    if (column === 0) row++
    return column === STATE_COLUMN ? paintState(states[row - 1]!, cell) : cell
  })
}

const STATE_COLUMN = 2
const WAITING: ReadonlySet<string> = new Set(['waiting_user', 'waiting_approval', 'blocked'])

function paintState(state: TaskLine['state'], text: string): string {
  if (state === 'completed') return paint('green', text)
  if (state === 'failed') return paint('red', text)
  return WAITING.has(state) ? paint('yellow', text) : text
}

/** Shows what a task waits for and since when, down to the subtasks that block it. */
export function whyTree({ task, tasks, steps }: AnswerOf<'trace'>): string {
  const since = new Map(steps.flatMap((step) => (step.type === 'state' ? [[step.task_id, step.at]] : [])))
  const childrenOf = Map.groupBy(tasks, ({ parent }) => parent)
  const lines = (one: TaskLine, indent: string): string[] => {
    const at = one.ended_at === undefined ? (since.get(one.id) ?? one.created_at) : undefined
    const own = whyText(one, at).replace(/^/gm, indent)
    const below = (childrenOf.get(one.id) ?? []).filter(({ ended_at }) => ended_at === undefined)
    return [own, ...below.flatMap((child) => lines(child, `${indent}    `))]
  }
  return lines(task, '').join('\n')
}

/** Effect of each timer when it expires. A newer service may send others. */
const DUE: Readonly<Record<string, string>> = {
  ack: 'without an acknowledgement, the attempt fails',
  retry: 'the next attempt starts',
  deadline: 'its deadline passes',
  validation: 'the wait for its judge ends',
}

export function whyText({ id, state, waits_for, due, reason }: TaskLine, since?: string): string {
  const when = since === undefined ? '' : ` since ${shortTime(since)}`
  const lines = [`${id} is ${state}${when}${reason === undefined ? '' : `: ${plainLine(reason)}`}`]
  for (const wait of waits_for) lines.push(`  waits for ${plainLine(wait)}`)
  if (due !== undefined) lines.push(`  ${DUE[due.kind] ?? due.kind} at ${shortTime(due.at)}`)
  return lines.join('\n')
}
