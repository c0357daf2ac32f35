import { openClient } from '../../connection/client.ts'
import { exitCode } from '../../exit-code.ts'
import { complain, paint, plainLine, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'webhook test',
  summary: 'send a test event to a webhook; success revives a dead one',
  arguments: [{ name: 'WEBHOOK' }],
  examples: ['orc webhook test chat'],
  async run({ location, words, json }) {
    const client = await openClient(location)
    const answer = await client.testWebhook(words[0]!)
    if (json) printJson(answer)
    else if (answer.sent) print(`${answer.webhook.name} accepted the event (${answer.status}).`)
    else complain(paint('red', `${answer.webhook.name}: ${plainLine(answer.error ?? '')}`, 'err'))
    return exitCode(answer.sent ? 'ok' : 'error')
  },
}
