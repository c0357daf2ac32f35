import type { AnswerOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import { openClient } from '../../connection/client.ts'
import { paint, plainLine, print, printJson } from '../../output/print.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { actionVerb } from './actions.ts'

const one = actionVerb('terminate_agent', {
  name: 'agent stop',
  summary: 'stop an agent and every process it started; --all halts everything',
  details: 'An agent stays stopped until `orc agent start`. --all is the same as `orc service halt`.',
})

export const verb = {
  ...one,
  arguments: [{ name: 'AGENT', rest: true, optional: true }],
  options: [{ name: 'all', summary: 'halt everything until `orc go`' }, ...(one.options ?? [])],
  examples: ['orc agent stop Worker', 'orc agent stop --all --reason "stuck in a loop"'],
  run: (invocation: Invocation) => (invocation.flag('all') ? stopAll(invocation) : stopSome(invocation)),
} as const satisfies typeof one

/** The same as `orc agent stop --all`. */
export const halt: Verb = {
  name: 'service halt',
  summary: 'interrupt every agent and hold everything until `orc go`',
  details:
    'Until `orc service go`, Orchub delivers and starts nothing, stops all timers, and refuses commands of agents. A\n' +
    'restart does not end a halt. The service itself keeps running; `orc down` stops it.',
  options: one.options ?? [],
  examples: ['orc service halt', 'orc service halt --reason "stuck in a loop"'],
  run: stopAll,
}

async function stopSome(invocation: Invocation): Promise<number> {
  if (invocation.words.length > 0) return await one.run(invocation)
  throw new AppError('USAGE', 'AGENT is missing', {
    hint: 'orc agent stop AGENT stops one agent; orc agent stop --all halts everything.',
  })
}

async function stopAll({ location, words, option, json }: Invocation): Promise<number> {
  if (words.length > 0) {
    throw new AppError('USAGE', '--all takes no names of agents', {
      hint: 'Drop --all or the names. A reason goes into --reason "…".',
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
  const lines = [already ? `Already halted by ${halt.by}${why}.` : paint('bold', `Halted${why}.`)]
  for (const { agent, stopped, evidence } of interrupts) {
    lines.push(
      stopped
        ? `  interrupted ${agent}: ${plainLine(evidence)}`
        : paint('red', `  ${agent} did not stop: ${plainLine(evidence)}. Stop it: orc agent stop ${agent}`),
    )
  }
  return [...lines, 'Resume with orc go.'].join('\n')
}
