import { isatty } from 'node:tty'
import { unknownAgent } from '../../../commands/identity.ts'
import { createTeam, isOperatorName } from '../../../commands/team.ts'
import type { Offline } from '../../connection/offline.ts'
import { onlineOrOffline } from '../../connection/online-or-offline.ts'
import { complain, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
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
