import { onlineOrOffline } from '../../connection/online-or-offline.ts'
import { table } from '../../output/layout.ts'
import { shortTime } from '../../output/message-text.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'token list',
  summary: 'list valid tokens by id; only hashes are stored',
  examples: ['orc token list', 'orc token list --json'],
  async run({ location, json }) {
    const tokens = await onlineOrOffline(
      location,
      async (client) => (await client.tokens()).tokens,
      (offline) => offline.tokens.list(),
    )
    if (json) for (const token of tokens) printJson(token)
    else
      print(
        table(
          tokens.map(({ id, agent, kind, created_at, expires_at }) => [
            id,
            kind === 'person' ? `${agent} (person)` : agent,
            shortTime(created_at),
            expires_at === undefined ? '' : `browser session until ${shortTime(expires_at)}`,
          ]),
        ),
      )
    return 0
  },
}
