import { spawn } from 'node:child_process'
import type { AnswerOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Client } from '../../../client/client.ts'
import { openClient } from '../../connection/client.ts'
import { findService, openConnection, type TeamLocation } from '../../connection/connection.ts'
import { paint, plain, plainLine, print, printJson } from '../../output/print.ts'
import { agentsText, type ListedAgent, shortTime, waitingFor } from '../../output/receipt-text.ts'
import type { Verb } from '../../verb.ts'
import { githubLine } from '../github/status.ts'

export const verb: Verb = {
  name: 'status',
  summary: 'show the service, the agents, pending messages and open requests',
  examples: ['orc status', 'orc status --json'],
  run: async ({ location, json }) => showStatus(await openClient(location), location, json),
}

function haltLine({ by, at, reason }: NonNullable<AnswerOf<'state'>['halt']>): string {
  const why = reason === undefined ? '' : `: ${plainLine(reason)}`
  return paint('red', `HALTED by ${by} at ${shortTime(at)}${why}. Resume with orc service go.`)
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

export const open: Verb = {
  name: 'open',
  summary: 'open the control room in a browser with a one-time link',
  details:
    'The session has the rights of your token. The link is valid for 5 minutes, the session for 7 days.\n' +
    '`orc token list` shows it; `orc token revoke ID` ends it at once.',
  options: [{ name: 'print', summary: 'print the link without opening a browser' }],
  examples: ['orc open', 'orc open --print'],
  async run({ location, json, flag }) {
    const { address } = await openConnection(location)
    if (address.startsWith('unix:')) {
      throw new AppError('CONFLICT', 'A browser cannot reach a service on a Unix socket', {
        hint: 'Make it listen on a port: set service.port in orc.yaml and remove unix_socket.',
      })
    }
    const { path, expires_at } = await (await openClient(location)).mintLogin()
    const url = address + path
    if (json) printJson({ url, expires_at })
    else print(url)
    if (!json && !flag('print') && process.stdout.isTTY === true) openInBrowser(url)
    return 0
  },
}

/** Ignores a missing browser, because the link was printed. */
function openInBrowser(url: string) {
  const command = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(command, [url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}
