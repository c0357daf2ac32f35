import { openClient } from '../../connection/client.ts'
import { exitCode } from '../../exit-code.ts'
import { complain, paint, plainLine, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'webhooks test',
  group: 'Look',
  summary: 'post one event to a webhook now, and say what came of it; brings a dead one back',
  arguments: [{ name: 'WEBHOOK' }],
  examples: ['orc webhooks test chat'],
  async run({ place, words, json }) {
    const client = await openClient(place)
    const answer = await client.testWebhook(words[0]!)
    if (json) printJson(answer)
    else if (answer.sent) print(`${answer.webhook.name} took it (${answer.status}).`)
    else complain(paint('red', `${answer.webhook.name}: ${plainLine(answer.error ?? '')}`, 'err'))
    return exitCode(answer.sent ? 'ok' : 'error')
  },
}
