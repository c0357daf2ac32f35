import type { AnswerOf } from '../../../api/contract.ts'
import { wait } from '../../../client/backoff.ts'
import { openClient } from '../../connection/client.ts'
import { createNotifier, notificationMethod } from '../../output/notification.ts'
import { paint, plain, plainLine, print, printJson, remark } from '../../output/print.ts'
import { shortTime } from '../../output/receipt-text.ts'
import { untilInterrupted } from '../../signals.ts'
import type { Verb } from '../../verb.ts'

type Flag = AnswerOf<'moderation'>['flags'][number]

const POLL_MS = 3000

export const verb: Verb = {
  name: 'github moderation',
  summary: 'list conduct flags, for moderators only',
  details:
    'For people with the role moderator, who set their own token as ORC_TOKEN (create it with orc token create NAME). Flags are\n' +
    'visible to moderators only: not in the inbox, the audit, the events, the metrics, or on GitHub.',
  options: [
    { name: 'all', summary: 'include decided flags' },
    { name: 'follow', short: 'f', summary: 'keep running, show new flags and ring the bell' },
  ],
  examples: [
    'orc github moderation',
    'orc github moderation --follow',
    'orc github moderate 1f0c… upheld --comment "spoken to"',
  ],
  async run({ location, flag, json }) {
    const client = await openClient(location)
    const state = flag('all') ? 'all' : 'open'
    const show = (one: Flag) => (json ? printJson(one) : print(flagText(one)))
    const { flags } = await client.moderation({ state })
    for (const one of flags.toReversed()) show(one)
    if (!flag('follow')) {
      if (flags.length === 0 && !json) remark('No flags need a moderator.')
      return 0
    }
    const known = new Set(flags.map(({ id }) => id))
    const notifier = createNotifier({
      write: (text) => process.stderr.write(text),
      method: process.stderr.isTTY ? notificationMethod(process.env) : 'bell',
      after(ms, callback) {
        const timer = setTimeout(callback, ms)
        return () => clearTimeout(timer)
      },
    })
    return await untilInterrupted(async (signal) => {
      while (!signal.aborted) {
        await wait(POLL_MS, signal)
        const { flags: now } = await client.moderation({ state })
        for (const one of now.toReversed().filter(({ id }) => !known.has(id))) {
          known.add(one.id)
          show(one)
          if (process.stderr.isTTY) notifier.asked('A new flag for moderators')
        }
      }
    }).finally(() => notifier.close())
  },
}

function flagText({ id, repository, number, at, flag, closed_by, decision, comment }: Flag): string {
  const {
    violation = {},
    context = {},
    analysis,
    recommended_action,
  } = flag as {
    violation?: Record<string, unknown>
    context?: Record<string, unknown>
    analysis?: Record<string, unknown>
    recommended_action?: string
  }
  const where = `${repository}${number === undefined ? '' : `#${number}`}`
  const line = (name: string, value: unknown) =>
    value === undefined || value === ''
      ? []
      : [`  ${name}: ${plainLine(typeof value === 'string' ? value : JSON.stringify(value))}`]
  const excerpt =
    typeof context.excerpt === 'string' ? plain(context.excerpt).replaceAll('\n', '\n  > ') : undefined
  return [
    `${paint('bold', id)}  ${plainLine(where)}  ${shortTime(at)}  ${plainLine(String(violation.severity ?? ''))} ${plainLine(String(violation.violation_type ?? ''))} (confidence: ${plainLine(String(violation.confidence ?? '?'))})`,
    ...(excerpt === undefined ? [] : [`  > ${excerpt}`]),
    ...line('where', violation.location),
    ...line('url', violation.url),
    ...line('history', context.user_history),
    ...line('thread', context.thread_context),
    ...line('analysis', analysis),
    ...line('recommended', recommended_action),
    closed_by === undefined
      ? paint('dim', `  orc github moderate ${id} upheld|dismissed`)
      : `  ${decision ?? 'closed'} by ${plainLine(closed_by)}${comment === undefined ? '' : `: ${plainLine(comment)}`}`,
  ].join('\n')
}

const DECISIONS = ['upheld', 'dismissed'] as const

export const decide: Verb = {
  name: 'github moderate',
  summary: 'decide a conduct flag as a moderator; nobody else is notified',
  details: 'Changes nothing on GitHub; moderators act on a decision themselves.',
  arguments: [{ name: 'ID' }, { name: 'DECISION', choices: DECISIONS }],
  options: [{ name: 'comment', value: 'TEXT', summary: 'the reason, for other moderators' }],
  examples: ['orc github moderate 1f0c… dismissed', 'orc github moderate 1f0c… upheld --comment "spoken to"'],
  async run({ location, words, given, show }) {
    const answer = await (await openClient(location)).closeModeration(words[0]!, {
      decision: words[1] as (typeof DECISIONS)[number],
      ...given('comment'),
    })
    return show({ id: words[0], decision: words[1], ...answer }, () => `${words[0]} is ${words[1]}.`)
  },
}
