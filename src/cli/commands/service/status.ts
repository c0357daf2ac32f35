import type { AnswerOf } from '../../../api/contract.ts'
import type { Client } from '../../../client/client.ts'
import { openClient } from '../../connection/client.ts'
import { findService } from '../../connection/connection.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { agentsText, type ListedAgent, waitingFor } from '../../output/agent-table.ts'
import { githubLine } from '../../output/github-text.ts'
import { shortTime } from '../../output/message-text.ts'
import { paint, plain, plainLine, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'status',
  summary: 'show the service, the agents, pending messages and open requests',
  examples: ['orc status', 'orc status --json'],
  run: async ({ location, json }) => showStatus(await openClient(location), location, json),
}

function haltLine({ by, at, reason }: NonNullable<AnswerOf<'state'>['halt']>): string {
  const why = reason === undefined ? '' : `: ${plainLine(reason)}`
  return paint('red', `HALTED by ${by} at ${shortTime(at)}${why}. Resume with orc go.`)
}

/** Why an agent's session failed, from the last change of the session in the audit. */
async function troubles(client: Client, agents: readonly ListedAgent[]): Promise<string[]> {
  const lines: string[] = []
  for (const { name, session } of agents) {
    if (session !== 'error') continue
    try {
      for await (const { data } of client.audit({ agent: name, type: 'session.changed', limit: 1 })) {
        if (data.agent === name && typeof data.evidence === 'string')
          lines.push(`  ${name}: ${plainLine(data.evidence)}`)
      }
    } catch {
      // The caller may not be allowed to read the audit; show the rest anyway.
    }
  }
  return lines
}

export async function showStatus(client: Client, location: TeamLocation, json: boolean): Promise<number> {
  const state = await client.state()
  if (json) {
    printJson(state)
    return 0
  }
  const program = paint('bold', `Orchub ${state.version}`)
  print(
    `${program} at ${await findService(location)}, process ${state.pid}, since ${shortTime(state.started_at)}`,
  )
  // Empty for agents, which may not see the path of the store.
  if (state.store.place !== '') print(`store ${plain(state.store.place)}`)
  if (state.halt !== undefined) print(haltLine(state.halt))
  for (const { run_id, text } of state.troubles ?? []) print(paint('red', `${run_id}: ${plainLine(text)}`))
  print(agentsText(state.agents, waitingFor(state.deliveries)))
  for (const line of await troubles(client, state.agents)) print(paint('red', line))
  if (state.github !== undefined) print(githubLine(state.github))
  const { open_requests: open } = state
  print(open === 0 ? 'Nothing needs your attention.' : paint('yellow', `${open} waiting for you: orc inbox`))
  if (state.config.problem !== undefined) {
    print(paint('red', 'orc.yaml has mistakes; the previous configuration stays in force:'))
    print(plain(state.config.problem))
  }
  return 0
}
