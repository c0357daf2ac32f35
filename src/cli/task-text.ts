import type { AnswerOf } from '../service/contract.ts'
import { shortTime } from './mail-text.ts'
import { plainLine } from './output.ts'
import { table } from './table.ts'

export type TaskLine = AnswerOf<'tasks'>['tasks'][number]
export type TaskShown = AnswerOf<'task'>

const SHOWN = 60

function short(text: string): string {
  const line = plainLine(text.split('\n', 1)[0]!)
  return line.length > SHOWN ? `${line.slice(0, SHOWN - 1)}…` : line
}

/** Each tree together, children below their parents. */
export function taskTree(tasks: readonly TaskLine[]): string {
  const known = new Set(tasks.map(({ id }) => id))
  const childrenOf = Map.groupBy(tasks, ({ parent }) =>
    parent !== undefined && known.has(parent) ? parent : '',
  )
  const rows = (parent: string, depth: number): string[][] =>
    (childrenOf.get(parent) ?? []).flatMap((task) => [
      [`${'  '.repeat(depth)}${task.id}`, `${task.delegator} → ${task.agent}`, task.state, short(task.task)],
      ...rows(task.id, depth + 1),
    ])
  return table(rows('', 0))
}

export function whyText({ id, state, waits_for, due, reason }: TaskLine): string {
  const lines = [`${id} is ${state}${reason === undefined ? '' : `: ${plainLine(reason)}`}`]
  for (const wait of waits_for) lines.push(`  waits for ${plainLine(wait)}`)
  if (due !== undefined) lines.push(`  ${due.kind} at ${shortTime(due.at)}`)
  return lines.join('\n')
}

export function taskText(task: TaskShown): string {
  const messages = task.messages.map(({ at, from, to, kind, title, delivery }) => [
    shortTime(at),
    `${from} → ${to}`,
    kind ?? '',
    delivery,
    short(title),
  ])
  const evidence = task.evidence.map(
    ({ step, passed, text }) => `${step} ${passed ? 'passed' : 'failed'}: ${text}`,
  )
  return [
    whyText(task),
    `  from ${task.delegator} to ${task.agent}, attempt ${task.attempt} of ${task.max_attempts}, since ${shortTime(task.created_at)}`,
    '',
    task.task,
    ...(task.result === undefined ? [] : ['', 'Result:', task.result]),
    ...(evidence.length === 0 ? [] : ['', 'Evidence:', ...evidence]),
    ...(task.children.length === 0 ? [] : ['', 'Delegated:', taskTree(task.children)]),
    '',
    'Messages:',
    table(messages, '  '),
  ].join('\n')
}
