import type { GitHub } from '../github/github.ts'
import { AppError } from '../model/errors.ts'
import { formatId, parseId } from '../model/identifier.ts'
import { changeAction, findAction, lastDeliveryAt, settledQuestions } from '../store/github.ts'
import { findHumanRequest } from '../store/human-requests.ts'
import type { Switch } from './context.ts'
import { createActing } from './github/acting.ts'
import { createDelegating } from './github/delegating.ts'
import { createEnding } from './github/ending.ts'
import { type Incoming, type Received, receive } from './github/inbound.ts'
import { startLoop } from './github/loop.ts'
import { createProposals } from './github/proposals.ts'
import { AUDIT, type GithubParts } from './github/settings.ts'
import { createTriggers, PERIODIC } from './github/triggers.ts'
import { createWorking } from './github/working.ts'
import type { Verdicts } from './verdicts.ts'

/** The team that looks after repositories: events in, checked actions out (S3). */
export interface GithubTeam {
  /** Throws what is not signed, not whole or not JSON. */
  receive(incoming: Incoming): Promise<Received>
  begin(): Promise<void>
  /** After a reload. */
  follow(): Promise<void>
  close(): Promise<void>
}

export interface GithubTeamOptions {
  parts: Switch
  verdicts: Verdicts
  github: GitHub
  env: Readonly<Record<string, string | undefined>>
}

const ENDS = /^task\.(?:completed|failed|cancelled|skipped)$/
const VERDICTS = /^human\.(?:rejected|expired|withdrawn)$/
/** GitHub keeps deliveries that long. */
const REDELIVERABLE_MS = 3 * 24 * 3600_000

export function createGithubTeam({ parts: given, verdicts, github, env }: GithubTeamOptions): GithubTeam {
  let login: string | undefined
  const { store, clock, log, team, standstill } = given
  const parts: GithubParts = {
    ...given,
    github,
    verdicts,
    settings() {
      const { github: settings } = team().config
      if (settings !== undefined) return settings
      throw new AppError('NOT_FOUND', 'orc.yaml has no "github" any more')
    },
    async ownLogin() {
      if (login !== undefined) return login
      const answer = await github.whoAmI()
      if (answer.ok) login = answer.value
      return login
    },
  }
  const proposals = createProposals(parts)
  const delegating = createDelegating(parts)
  const ending = createEnding(parts, proposals, delegating)
  const isHalted = () => standstill.halted() !== undefined || team().config.github === undefined
  const acting = startLoop(createActing(parts, proposals), clock, log, isHalted)
  const events = createWorking(parts, proposals, delegating)
  const working = startLoop(
    {
      ...events,
      async next() {
        const worked = await events.next()
        // The service may have something to say to it by itself.
        if (worked) acting.kick()
        return worked
      },
    },
    ...([clock, log, isHalted] as const),
  )
  const triggers = createTriggers(parts, () => working.kick())
  let begun = false
  let underWay: Promise<unknown> = Promise.resolve()

  /** What the audit says of tasks and verdicts sets the team going; the store says what there is to do. */
  const stopListening = store.onCommit((entries) => {
    if (!begun) return
    for (const { type, data, subject } of entries) {
      if (ENDS.test(type)) follow(() => ending.look(parseId('task', String(data?.task_id)) ?? 0))
      else if (type === 'action.resume_session' && subject !== undefined)
        follow(() => ending.forgive(subject))
      else if (VERDICTS.test(type)) follow(() => refused(String(data?.request_id)))
    }
    // Whatever was committed may have made something ready; looking costs one query.
    if (entries.some(({ type }) => type.startsWith('human.') || type.startsWith('github.'))) acting.kick()
  })

  function follow(act: () => Promise<void>) {
    underWay = underWay
      .then(act)
      .catch((error: unknown) => log.error({ err: error }, 'the end of a task for GitHub was not seen to'))
      .then(() => acting.kick())
  }

  /** People said no, or nothing: it is not done, and the record says so in public. */
  async function refused(request: string) {
    await store.write(async (tx) => {
      const row = await findHumanRequest(tx, parseId('req', request) ?? 0)
      const { github: key } = JSON.parse(row?.context ?? '{}') as { github?: string }
      if (row === undefined || key === undefined) return
      if ((await findAction(tx, key))?.state !== 'asked' || row.state === 'open') return
      await changeAction(tx, key, { state: 'refused', note: `${request} ${row.state}` })
      tx.audit({
        type: AUDIT.logged,
        class: 'public',
        actor: 'orchestrator',
        subject: row.asker,
        text: `Not done, ${request} is ${row.state}: ${row.question}`,
        data: { request_id: request, key },
      })
    })
  }

  async function fetchMissed() {
    const since = Math.max((await lastDeliveryAt(store)) ?? clock.now(), clock.now() - REDELIVERABLE_MS)
    const asked = await github.redeliverMissed(since)
    if (asked === undefined) return
    if (asked.ok) log.info({ count: asked.value }, 'webhooks that were missed are sent again')
    else log.warn({ failure: asked.failure }, 'webhooks that were missed could not be asked for')
  }

  return {
    async receive(incoming) {
      // The clock's own word; nobody else says it.
      if (incoming.event === PERIODIC)
        throw new AppError('INVALID_REQUEST', `${PERIODIC} is no event of GitHub`)
      const received = await receive(store, env[parts.settings().secretEnv], incoming)
      if (received.status === 'accepted') working.kick()
      return received
    },
    async begin() {
      begun = true
      await ending.catchUp()
      for (const request of await settledQuestions(store)) await refused(formatId('req', request))
      await triggers.follow()
      working.kick()
      acting.kick()
      // Nobody waits for it: GitHub may be away.
      underWay = underWay
        .then(fetchMissed)
        .catch((error: unknown) => log.warn({ err: error }, 'missed webhooks are not known'))
    },
    async follow() {
      if (!begun || team().config.github === undefined) return
      await triggers.follow()
      working.kick()
      acting.kick()
    },
    async close() {
      stopListening()
      await underWay
      await working.close()
      await acting.close()
    },
  }
}
