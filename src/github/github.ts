import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import { createQueueLoop, type WorkQueue } from '../base/queue-loop.ts'
import { createAgentHealth } from './agent-health.ts'
import type { GithubSetup, GithubTeamState } from './api.ts'
import { createDelegation } from './delegate-work.ts'
import { AUDIT, type GithubDependencies, type GithubTeamOptions } from './dependencies.ts'
import { createFinishing } from './finish-work.ts'
import { createCallbacks, createMembers, type Members } from './members.ts'
import { createModeratorCalls, filterReport } from './moderation.ts'
import { createActionQueue } from './perform-actions.ts'
import { createEventQueue, newReplayId } from './process-events.ts'
import { createProposals } from './proposals.ts'
import {
  createRedelivery,
  createTriggers,
  type IncomingWebhook,
  PERIODIC,
  receiveWebhook,
  type WebhookReceipt,
} from './receive-events.ts'
import { checkSetup } from './setup.ts'
import { keepDelivery, requestsOfAskedActions } from './store.ts'

/**
 * The team that maintains repositories (S3). A webhook is stored (`receive-events`), routed (`process-events`), enriched
 * (`gather-context`) and delegated to agents as tasks (`delegate-work`). Their reports (`moderation`, `finish-work`)
 * contain proposals, which the policy or people decide on (`proposals`). The service performs them (`perform-actions`).
 */
export interface GithubTeam {
  /** Throws if the webhook is unsigned, incomplete or not JSON. */
  receive(incoming: IncomingWebhook): Promise<WebhookReceipt>
  /** Checks credentials, permissions and webhooks on GitHub. */
  setup(): Promise<GithubSetup>
  /** Processes a payload as if GitHub had just sent it, but ignores verdicts in it. Returns its delivery id. */
  replay(event: string, payload: string, by: string): Promise<string>
  /** Pending events and actions, and the health of the agents (S3.16). */
  state(): Promise<GithubTeamState>
  /** For members that speak only the JSON of the team protocol. */
  readonly members: Members
  begin(): Promise<void>
  /** Applies a reloaded configuration. */
  follow(): Promise<void>
  close(): Promise<void>
}

/** While GitHub is unreachable, many waiting events share one request for our login within this time. */
const LOGIN_RETRY_MS = 500

export function createGithubTeam(options: GithubTeamOptions): GithubTeam {
  const { github, store, clock, log, tasks, team } = options
  let login: string | undefined
  let loginFailedAt = Number.NEGATIVE_INFINITY
  const deps: GithubDependencies = {
    ...options,
    settings() {
      const { github: settings } = team().config
      if (settings !== undefined) return settings
      throw new AppError('NOT_FOUND', 'orc.yaml no longer has a "github" section')
    },
    async ownLogin() {
      if (login !== undefined || clock.now() - loginFailedAt < LOGIN_RETRY_MS) return login
      const answer = await github.whoAmI()
      if (answer.ok) login = answer.value
      else {
        loginFailedAt = clock.now()
        log.warn({ failure: answer.error }, 'cannot read our login from GitHub; events wait')
      }
      return login
    },
  }
  const isHalted = () => options.isHalted() || team().config.github === undefined
  const loop = (name: string, queue: WorkQueue) =>
    createQueueLoop(`github ${name}`, queue, { clock, log, isHalted })
  const proposals = createProposals(deps)
  const delegation = createDelegation(deps, () => callbackLoop.kick())
  const finishing = createFinishing(deps, proposals, delegation)
  const actionLoop = loop('actions', createActionQueue(deps))
  const eventLoop = loop(
    'events',
    createEventQueue(deps, delegation, () => actionLoop.kick()),
  )
  const redelivery = createRedelivery(deps)
  const health = createAgentHealth(deps)
  const moderatorLoop = loop('moderators', createModeratorCalls(deps))
  const members = createMembers(deps, {
    ...{ proposals, health },
    flagged: () => moderatorLoop.kick(),
    proposed: () => actionLoop.kick(),
  })
  const callbacks = createCallbacks(deps, members)
  const callbackLoop = loop('callbacks', callbacks)
  const loops = [eventLoop, actionLoop, moderatorLoop, callbackLoop]
  const triggers = createTriggers(deps, () => eventLoop.kick())
  let isRunning = false
  let reactions: Promise<unknown> = Promise.resolve()

  // Events are only hints: every reaction reads the state from the store, and `begin` catches up after a crash.
  tasks.onReport(async (tx, task, report) => {
    const filtered = filterReport(tx, deps.redact, task, report)
    if (filtered?.isFlagged) tx.afterCommit(() => moderatorLoop.kick())
    return filtered
  })
  tasks.onEnded(({ id }) => react(() => finishing.finish(parseId('task', id)!)))
  options.sessions.onResumed((agent) => react(() => finishing.clearFailures(agent)))
  // Approvals matter too: if the policy has changed since people were asked, an approved action is refused.
  options.verdicts.onDecided((request) => react(() => proposals.close(request)))

  /** Runs reactions one after the other; each may have made an action ready. */
  function react(reaction: () => Promise<void>) {
    if (!isRunning) return
    reactions = reactions
      .then(reaction)
      .catch((error: unknown) => log.error({ err: error }, 'cannot process an event for the GitHub team'))
      .then(() => actionLoop.kick())
  }

  return {
    async receive(incoming) {
      mustComeFromGithub(incoming.event)
      const received = await receiveWebhook(store, options.env[deps.settings().secretEnv], incoming)
      if (received.status === 'accepted') eventLoop.kick()
      return received
    },
    async setup() {
      deps.settings()
      return await checkSetup(team(), github.survey, options.env)
    },
    async replay(event, payload, by) {
      mustComeFromGithub(event)
      const id = newReplayId()
      await store.write(async (tx) => {
        await keepDelivery(tx, { id, event, payload })
        tx.audit({
          type: AUDIT.replayed,
          class: 'internal',
          actor: by,
          text: `${by} replayed ${event} as ${id}`,
          data: { delivery: id, event },
        })
      })
      eventLoop.kick()
      return id
    },
    state: health.state,
    members,
    async begin() {
      isRunning = true
      await finishing.catchUp()
      // Requests that were decided or expired right before a crash.
      for (const request of await requestsOfAskedActions(store))
        await proposals.close(formatId('req', request))
      await triggers.follow()
      await health.begin()
      for (const { kick } of loops) kick()
      redelivery.begin()
    },
    async follow() {
      if (!isRunning || team().config.github === undefined) return
      await triggers.follow()
      eventLoop.kick()
      actionLoop.kick()
    },
    async close() {
      isRunning = false
      await redelivery.close()
      await reactions
      callbacks.close()
      for (const { close } of loops) await close()
    },
  }
}

/** Periodic triggers come from the service's own clock only. */
function mustComeFromGithub(event: string | undefined) {
  if (event === PERIODIC) throw new AppError('INVALID_REQUEST', `${PERIODIC} is not a GitHub event`)
}
