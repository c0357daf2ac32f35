import { isatty } from 'node:tty'
import { AppError } from '../../base/errors.ts'
import { unknownAgent } from '../../commands/identity.ts'
import { createTeam, isOperatorName } from '../../commands/team.ts'
import { type Offline, onlineOrOffline } from '../connection/client.ts'
import { counted, table } from '../output/layout.ts'
import { complain, print, printJson } from '../output/print.ts'
import { shortTime } from '../output/receipt-text.ts'
import type { Verb } from '../verb.ts'

export const create: Verb = {
  name: 'token create',
  summary: 'create a token for an agent or a person and print it once',
  details:
    'Set it as ORC_TOKEN in the environment of the agent or person. Orchub stores only its hash. Works with and without\n' +
    'a running service. `orc token Worker` is short for `orc token create Worker`.',
  arguments: [{ name: 'AGENT|PERSON' }],
  examples: [
    'orc token create Worker',
    'orc token create ada',
    'ORC_TOKEN=$(orc token create Worker) my-agent',
  ],
  async run({ words, location, json }) {
    const agent = words[0]!
    const minted = await onlineOrOffline(
      location,
      (client) => client.mintToken(agent),
      (offline) => mint(offline, agent),
    )
    if (json) printJson(minted)
    else {
      print(minted.token)
      if (isatty(1)) complain(`This is ${minted.id}; it is not shown again. Set it as ORC_TOKEN.`)
    }
    return 0
  },
}

async function mint(
  { tokens, config }: Offline,
  name: string,
): Promise<{ id: string; agent: string; token: string }> {
  if (isOperatorName(name)) return { agent: 'operator', ...(await tokens.mint(null)) }
  const team = createTeam(config)
  const person = team.person(name)?.name
  if (person !== undefined) return { agent: person, ...(await tokens.mintForPerson(person)) }
  const agent = team.resolve(name)
  if (agent === undefined) throw unknownAgent(team, name)
  return { agent, ...(await tokens.mint(agent)) }
}

export const list: Verb = {
  name: 'token list',
  summary: 'list valid tokens by id; only hashes are stored',
  examples: ['orc token list', 'orc token list --json'],
  async run({ location, showAll }) {
    const tokens = await onlineOrOffline(
      location,
      async (client) => (await client.tokens()).tokens,
      (offline) => offline.tokens.list(),
    )
    const rowOf = ({ id, agent, kind, created_at, expires_at }: (typeof tokens)[number]) => [
      id,
      kind === 'person' ? `${agent} (person)` : agent,
      shortTime(created_at),
      expires_at === undefined ? '' : `browser session until ${shortTime(expires_at)}`,
    ]
    return showAll(tokens, (all) => table(all.map(rowOf)), 'There are no valid tokens.')
  },
}

export const revoke: Verb = {
  name: 'token revoke',
  summary: 'revoke a token by id, or every token of an agent or person',
  arguments: [{ name: 'ID|AGENT|PERSON' }],
  examples: ['orc token revoke tok_4', 'orc token revoke Worker'],
  async run({ words, location, show }) {
    const which = words[0]!
    const answer = await onlineOrOffline(
      location,
      (client) => client.revokeTokens(which),
      (offline) => revokeOffline(offline, which),
    )
    return show(answer, () => `Revoked ${counted(answer.revoked, 'token')}.`)
  },
}

async function revokeOffline({ tokens, config }: Offline, which: string): Promise<{ revoked: number }> {
  const team = createTeam(config)
  const revoked = await tokens.revoke(team.resolve(which) ?? team.person(which)?.name ?? which)
  if (revoked > 0) return { revoked }
  throw new AppError('NOT_FOUND', `No valid token, agent or person is called ${which}`, {
    hint: 'orc token list shows the valid tokens.',
  })
}
