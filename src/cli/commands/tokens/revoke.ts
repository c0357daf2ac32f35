import { AppError } from '../../../base/errors.ts'
import { createTeam } from '../../../commands/team.ts'
import type { Offline } from '../../connection/offline.ts'
import { onlineOrOffline } from '../../connection/online-or-offline.ts'
import { counted } from '../../output/layout.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'token revoke',
  summary: 'revoke a token by id, or every token of an agent or person',
  arguments: [{ name: 'ID|AGENT|PERSON' }],
  examples: ['orc token revoke tok_4', 'orc token revoke Worker'],
  async run({ words, location, json }) {
    const which = words[0]!
    const answer = await onlineOrOffline(
      location,
      (client) => client.revokeTokens(which),
      (offline) => revoke(offline, which),
    )
    if (json) printJson(answer)
    else print(`Revoked ${counted(answer.revoked, 'token')}.`)
    return 0
  },
}

async function revoke({ tokens, config }: Offline, which: string): Promise<{ revoked: number }> {
  const team = createTeam(config)
  const revoked = await tokens.revoke(team.resolve(which) ?? team.person(which)?.name ?? which)
  if (revoked > 0) return { revoked }
  throw new AppError('NOT_FOUND', `No valid token, agent or person is called ${which}`, {
    hint: 'orc token list shows the valid tokens.',
  })
}
