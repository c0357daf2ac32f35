import type { AnswerOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import { openClient } from '../../connection/client.ts'
import { paint, plainLine, print, printJson } from '../../output/print.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { actionVerb } from './actions.ts'

const one = actionVerb('terminate_agent', {
  name: 'agent stop',
  summary: 'stop an agent and every process it started; --all halts everything',
  details:
    'An agent stays stopped until it is spawned. --all interrupts every busy agent and holds everything: nothing is\n' +
    'delivered, started or timed, and what agents say is refused, until `orc go`. It outlives a restart. The service\n' +
    'itself goes on; `orc down` ends that.',
})

export const verb = {
  ...one,
  arguments: [{ name: 'AGENT', rest: true, optional: true }],
  options: [{ name: 'all', summary: 'halt everything until `orc go`' }, ...(one.options ?? [])],
  examples: ['orc agent stop Worker', 'orc agent stop --all --reason "they go in circles"'],
  run: (invocation: Invocation) => (invocation.flag('all') ? stopAll(invocation) : stopSome(invocation)),
} as const satisfies typeof one

/** The same as `orc agent stop --all`. */
export const halt: Verb = {
  name: 'service halt',
  summary: 'interrupt every agent and hold everything until `orc go`',
  details:
    'Orchub delivers, starts and times nothing, and refuses what agents say, until `orc service go`. A restart does not\n' +
    'end it. The service itself keeps running; `orc down` stops that.',
  options: one.options ?? [],
  examples: ['orc service halt', 'orc service halt --reason "they go in circles"'],
  run: stopAll,
}

async function stopSome(invocation: Invocation): Promise<number> {
  if (invocation.words.length > 0) return await one.run(invocation)
  throw new AppError('USAGE', 'AGENT is missing', {
    hint: 'orc stop AGENT stops one; orc stop --all stops everything.',
  })
}

async function stopAll({ location, words, option, json }: Invocation): Promise<number> {
  if (words.length > 0) {
    throw new AppError('USAGE', 'Either --all or the names of agents', {
      hint: 'orc stop --all; why, if you like, is said with --reason "…"',
    })
  }
  const client = await openClient(location)
  const reason = option('reason')
  const answer = await client.halt(reason === undefined ? {} : { reason })
  if (json) printJson(answer)
  else print(haltText(answer))
  return answer.interrupts.every(({ stopped }) => stopped) ? 0 : 1
}

function haltText({ already, halt, interrupts }: AnswerOf<'halt'>): string {
  const why = halt.reason === undefined ? '' : `: ${plainLine(halt.reason)}`
  const lines = [
    already
      ? `Everything was stopped already, by ${halt.by}${why}.`
      : paint('bold', `Everything is stopped${why}.`),
  ]
  for (const { agent, stopped, evidence } of interrupts) {
    lines.push(
      stopped
        ? `  ${agent} was interrupted: ${plainLine(evidence)}`
        : paint('red', `  ${agent} did not stop: ${plainLine(evidence)}. End it: orc stop ${agent}`),
    )
  }
  return [...lines, 'orc go lets it go on.'].join('\n')
}
