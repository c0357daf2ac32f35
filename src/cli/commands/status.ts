import type { Client } from '../../client/client.ts'
import type { AnswerOf } from '../../service/contract.ts'
import { agentsText, waitingFor } from '../agents-text.ts'
import { openClient } from '../connect.ts'
import { githubLine } from '../github-text.ts'
import { shortTime } from '../mail-text.ts'
import { paint, plain, plainLine, print, printJson } from '../output.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'status',
  group: 'Look',
  summary: 'the service and the team at a glance: agents, waiting messages, open requests',
  examples: ['orc status', 'orc status --json'],
  run: async ({ place, json }) => showStatus(await openClient(place), json),
}

function haltLine({ by, at, reason }: NonNullable<AnswerOf<'state'>['halt']>): string {
  const why = reason === undefined ? '' : `: ${plainLine(reason)}`
  return paint('red', `EVERYTHING IS STOPPED by ${by} since ${shortTime(at)}${why}. orc go lets it go on.`)
}

export async function showStatus(client: Client, json: boolean): Promise<number> {
  const state = await client.state()
  if (json) {
    printJson(state)
    return 0
  }
  print(
    `${paint('bold', `Orchub ${state.version}`)}, process ${state.pid}, since ${shortTime(state.started_at)}`,
  )
  print(`store ${state.store.engine}: ${plain(state.store.place)}`)
  if (state.halt !== undefined) print(haltLine(state.halt))
  print(agentsText(state.agents, waitingFor(state.deliveries)))
  if (state.github !== undefined) print(githubLine(state.github))
  const { open_requests: open } = state
  print(
    open === 0 ? 'Nobody waits for a person.' : paint('yellow', `${open} waiting for a person: orc inbox`),
  )
  if (state.config.problem !== undefined) {
    print(paint('red', 'orc.yaml has mistakes; the configuration before it is in force:'))
    print(plain(state.config.problem))
  }
  return 0
}
