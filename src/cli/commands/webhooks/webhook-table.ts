import type { AnswerOf } from '../../../service/contract.ts'
import { table } from '../../output/layout.ts'
import { shortTime } from '../../output/message-text.ts'
import { paint, plainLine } from '../../output/print.ts'

type Webhook = AnswerOf<'webhooks'>['webhooks'][number]

const STYLE = { active: 'green', failing: 'yellow', dead: 'red' } as const

export function webhooksText(webhooks: readonly Webhook[]): string {
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
