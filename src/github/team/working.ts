import { ORCHESTRATOR } from '../../base/agent.ts'
import { DEFAULT_RETRIES } from '../../base/backoff.ts'
import type { Tx } from '../../store/store.ts'
import { type GitHubEvent, readEvent } from '../core/event.ts'
import { createPace } from '../core/pace.ts'
import { isPaused } from '../core/pause.ts'
import { DEFAULT_ROUTES, routeEvent } from '../core/routing.ts'
import {
  endDelivery,
  type GithubDelivery,
  nextDelivery,
  nextDeliveryDue,
  putOffDelivery,
} from '../store/deliveries.ts'
import { forgetDocuments, keepDocument } from '../store/documents.ts'
import type { RouteStep, Routes, Trigger } from '../terms.ts'
import type { createDelegating, GivenStep } from './delegating.ts'
import { createGathering, TryLater } from './gather.ts'
import { whyNotOurs } from './ours.ts'
import { say } from './own-doing.ts'
import { AUDIT, type GithubParts, isForPeople, replySource } from './settings.ts'
import { createSlash } from './slash.ts'
import { PERIODIC } from './triggers.ts'

const LONGEST_PAUSE_MS = 5 * 60_000
const LONGEST_WAIT_MS = 24 * 3600_000

/** Works on what GitHub sent: what it shows is kept, commands are heard, agents get their part. */
export function createWorking(parts: GithubParts, delegating: ReturnType<typeof createDelegating>) {
  const { store, clock, log, settings, ownLogin, redact, team } = parts
  const gather = createGathering(parts)
  const pace = createPace(() => settings().eventsPerMinute, clock.now)
  const hear = createSlash(parts)

  async function work(delivery: GithubDelivery): Promise<void> {
    const read = readEvent(delivery.id, delivery.event, parse(delivery.payload))
    const event = read && { ...read, receivedAt: delivery.received_at }
    const ignored = event === undefined ? 'it is no event' : await whyIgnored(event)
    if (event === undefined || ignored !== undefined) {
      await store.write(async (tx) => {
        if (event !== undefined) await keepShown(tx, event)
        await endDelivery(tx, delivery.id, 'ignored', ignored!)
      })
      return
    }
    const trigger = settings().schedule.find(({ name }) => event.type === `${PERIODIC}.${name}`)
    const heard = trigger === undefined ? await hear(event) : { ...SILENCE, steps: [stepOf(trigger)] }
    const routes = { ...DEFAULT_ROUTES, ...settings().routes }
    const isRouted = Object.hasOwn(routes, event.type) || heard.steps.length > 0
    const paused = isPaused(event.subject?.labels ?? [], event.topics)
    // People are heard wherever the team is paused; agents are not.
    const gathered = isRouted && !paused ? await gather(event, heard.commands, trigger?.staleDays) : undefined
    await store.write(async (tx) => {
      if (!(await endDelivery(tx, delivery.id, 'routed', paused ? 'the team is paused there' : null))) return
      await keepShown(tx, event)
      for (const [index, reply] of heard.replies.entries()) {
        if (event.repository === undefined || event.subject === undefined) continue
        const { repository, subject } = event
        await say(tx, { source: replySource(event.id, index), repository, number: subject.number }, reply)
      }
      if (gathered === undefined) return
      const routed = routeEvent(routes, event, gathered)
      const asked =
        trigger === undefined ? heard.steps.map((step) => askedStep(step, routes, routed)) : heard.steps
      await delegating.give(tx, event, gathered, [
        ...asked,
        ...routed.filter(({ to }) => !asked.some((one) => one.to === to)),
      ])
    })
  }

  /** Whoever asks by a command takes the event from nobody, and gets past no person who decides on that role's work. */
  function askedStep(step: GivenStep, routes: Routes, routed: readonly RouteStep[]): GivenStep {
    const requiresHitl = isForPeople(team(), settings(), step.to, Object.values(routes).flat())
    return { ...step, requiresHitl, isRouted: routed.some(({ to }) => to === step.to) }
  }

  async function whyIgnored(event: GitHubEvent): Promise<string | undefined> {
    const why = whyNotOurs(event, settings().repositories)
    const { sender } = event
    if (why !== undefined || sender === undefined) return why
    const own = await ownLogin()
    if (own === undefined) throw new TryLater('GitHub does not say who we are', undefined)
    return sender.login.toLowerCase() === own.toLowerCase() ? 'it is our own doing' : undefined
  }

  /** What the repository shows is kept for looking up what is related. */
  async function keepShown(tx: Tx, { type, repository, subject, comment }: GitHubEvent) {
    if (repository === undefined || subject === undefined) return
    if (/^issues\.(?:deleted|transferred)$/.test(type))
      return await forgetDocuments(tx, repository, subject.number)
    const { kind, number, author, state, updatedAt } = subject
    const [title, body] = [redact(subject.title), redact(subject.body)]
    const at = Date.parse(updatedAt ?? '') || tx.now
    await keepDocument(tx, { repository, kind, number, part: '', title, body, author, state, at })
    if (comment === undefined) return
    // Each kind is numbered by itself.
    const part = comment.kind === 'comment' ? String(comment.id) : `${comment.kind}-${comment.id}`
    // Once a comment of a review was kept by its number alone; what is said of it now holds for that too.
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

  /** GitHub may be away for hours, and no event is lost by that; a fault of ours is tried a few times. */
  async function putOff(delivery: GithubDelivery, error: unknown) {
    const attempts = delivery.attempts + 1
    const isWait = error instanceof TryLater
    const why = (error instanceof Error ? error.message : String(error)).slice(0, 500)
    if (!isWait) log.error({ err: error, delivery: delivery.id }, 'an event of GitHub could not be worked on')
    const pause = Math.min(1000 * 2 ** Math.min(attempts - 1, 20), LONGEST_PAUSE_MS)
    const wait = Math.max(isWait ? (error.waitMs ?? 0) : 0, pause)
    const isOver = isWait ? clock.now() - delivery.received_at > LONGEST_WAIT_MS : attempts > DEFAULT_RETRIES
    await store.write(async (tx) => {
      if (!isOver) return await putOffDelivery(tx, delivery.id, tx.now + wait, why)
      await endDelivery(tx, delivery.id, 'failed', why)
      tx.audit({
        type: AUDIT.failure,
        class: 'internal',
        actor: ORCHESTRATOR,
        text: `${delivery.event} ${delivery.id} could not be worked on: ${why}`,
        data: { delivery: delivery.id, event: delivery.event },
      })
    })
  }

  return {
    /** The oldest that is due; says whether there was one. */
    async next(): Promise<boolean> {
      if (pace.waitMs() > 0) return false
      const delivery = await nextDelivery(store, clock.now())
      if (delivery === undefined) return false
      pace.begin()
      try {
        await work(delivery)
      } catch (error) {
        await putOff(delivery, error)
      }
      return true
    },
    async due() {
      // Nothing is looked for before then: a flood that waits its turn would be looked through for each that comes.
      const wait = pace.waitMs()
      return wait > 0 ? clock.now() + wait : await nextDeliveryDue(store)
    },
  }
}

const SILENCE = { replies: [], commands: [] }

function stepOf({ to, task, staleDays, requiresHitl = false }: Trigger) {
  const about =
    staleDays === undefined
      ? task
      : `${task} The related issues are the open ones that nobody touched for ${staleDays} days.`
  return { to, when: [], on: 'any' as const, task: about, requiresHitl }
}

function parse(payload: string): unknown {
  try {
    return JSON.parse(payload)
  } catch {
    return undefined
  }
}
