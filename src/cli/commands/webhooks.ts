import type { AnswerOf } from '../../api/contract.ts'
import { openClient } from '../connection/client.ts'
import { exitCode } from '../errors.ts'
import { table } from '../output/layout.ts'
import { complain, paint, plainLine, print, printJson } from '../output/print.ts'
import { shortTime } from '../output/receipt-text.ts'
import type { Verb } from '../verb.ts'

export const list: Verb = {
  name: 'webhook list',
  summary: 'list outgoing webhooks: pending, sent and failed events',
  details: 'Webhooks are defined in orc.yaml under `webhooks`. A successful test revives a dead one.',
  examples: ['orc webhook list', 'orc webhook list --json', 'orc webhook test chat'],
  async run({ location, showAll }) {
    const client = await openClient(location)
    const { webhooks } = await client.webhooks()
    return showAll(webhooks, webhooksText, 'orc.yaml has no webhooks.')
  },
}

type Webhook = AnswerOf<'webhooks'>['webhooks'][number]

const STYLE = { active: 'green', failing: 'yellow', dead: 'red' } as const

function webhooksText(webhooks: readonly Webhook[]): string {
  return table(
    webhooks.map((webhook) => [
      webhook.name,
      paint(STYLE[webhook.state], webhook.state),
      `${webhook.pending} waiting`,
      `${webhook.sent} sent`,
      `${webhook.dropped} dropped`,
      plainLine([webhook.url, webhook.events.join(' '), trouble(webhook)].filter(Boolean).join('; ')),
    ]),
  )
}

function trouble({ state, last_error, failing_since, next_attempt_at }: Webhook): string {
  if (last_error === undefined) return ''
  const since = failing_since === undefined ? '' : ` since ${shortTime(failing_since)}`
  const next = state === 'dead' || next_attempt_at === undefined ? '' : `, next ${shortTime(next_attempt_at)}`
  return `${last_error}${since}${next}`
}

export const test: Verb = {
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
