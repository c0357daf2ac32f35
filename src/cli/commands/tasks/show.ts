import type { AnswerOf } from '../../../api/contract.ts'
import { openClient } from '../../connection/client.ts'
import { table } from '../../output/layout.ts'
import { indent, shortTime } from '../../output/message-text.ts'
import { paint, plain, plainLine, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { shortLine, taskTree, whyText } from './task-text.ts'

export const verb: Verb = {
  name: 'task show',
  summary: 'show one task: its state, its messages, and the evidence of its result',
  arguments: [{ name: 'ID' }],
  examples: ['orc task show task_7'],
  async run({ location, words, json }) {
    const task = await (await openClient(location)).task(words[0]!)
    if (json) printJson(task)
    else print(taskDetail(task))
    return 0
  },
}

type TaskShown = AnswerOf<'task'>
type Evidence = TaskShown['evidence'][number]
type Spent = NonNullable<TaskShown['spent']>

/** Indents text that others wrote, so that no line of it can imitate our own output. */
function taskDetail(task: TaskShown): string {
  const { result, claim, children, messages } = task
  return [
    whyText(task),
    `  from ${task.delegator} to ${task.agent}, attempt ${task.attempt} of ${task.max_attempts}, since ${shortTime(task.created_at)}`,
    ...(task.checks.length === 0 ? [] : [`  checks: ${plainLine(task.checks.join(', '))}`]),
    ...(task.judge === undefined ? [] : [`  judge: ${task.judge.kind} ${task.judge.name}`]),
    ...spentLines(task),
    ...section('Task:', indent(plain(task.task))),
    ...section('Failed attempts:', ...task.attempts.map(attemptLine)),
    ...(result === undefined ? [] : section('Result:', indent(plain(result)))),
    ...(claim === undefined
      ? []
      : section(`Claim ${claim.number}, being validated:`, indent(plain(claim.result)))),
    ...section('Evidence:', ...task.evidence.flatMap(evidenceLines)),
    ...section('Open questions:', ...task.questions.map(questionLine)),
    ...(children.length === 0 ? [] : section('Delegated:', taskTree(children))),
    ...(messages.length === 0 ? [] : section('Messages:', table(messages.map(messageRow), '  '))),
  ].join('\n')
}

function section(title: string, ...lines: string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines]
}

function spentLines({ spent, spending, spent_below: below }: TaskShown): string[] {
  if (spent === undefined && below === undefined) return []
  const by = spending.map((one) => `${one.agent} ${sumText(one)}`).join('; ')
  return [
    ...(spent === undefined ? [] : [`  spent: ${sumText(spent)}${spending.length > 1 ? ` (${by})` : ''}`]),
    ...(below === undefined ? [] : [`  spent by subtasks: ${sumText(below)}`]),
  ]
}

function sumText({ answers, input, output, cache_read, cache_write, cost, unpriced }: Spent): string {
  const tokens = `${input + cache_read + cache_write} in, ${output} out`
  const price = cost === 0 ? [] : [cost.toFixed(4)]
  const without = unpriced === 0 ? [] : [`${unpriced} of ${answers} answers without a price`]
  return [...price, tokens, ...without].join(', ')
}

function attemptLine({ attempt, at, why }: TaskShown['attempts'][number]): string {
  return `  ${shortTime(at)}  attempt ${attempt}: ${plainLine(why)}`
}

const COLOUR = { passed: 'green', failed: 'red', unavailable: 'yellow', skipped: 'dim' } as const

function evidenceLines({ claim, step, outcome, text, at, by, checks, commit, dirty }: Evidence): string[] {
  const who = by === undefined ? '' : ` by ${by}`
  const place =
    commit === undefined ? '' : `, at ${commit.slice(0, 12)}${dirty ? ' with uncommitted changes' : ''}`
  const head = `  ${shortTime(at)}  claim ${claim}  ${step} ${paint(COLOUR[outcome], outcome)}${who}${place}`
  // The text only summarizes the checks.
  if (checks === undefined) return [`${head}: ${plain(text).replaceAll('\n', '\n      ')}`]
  return [head, ...checks.flatMap(checkLines)]
}

function checkLines({ name, passed, why, output, ms }: NonNullable<Evidence['checks']>[number]): string[] {
  const outcome = passed ? 'passed' : 'failed'
  const head = `    ${plainLine(name)} ${paint(COLOUR[outcome], outcome)} (${plainLine(why)}, ${ms / 1000} s)`
  const printed = plain(output).trim()
  return printed === '' ? [head] : [head, indent(printed).replace(/^/gm, '  ')]
}

function questionLine({ id, kind, to, text }: TaskShown['questions'][number]): string {
  // A question without its own message or request is answered by the id of the task.
  const named = id.includes('/') ? kind : `${id} (${kind})`
  return `  ${named} to ${to}: ${plainLine(text)}`
}

function messageRow({ at, from, to, kind, content, delivery }: TaskShown['messages'][number]): string[] {
  return [shortTime(at), `${from} → ${to}`, kind ?? '', delivery, shortLine(content.trimStart())]
}
