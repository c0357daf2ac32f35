import type { Client } from '../../../client/client.ts'
import type { AnswerOf } from '../../../service/contract.ts'
import { exitCode } from '../../exit-code.ts'
import { complain, paint, plainLine, print, printJson } from '../../output/print.ts'
import { untilInterrupted } from '../../until-interrupted.ts'

type Trail = AnswerOf<'githubEvent'>

const AGAIN_MS = 300

/** Shows what comes of an event until nothing more does by itself. */
export async function followTrail(client: Client, delivery: string, json: boolean): Promise<number> {
  if (!json) complain(paint('dim', `It is ${delivery}. Ctrl-C leaves it to the service.`, 'err'))
  let last: Trail | undefined
  const shown = new Set<string>()
  const code = await untilInterrupted(async (signal) => {
    for (;;) {
      last = await client.githubEvent(delivery)
      if (!json) for (const line of linesOf(last)) if (!shown.has(line) && shown.add(line)) print(line)
      if (last.settled || signal.aborted) return
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  })
  if (json && last !== undefined) printJson(last)
  if (code !== 0 || last === undefined) return code
  const isBad =
    last.state === 'failed' || [...last.work, ...last.actions].some(({ state }) => state === 'failed')
  return exitCode(isBad ? 'error' : 'ok')
}

function* linesOf({ state, note, work, actions }: Trail): Generator<string> {
  if (state !== 'waiting' && (state !== 'routed' || note !== undefined))
    yield `${state}: ${plainLine(note ?? '')}`
  if (state === 'routed' && note === undefined && work.length === 0 && actions.length === 0)
    yield 'Nobody gets it: no step of its event fits, or nobody fills the role.'
  for (const { role, agent, state: at, task_id } of work)
    yield `${role} → ${agent}: ${at}${task_id === undefined ? '' : ` (${task_id})`}`
  for (const { agent, what, state: at, note: why, request_id, url } of actions) {
    if (at === 'ready' || at === 'acting') continue
    const more = [at === 'done' ? undefined : why, request_id, url].filter((one) => one !== undefined)
    yield `${agent}: ${plainLine(what)}: ${at}${more.length === 0 ? '' : ` (${plainLine(more.join(', '))})`}`
  }
}
