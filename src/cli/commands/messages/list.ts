import { openClient } from '../../connection/client.ts'
import { mailHead } from '../../output/message-text.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'message list',
  summary: 'list messages and their delivery states, oldest first',
  options: [
    { name: 'agent', value: 'NAME', summary: 'messages from or to this agent' },
    { name: 'since', value: 'TIME', summary: '10m, 2h, 1d, or a timestamp' },
    { name: 'limit', value: 'N', summary: 'only the newest N messages (default: 200)' },
  ],
  examples: ['orc message list --since 10m', 'orc message list --agent Worker --limit 20'],
  async run({ location, option, json }) {
    const client = await openClient(location)
    const { messages } = await client.messages({
      agent: option('agent'),
      since: option('since'),
      limit: option('limit'),
    })
    for (const message of messages) {
      if (json) printJson(message)
      else print(mailHead(message))
    }
    return 0
  },
}
