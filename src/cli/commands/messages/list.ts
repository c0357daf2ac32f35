import { openClient } from '../../connection/client.ts'
import { mailHead } from '../../output/message-text.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'messages',
  group: 'Look',
  summary: 'who wrote to whom, oldest first, and how far each message has come',
  options: [
    { name: 'agent', value: 'NAME', summary: 'only from or to this agent' },
    { name: 'since', value: 'TIME', summary: 'such as 10m, 2h, 1d, or a time' },
    { name: 'limit', value: 'N', summary: 'the newest so many; 200 unless said' },
  ],
  examples: ['orc messages --since 10m', 'orc messages --agent Worker --limit 20'],
  async run({ place, option, json }) {
    const client = await openClient(place)
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
