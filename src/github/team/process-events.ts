import { ORCHESTRATOR } from '../../base/agent.ts'
import { DEFAULT_RETRIES } from '../../base/backoff.ts'
import type { Tx } from '../../store/store.ts'
import { type GitHubEvent, readEvent } from '../core/event.ts'
import { createEventRate } from '../core/event-rate.ts'
import { isPaused } from '../core/pause.ts'
import { DEFAULT_ROUTES, routeEvent, whyIgnored } from '../core/routing.ts'
import {
  endDelivery,
  type GithubDelivery,
  nextDelivery,
  nextDeliveryDue,
  putOffDelivery,
} from '../store/deliveries.ts'
import { forgetDocuments, keepDocument } from '../store/documents.ts'
import type { EventRoutes, RouteStep, Trigger } from '../terms.ts'
import type { DelegatedStep, Delegation } from './delegate-work.ts'
import { createContextReader, TryLater } from './gather-context.ts'
import { AUDIT, type GithubParts } from './parts.ts'
import type { WorkQueue } from './queue-loop.ts'
import { createSlashCommands, replySource } from './run-slash-commands.ts'
import { PERIODIC } from './scheduled-triggers.ts'
import { commentAsService } from './service-comments.ts'
import { isForPeople } from './settings.ts'

const MAX_BACKOFF_MS = 5 * 60_000
/** GitHub may be unavailable for hours; an event waits that long before it counts as failed. */
const MAX_WAIT_MS = 24 * 3600_000

/** Processes stored webhooks: indexes their text, runs slash commands and delegates work to agents. */
export function createEventQueue(
  parts: GithubParts,
  delegation: Delegation,
  processed: () => void,
): WorkQueue {
  const { store, clock, log, settings, ownLogin, redact, team } = parts
  const gatherContext = createContextReader(parts)
  const rate = createEventRate(() => settings().eventsPerMinute, clock.now)
  const runSlashCommands = createSlashCommands(parts)

  async function processDelivery(delivery: GithubDelivery): Promise<void> {
    const read = readEvent(delivery.id, delivery.event, parse(delivery.payload))
    const event = read && { ...read, receivedAt: delivery.received_at }
    const ignored = event === undefined ? 'the payload is not an event' : await whyNotProcessed(event)
    if (event === undefined || ignored !== undefined) {
      await store.write(async (tx) => {
        if (event !== undefined) await indexText(tx, event)
        await endDelivery(tx, delivery.id, 'ignored', ignored!)
      })
      return
    }
    const trigger = settings().schedule.find(({ name }) => event.type === `${PERIODIC}.${name}`)
    const slash =
      trigger === undefined
        ? await runSlashCommands(event)
        : { replies: [], commands: [], steps: [triggerStep(trigger)] }
    const routes = { ...DEFAULT_ROUTES, ...settings().routes }
    const isRouted = Object.hasOwn(routes, event.type) || slash.steps.length > 0
    const paused = isPaused(event.subject?.labels ?? [], event.topics)
    // A pause stops agents; slash commands of people still work.
    const context =
      isRouted && !paused ? await gatherContext(event, slash.commands, trigger?.staleDays) : undefined
    await store.write(async (tx) => {
      if (!(await endDelivery(tx, delivery.id, 'routed', paused ? 'the team is paused there' : null))) return
      await indexText(tx, event)
      for (const [index, reply] of slash.replies.entries()) {
        if (event.repository === undefined || event.subject === undefined) continue
        const { repository, subject } = event
        const place = { source: replySource(event.id, index), repository, number: subject.number }
        await commentAsService(tx, place, reply)
      }
      if (context === undefined) return
      const routed = routeEvent(routes, event, context)
      const requested =
        trigger === undefined ? slash.steps.map((step) => requestedStep(step, routes, routed)) : slash.steps
      await delegation.delegate(tx, event, context, [
        ...requested,
        ...routed.filter(({ to }) => !requested.some((one) => one.to === to)),
      ])
    })
  }

  /** A slash command neither replaces the routed work of its role nor bypasses the approval that the role needs. */
  function requestedStep(
    step: DelegatedStep,
    routes: EventRoutes,
    routed: readonly RouteStep[],
  ): DelegatedStep {
    const requiresHitl = isForPeople(team(), settings(), step.to, Object.values(routes).flat())
    return { ...step, requiresHitl, isRouted: routed.some(({ to }) => to === step.to) }
  }

  async function whyNotProcessed(event: GitHubEvent): Promise<string | undefined> {
    const why = whyIgnored(event, settings().repositories)
    const { sender } = event
    if (why !== undefined || sender === undefined) return why
    const own = await ownLogin()
    if (own === undefined) throw new TryLater('cannot read our login from GitHub', undefined)
    return sender.login.toLowerCase() === own.toLowerCase()
      ? 'the account of the service caused it'
      : undefined
  }

  /** Stores titles, bodies and comments for the search of related threads. */
  async function indexText(tx: Tx, { type, repository, subject, comment }: GitHubEvent) {
    if (repository === undefined || subject === undefined) return
    if (/^issues\.(?:deleted|transferred)$/.test(type))
      return await forgetDocuments(tx, repository, subject.number)
    const { kind, number, author, state, updatedAt } = subject
    const [title, body] = [redact(subject.title), redact(subject.body)]
    const at = Date.parse(updatedAt ?? '') || tx.now
    await keepDocument(tx, { repository, kind, number, part: '', title, body, author, state, at })
    if (comment === undefined) return
    // GitHub numbers comments, reviews and review comments separately.
    const part = comment.kind === 'comment' ? String(comment.id) : `${comment.kind}-${comment.id}`
    // Earlier versions stored review comments under the bare number; edits and deletions must reach those rows too.
    if (comment.kind === 'review_comment' && !type.endsWith('.created'))
      await forgetDocuments(tx, repository, number, String(comment.id))
    if (type.endsWith('.deleted') || comment.body.trim() === '')
      return await forgetDocuments(tx, repository, number, part)
    await keepDocument(tx, {
      repository,
      kind,
      number,
      part,
      title,
      body: redact(comment.body),
      author: comment.author,
      state,
      at,
    })
  }

  /** Retries while GitHub is unavailable, for up to a day; retries errors of our own only a few times. */
  async function postpone(delivery: GithubDelivery, error: unknown) {
    const attempts = delivery.attempts + 1
    const isWait = error instanceof TryLater
    const why = (error instanceof Error ? error.message : String(error)).slice(0, 500)
    if (!isWait) log.error({ err: error, delivery: delivery.id }, 'cannot process a GitHub event')
    const backoff = Math.min(1000 * 2 ** Math.min(attempts - 1, 20), MAX_BACKOFF_MS)
    const wait = Math.max(isWait ? (error.waitMs ?? 0) : 0, backoff)
    const isOver = isWait ? clock.now() - delivery.received_at > MAX_WAIT_MS : attempts > DEFAULT_RETRIES
    await store.write(async (tx) => {
      if (!isOver) return await putOffDelivery(tx, delivery.id, tx.now + wait, why)
      await endDelivery(tx, delivery.id, 'failed', why)
      tx.audit({
        type: AUDIT.failure,
        class: 'internal',
        actor: ORCHESTRATOR,
        text: `Cannot process ${delivery.event} ${delivery.id}: ${why}`,
        data: { delivery: delivery.id, event: delivery.event },
      })
    })
  }

  return {
    async next(): Promise<boolean> {
      if (rate.waitMs() > 0) return false
      const delivery = await nextDelivery(store, clock.now())
      if (delivery === undefined) return false
      rate.begin()
      try {
        await processDelivery(delivery)
      } catch (error) {
        await postpone(delivery, error)
      }
      processed()
      return true
    },
    async due() {
      // At the rate limit the store isn't queried: a query per arriving event would slow a flood down further.
      const wait = rate.waitMs()
      return wait > 0 ? clock.now() + wait : await nextDeliveryDue(store)
    },
  }
}

function triggerStep({ to, task, staleDays, requiresHitl = false }: Trigger) {
  const about =
    staleDays === undefined
      ? task
      : `${task} The related issues are the open ones without activity for ${staleDays} days.`
  return { to, when: [], on: 'any' as const, task: about, requiresHitl }
}

function parse(payload: string): unknown {
  try {
    return JSON.parse(payload)
  } catch {
    return undefined
  }
}
