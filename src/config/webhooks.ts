import { z } from 'zod'
import type { Report } from '../yaml/problem.ts'
import { envVariable, httpUrl } from './fields.ts'
import { leadsToLoopback } from './loopback.ts'

const WEBHOOK_FORMATS = ['json', 'slack'] as const
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number]

/** A receiver of events. Secrets and secret URLs appear only as names of environment variables. */
export interface WebhookConfig {
  readonly name: string
  readonly url?: string
  readonly urlEnv?: string
  readonly secretEnv?: string
  readonly format: WebhookFormat
  readonly events: readonly string[]
}

/** `human.asked`, `human.*`, `*`. */
const EVENTS = /^(?:\*|[a-z][a-z0-9_]*\.(?:\*|[a-z][a-z0-9_]*))$/

export const WebhookSchema = z
  .strictObject({
    url: httpUrl.optional().describe('URL that receives the events: https://chat.example/hooks/orc.'),
    url_env: envVariable
      .optional()
      .describe('Environment variable that holds the URL, for URLs that are secret, such as those of Slack.'),
    events: z
      .array(z.string().regex(EVENTS, { error: 'is not a valid event type' }))
      .min(1)
      .max(50)
      .describe(
        'Types of audit entries to send: [human.asked, task.completed, "team.*"]. A * never matches private entries, such as security.*: list their types.',
      ),
    secret_env: envVariable
      .optional()
      .describe(
        'Environment variable that holds the signing secret, ideally whsec_… in base64. Required for json.',
      ),
    format: z
      .enum(WEBHOOK_FORMATS)
      .optional()
      .describe(
        'json (the default): the event as data. slack: { "text": … } for Slack, Mattermost, Rocket.Chat and Google Chat.',
      ),
  })
  .describe('One webhook: { url: "https://…", events: [human.asked], secret_env: NAME }.')

type WebhookInput = z.input<typeof WebhookSchema>

export function resolveWebhooks(
  written: Readonly<Record<string, WebhookInput>>,
  report: Report,
  warn: Report,
): WebhookConfig[] {
  return Object.entries(written).map(([name, webhook]) => {
    checkAddress(webhook, ['webhooks', name], report, warn)
    const format = webhook.format ?? 'json'
    if (format === 'json' && webhook.secret_env === undefined) {
      report(
        ['webhooks', name],
        'A json webhook needs a secret to sign its requests',
        'Add "secret_env: NAME" with the environment variable that holds the secret.',
      )
    }
    return {
      name,
      ...(webhook.url !== undefined && { url: webhook.url }),
      ...(webhook.url_env !== undefined && { urlEnv: webhook.url_env }),
      ...(webhook.secret_env !== undefined && { secretEnv: webhook.secret_env }),
      format,
      events: webhook.events,
    }
  })
}

function checkAddress(written: WebhookInput, path: readonly string[], report: Report, warn: Report) {
  if ((written.url === undefined) === (written.url_env === undefined)) {
    report(path, 'A webhook needs either "url" or "url_env"', 'Use "url_env" if the URL is a secret.')
    return
  }
  if (written.url === undefined) return
  const at = [...path, 'url']
  const url = URL.parse(written.url)
  if (url === null) report(at, '"url" is not a valid URL', 'For example https://chat.example/hooks/orc.')
  else if (url.username !== '' || url.password !== '') {
    report(
      at,
      '"url" must not have a password',
      'Put the URL into an environment variable and name it in "url_env".',
    )
  } else if (url.protocol === 'http:' && !leadsToLoopback(url)) {
    warn(at, 'Events are sent to this URL unencrypted', 'Use https.')
  }
}
