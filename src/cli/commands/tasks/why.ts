import type { AnswerOf } from '../../../api/contract.ts'
import { noteHalt, openClient } from '../../connection/client.ts'
import { plainLine, print, printJson } from '../../output/print.ts'
import { shortTime } from '../../output/receipt-text.ts'
import type { Verb } from '../../verb.ts'

export type TaskLine = AnswerOf<'tasks'>['tasks'][number]

/** Shows what a task waits for and since when, down to the subtasks that block it. */
function whyTree({ task, tasks, steps }: AnswerOf<'trace'>): string {
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

export const verb: Verb = {
  name: 'why',
  summary: 'explain what a task is waiting for, on whom and since when',
  arguments: [{ name: 'TASK' }],
  examples: ['orc why task_7'],
  async run({ location, words, json }) {
    const client = await openClient(location)
    if (json) {
      const { id, state, waits_for, due, reason } = await client.task(words[0]!)
      printJson({ id, state, waits_for, due, reason })
    } else {
      print(whyTree(await client.trace(words[0]!)))
      await noteHalt(client)
    }
    return 0
  },
}
