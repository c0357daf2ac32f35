import { openClient } from '../../connection/client.ts'
import { complain, paint, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { webhooksText } from './webhook-table.ts'

export const verb: Verb = {
  name: 'webhooks',
  group: 'Look',
  summary: 'where events are posted: what waits, what was sent, what went wrong',
  details:
    'They are named in orc.yaml under `webhooks`. A dead one is used again after a test that succeeds.',
  examples: ['orc webhooks', 'orc webhooks --json', 'orc webhooks test chat'],
  async run({ place, json }) {
    const client = await openClient(place)
    const { webhooks } = await client.webhooks()
    if (json) for (const webhook of webhooks) printJson(webhook)
    else if (webhooks.length > 0) print(webhooksText(webhooks))
    else complain(paint('dim', 'orc.yaml names no webhooks.', 'err'))
    return 0
  },
}
