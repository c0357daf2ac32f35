import { ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Handle } from '../commands/commands.ts'
import type { HaltState } from '../commands/halt-state.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import { findHumanRequest } from '../people/store/human-requests.ts'
import type { Verdicts } from '../people/verdicts.ts'
import { type Action, describeAction } from './core/action.ts'
import { checkSetup, type Setup } from './setup.ts'
import { changeAction, findAction, settledQuestions } from './store/actions.ts'
import { keepDelivery } from './store/deliveries.ts'
import { createActing } from './team/acting.ts'
import { createCallbacks } from './team/callbacks.ts'
import { createDelegating } from './team/delegating.ts'
import { createEnding } from './team/ending.ts'
import { createEscalating } from './team/escalating.ts'
import { filterReport } from './team/filter-reports.ts'
import { createHealth, type GithubState } from './team/health.ts'
import { type Incoming, type Received, receive } from './team/inbound.ts'
import { startLoop } from './team/loop.ts'
import { createMembers, type Members } from './team/members.ts'
import { createMissed } from './team/missed.ts'
import { createModerators } from './team/moderators.ts'
import { createProposals } from './team/proposals.ts'
import { replayId } from './team/replay.ts'
import { AUDIT, type GithubParts } from './team/settings.ts'
import { type EventTrail, trailOf } from './team/trail.ts'
import { createTriggers, PERIODIC } from './team/triggers.ts'
import { createWorking } from './team/working.ts'

/** The team that looks after repositories: events in, checked actions out (S3). */
export interface GithubTeam {
  /** Throws what is not signed, not whole or not JSON. */
  receive(incoming: Incoming): Promise<Received>
  /** Whether GitHub lets the team do its work. */
  setup(): Promise<Setup>
  /** A payload that is worked on as if it had just come, but for verdicts in it; gives its delivery id. */
  replay(event: string, payload: string, by: string): Promise<string>
  /** What a delivery set in motion. */
  trail(delivery: string): Promise<EventTrail | undefined>
  /** How it is: what waits, and the health of its agents (S3.16). */
  state(): Promise<GithubState>
  /** For members that speak only the protocol's JSON. */
  readonly members: Members
  begin(): Promise<void>
  /** After a reload. */
  follow(): Promise<void>
  close(): Promise<void>
}

export interface GithubTeamOptions extends Omit<GithubParts, 'settings' | 'ownLogin' | 'verdicts'> {
  readonly mailboxes: Mailboxes
  readonly haltState: Pick<HaltState, 'halted'>
  handle: Handle
  verdicts: Verdicts
  env: Readonly<Record<string, string | undefined>>
}

const ASK_AGAIN_MS = 500

export function createGithubTeam(options: GithubTeamOptions): GithubTeam {
  const { handle, verdicts, github, env, mailboxes } = options
  let login: string | undefined
  let refusedAt = Number.NEGATIVE_INFINITY
  const { store, clock, log, team, haltState } = options
  const parts: GithubParts = {
    ...options,
    github,
    verdicts,
    settings() {
      const { github: settings } = team().config
      if (settings !== undefined) return settings
      throw new AppError('NOT_FOUND', 'orc.yaml has no "github" any more')
    },
    async ownLogin() {
      // Of a thousand events that wait for it, one asks.
      if (login !== undefined || clock.now() - refusedAt < ASK_AGAIN_MS) return login
      const answer = await github.whoAmI()
      if (answer.ok) login = answer.value
      else {
        refusedAt = clock.now()
        log.warn({ failure: answer.failure }, 'GitHub does not say who we are; its events wait')
      }
      return login
    },
  }
  const proposals = createProposals(parts)
  const delegating = createDelegating(parts, () => bringing.kick())
  const escalating = createEscalating(parts)
  const ending = createEnding(parts, proposals, delegating, escalating)
  const isHalted = () => haltState.halted() !== undefined || team().config.github === undefined
  const acting = startLoop(createActing(parts, escalating), clock, log, isHalted)
  const events = createWorking(parts, delegating)
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
  const missed = createMissed(parts)
  const health = createHealth(parts)
  const calling = startLoop(createModerators(parts, env), clock, log, isHalted)
  const members = createMembers({
    parts: { ...parts, mailboxes },
    ...{ handle, proposals, health },
    flagged: () => calling.kick(),
    proposed: () => acting.kick(),
  })
  const callbacks = createCallbacks(parts, members, env)
  const bringing = startLoop(callbacks, clock, log, isHalted)
  const triggers = createTriggers(parts, () => working.kick())
  let begun = false
  let underWay: Promise<unknown> = Promise.resolve()

  // Events are only hints: each handler reads the state from the store, and `begin` catches up after a crash.
  const { tasks, sessions } = options
  tasks.onReport(async (tx, task, said) => {
    const filtered = await filterReport(tx, parts.redact, task, said)
    if (filtered?.isFlagged) tx.afterCommit(() => calling.kick())
    return filtered
  })
  tasks.onEnded(({ id }) => {
    if (begun) follow(() => ending.look(parseId('task', id)!))
  })
  sessions.onResumed((agent) => {
    if (begun) follow(() => ending.forgive(agent))
  })
  // Approvals matter too: if the policy has changed since people were asked, an approved action is refused.
  verdicts.onDecided((request) => {
    if (begun) follow(() => refused(request))
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
      const proposed = await findAction(tx, key)
      if (proposed?.state !== 'asked' || row.state === 'open') return
      await changeAction(tx, key, { state: 'refused', note: `${request} ${row.state}` })
      const { agent, repository, number, action } = proposed
      const what = describeAction(JSON.parse(action) as Action)
      tx.audit({
        type: AUDIT.logged,
        class: 'public',
        actor: ORCHESTRATOR,
        subject: agent,
        text: `Not done, ${request} is ${row.state}: ${what} in ${repository}`,
        data: { request_id: request, key, repository },
      })
      if (row.state !== 'expired') return
      const hours = Math.round((row.expires_at - row.created_at) / 360_000) / 10
      await escalating.expired(tx, { request, agent, repository, number, what, hours })
    })
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
    async setup() {
      parts.settings()
      return await checkSetup(team(), github.survey, env)
    },
    async replay(event, payload, by) {
      if (event === PERIODIC) throw new AppError('INVALID_REQUEST', `${PERIODIC} is no event of GitHub`)
      const id = replayId()
      await store.write(async (tx) => {
        await keepDelivery(tx, { id, event, payload })
        tx.audit({
          type: AUDIT.replayed,
          class: 'internal',
          actor: by,
          text: `${by} had ${event} worked on as ${id}`,
          data: { delivery: id, event },
        })
      })
      working.kick()
      return id
    },
    trail: (delivery) => trailOf(store, delivery),
    state: health.state,
    members,
    async begin() {
      begun = true
      await ending.catchUp()
      for (const request of await settledQuestions(store)) await refused(formatId('req', request))
      await triggers.follow()
      await health.begin()
      working.kick()
      acting.kick()
      missed.begin()
      calling.kick()
      bringing.kick()
    },
    async follow() {
      if (!begun || team().config.github === undefined) return
      await triggers.follow()
      working.kick()
      acting.kick()
    },
    async close() {
      begun = false
      await missed.close()
      await underWay
      await working.close()
      await acting.close()
      await calling.close()
      callbacks.close()
      await bringing.close()
    },
  }
}
