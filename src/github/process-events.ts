/** The queue of stored events: which are ignored, the slash commands in them, and the steps that they start. */
import { randomUUID } from 'node:crypto'
import { ORCHESTRATOR } from '../base/agent.ts'
import { DEFAULT_RETRIES } from '../base/backoff.ts'
import { parseId } from '../base/ids.ts'
import type { WorkQueue } from '../base/queue-loop.ts'
import { findHumanRequest, type HumanRequestRow, readApprovals } from '../people/people.ts'
import { commentAsService } from './comments.ts'
import { type GitHubEvent, newComment, readEvent } from './core/event.ts'
import { isPaused } from './core/policy.ts'
import {
  helpText,
  mayUse,
  readSlashCommands,
  readVerdict,
  routeEvent,
  routesOf,
  SLASH_COMMANDS,
  type SlashCommand,
  type SlashName,
  stepsFor,
  whyIgnored,
} from './core/routing.ts'
import type { DelegatedStep, Delegation } from './delegate-work.ts'
import { AUDIT, type GithubDependencies } from './dependencies.ts'
import { createContextReader, TryLater } from './gather-context.ts'
import { proposalOf } from './proposals.ts'
import { PERIODIC } from './receive-events.ts'
import { personWithLogin, requiresApproval } from './roles.ts'
import { indexEvent } from './search-index.ts'
import {
  endDelivery,
  findAction,
  type GithubDelivery,
  nextDelivery,
  nextDeliveryDue,
  putOffDelivery,
} from './store.ts'
import type { RouteStep, Trigger } from './team-settings.ts'

const MAX_BACKOFF_MS = 5 * 60_000
/** GitHub may be unavailable for hours; an event waits that long before it counts as failed. */
const MAX_WAIT_MS = 24 * 3600_000

/** Processes stored webhooks: indexes their text, runs slash commands and delegates work to agents. */
export function createEventQueue(
  deps: GithubDependencies,
  delegation: Delegation,
  processed: () => void,
): WorkQueue {
  const { store, clock, log, settings, ownLogin, redact, team } = deps
  const gatherContext = createContextReader(deps)
  const rate = createRateWindow(() => settings().eventsPerMinute, clock.now)
  const runSlashCommands = createSlashCommands(deps)

  async function processDelivery(delivery: GithubDelivery): Promise<void> {
    const read = readEvent(delivery.id, delivery.event, parse(delivery.payload))
    const event = read && { ...read, receivedAt: delivery.received_at }
    const ignored = event === undefined ? 'the payload is not an event' : await whyNotProcessed(event)
    if (event === undefined || ignored !== undefined) {
      await store.write(async (tx) => {
        if (event !== undefined) indexEvent(tx, event, redact)
        await endDelivery(tx, delivery.id, 'ignored', ignored!)
      })
      return
    }
    const trigger = settings().schedule.find(({ name }) => event.type === `${PERIODIC}.${name}`)
    const slash =
      trigger === undefined
        ? await runSlashCommands(event)
        : { replies: [], commands: [], steps: [triggerStep(trigger)] }
    const routes = stepsFor(settings(), event)
    const isRouted = routes !== undefined || slash.steps.length > 0
    const paused = isPaused(event.subject?.labels ?? [], event.topics)
    // A pause stops agents; slash commands of people still work.
    const context =
      isRouted && !paused ? await gatherContext(event, slash.commands, trigger?.staleDays) : undefined
    await store.write(async (tx) => {
      if (!(await endDelivery(tx, delivery.id, 'routed', paused ? 'the team is paused there' : null))) return
      indexEvent(tx, event, redact)
      for (const [index, reply] of slash.replies.entries()) {
        if (event.repository === undefined || event.subject === undefined) continue
        const { repository, subject } = event
        const thread = { source: replySource(event.id, index), repository, number: subject.number }
        await commentAsService(tx, thread, reply)
      }
      if (context === undefined) return
      const routed = routeEvent(routes ?? [], event, context)
      const requested =
        trigger === undefined ? slash.steps.map((step) => requestedStep(step, routed)) : slash.steps
      await delegation.delegate(tx, event, context, [
        ...requested,
        ...routed.filter(({ to }) => !requested.some((one) => one.to === to)),
      ])
    })
  }

  /** A slash command neither replaces the routed work of its role nor bypasses the approval that the role needs. */
  function requestedStep(step: DelegatedStep, routed: readonly RouteStep[]): DelegatedStep {
    const requiresHitl = requiresApproval(team(), step.to, Object.values(routesOf(settings())).flat())
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
      if (!isOver) return putOffDelivery(tx, delivery.id, tx.now + wait, why)
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

interface SlashOutcome {
  /** Work for agents. */
  readonly steps: readonly (RouteStep & { task: string })[]
  /** The commands that their author may use. */
  readonly commands: readonly SlashName[]
  /** Comments that the service posts as an answer. */
  readonly replies: readonly string[]
}

/** Runs `/agent …` commands: verdicts are decided at once, everything else becomes a task. */
function createSlashCommands({ store, team, log, handle }: GithubDependencies) {
  async function decide(command: SlashCommand, event: GitHubEvent): Promise<string | undefined> {
    // GitHub did not sign a replayed payload, so its author could be forged.
    if (event.id.startsWith(REPLAY)) {
      log.warn({ delivery: event.id, command: command.name }, 'ignored a verdict in a replayed event')
      return undefined
    }
    const person = personWithLogin(team(), event.comment!.author)!.name
    const verdict = readVerdict(command.words)
    if (verdict === undefined) return `Name the request: \`/agent ${command.name} req_7\`.`
    const { request: id, comment } = verdict
    const key = parseId('req', id) ?? 0
    const request = await findHumanRequest(store, key)
    if (request === undefined || !(await isAboutRepository(request, event.repository)))
      return `There is no ${id} to decide in this repository.`
    const decision = {
      type: 'decide',
      fields: { id, decision: command.name, ...(comment === '' ? {} : { comment }) },
    }
    const receipt = await handle({ kind: 'person', person }, decision)
    const row = (await findHumanRequest(store, key))!
    const given = (await readApprovals(store, [key])).filter((one) => one.action_hash === row.action_hash)
    if (receipt.status !== 'error')
      return row.state === 'open' ? `${id}: ${given.length} of ${row.quorum} approvals.` : undefined
    // After a crash the same comment is processed again, and its verdict already counts.
    const hasDecided =
      command.name === 'reject'
        ? row.state === 'rejected' && row.decided_by === person
        : row.state !== 'rejected' && given.some((one) => one.person === person)
    if (receipt.code === 'CONFLICT' && hasDecided) return undefined
    log.info({ request: id, err: receipt.message }, 'refused a verdict from GitHub')
    return `${id}: ${receipt.message}.`
  }

  /** Comments on GitHub can decide only proposals for the same repository. */
  async function isAboutRepository(
    request: HumanRequestRow,
    repository: string | undefined,
  ): Promise<boolean> {
    const proposal = proposalOf(request)
    if (proposal === undefined) return false
    // A scheduled trigger spells the name as orc.yaml does, GitHub as the owner does.
    return (await findAction(store, proposal))?.repository.toLowerCase() === repository?.toLowerCase()
  }

  return async (event: GitHubEvent): Promise<SlashOutcome> => {
    const steps: (RouteStep & { task: string })[] = []
    const replies: string[] = []
    const commands: SlashName[] = []
    const { subject } = event
    const comment = newComment(event)
    if (comment === undefined) return { steps, commands, replies }
    const author = { association: comment.association, person: personWithLogin(team(), comment.author)?.name }
    for (const command of readSlashCommands(comment.body)) {
      if (command.name === undefined) continue
      if (!mayUse(command.name, author)) {
        log.info(
          { command: command.name, author: comment.author },
          'the author may not use this slash command',
        )
        continue
      }
      commands.push(command.name)
      const { role, task } = SLASH_COMMANDS[command.name]
      if (command.name === 'help') replies.push(helpText())
      else if (role !== undefined) {
        if (!steps.some(({ to }) => to === role))
          steps.push({ to: role, when: [], on: 'any', task: `${task} #${subject?.number ?? ''}` })
      } else {
        const reply = await decide(command, event)
        if (reply !== undefined) replies.push(reply)
      }
    }
    return { steps, commands, replies }
  }
}

const REPLAY = 'replay-'

export function newReplayId(): string {
  return `${REPLAY}${randomUUID()}`
}

/** Answers to slash commands are posted even where the team is paused. */
const replySource = (delivery: string, index: number) => `${delivery}/reply/${index}`

export function isReply(source: string): boolean {
  return /\/reply\/\d+$/.test(source)
}

const MINUTE_MS = 60_000

/** Limits how many items start in any minute (C18). */
export function createRateWindow(perMinute: () => number, now: () => number) {
  let started: number[] = []

  /** Zero if an item may start now. */
  function waitMs(): number {
    const at = now()
    started = started.filter((time) => time > at - MINUTE_MS && time <= at)
    const limit = perMinute()
    return started.length < limit ? 0 : started[started.length - limit]! + MINUTE_MS - at
  }

  return { waitMs, begin: () => void started.push(now()) }
}
