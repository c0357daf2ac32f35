/**
 * Hands the messages that wait for one agent over to its session, one turn at a time, and follows each message until
 * there is evidence of where it ended up (C27).
 *
 * States of the hand-over, each with the field that marks it:
 *
 *   resting       There is nothing to hand over, or the agent isn't ready for it: not idle, paused, halted, or just
 *                 being interrupted. `look` leaves this state once the agent is ready.
 *   checking      [isRunning] Looks up `uncertain` messages by their id. The session answers `submitted`, `absent`
 *                 (then the message is queued again) or `unknown` (then it stays uncertain and is checked later).
 *   handing over  [current] One turn is with the runtime, which answers how far it came. Until the runtime has written
 *                 anything, `withdraw` cancels the turn, and its messages are queued again.
 *   backing off   [refusedUntil] The agent didn't take the last turn. Nothing is handed over until then, or until
 *                 `refresh` reports that the session changed.
 *   closed        [isClosed] The session is over. The next session of the agent checks what this one left uncertain.
 *
 * A message that was taken out of the queue (`reserved`) goes back to the queue whenever its turn doesn't happen.
 */

import type { Clock } from '../base/clock.ts'
import { reasonOf } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { unconfirmedDeliveries } from '../messages/delivery-states.ts'
import type { HandedOut, Mailboxes, TurnClaim } from '../messages/mailboxes.ts'
import type { Mail } from '../messages/messages.ts'
import { renderEnvelope } from '../protocol/response.ts'
import type { DeliveryResult, Session, SessionPort, Turn } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import { pendingInterrupt } from './interrupts.ts'
import type { PendingResponses, ResponsesOfTurn } from './listener.ts'

export type Turns = ReturnType<typeof createTurns>

interface TurnsOptions {
  name: string
  store: Store
  mailboxes: Mailboxes
  clock: Clock
  log: Log
  /** Names the runtime in the evidence. */
  runtime: string
  deliver: 'together' | 'single'
  /** Responses to the agent's commands; undefined until it has sent one. */
  responses(): PendingResponses | undefined
  /** Whether the agent is paused or the team halted. */
  isHeld(): boolean
  /** A turn with messages, not only with responses, is about to be handed over. */
  onMailHandedOver(): void
  /** Messages went back to the queue. */
  onRequeued(): void
  /** A delivery state or the obstacle has changed. */
  onChanged(): void
}

/** Longest text of one paste into a terminal; the rest goes into the next turn. */
const TURN_LIMITS = { messages: 50, bytes: 150_000 }
/** The store failed: a full disk or a lost database rarely recovers faster. */
const RETRY_AFTER_FAILURE_MS = 2000
/** A refused turn or an unknown message is tried again this soon, for the first EARLY_TRIES times … */
const EARLY_RETRY_MS = 5000
const EARLY_TRIES = 12
/** … and then this rarely, because every try writes to the audit or searches the whole conversation. */
const LATE_RETRY_MS = 60_000
/** Retry even if the runtime fails to report that the obstacle is gone. */
const OBSTACLE_RETRY_MS = 600_000
/** Hold newer messages this long while we check whether an earlier session delivered the older ones. */
const HOLD_FOR_EARLIER_MS = 6000
const CHECK_EARLIER_EVERY_MS = 500

/** State of one agent's hand-over. The functions below share it, so that an idle agent costs no closures. */
interface HandOver extends Omit<TurnsOptions, 'deliver'> {
  readonly messagesPerTurn: number
  session?: Session | undefined
  /** Already `written` by the transaction that stored them, and not handed over yet. */
  reserved: Mail[]
  current?: { ids: readonly string[]; cancel: AbortController; done: Promise<unknown> } | undefined
  /** The current turn up to its record in the store; never rejects. */
  turn?: Promise<unknown> | undefined
  handedOverAt: number
  isUrgent: boolean
  obstacle?: string | undefined
  refusedUntil: number
  /** Refusals in a row since the session last changed. */
  refusals: number
  /** Checks in a row that settled nothing. */
  unresolvedChecks: number
  /** Newer messages wait until then for uncertain ones of an earlier session. Infinity: not checked yet. */
  holdUntil: number
  isRunning: boolean
  /** `look` was called since the last round. */
  isWanted: boolean
  isClosed: boolean
  nextLook?: { at: number; cancel(): void } | undefined
  /** Uncertain messages by key; the value says whether the store knows that they are. */
  readonly uncertain: Map<number, boolean>
  /** Responses in a turn whose messages are uncertain. They are settled together with those messages. */
  readonly unproven: { keys: readonly number[]; responses: ResponsesOfTurn }[]
  lastMove: Promise<unknown>
}

export function createTurns({ deliver, ...options }: TurnsOptions) {
  const own: HandOver = {
    ...options,
    messagesPerTurn: deliver === 'single' ? 1 : TURN_LIMITS.messages,
    reserved: [],
    handedOverAt: Number.NEGATIVE_INFINITY,
    isUrgent: false,
    refusedUntil: 0,
    refusals: 0,
    unresolvedChecks: 0,
    holdUntil: 0,
    isRunning: false,
    isWanted: false,
    isClosed: false,
    uncertain: new Map(),
    unproven: [],
    lastMove: Promise.resolve(),
  }

  return {
    /** The session is up. Messages that an earlier session left uncertain are checked before anything newer goes out. */
    async begin(started: Session): Promise<void> {
      const left = await unconfirmedDeliveries(own.store, own.name)
      for (const key of left) own.uncertain.set(key, false)
      if (left.length > 0) own.holdUntil = Number.POSITIVE_INFINITY
      own.session = started
      look(own)
    },
    /** Hands over what waits, as soon as the agent is ready. */
    look: () => look(own),
    /** The session, or what it is allowed, has changed: the agent may take now what it refused before. */
    refresh: () => refresh(own),
    readyFor(): TurnClaim | undefined {
      const isUnderWay = own.isRunning || own.reserved.length > 0 || own.uncertain.size > 0
      return isUnderWay || isBackingOff(own) || !isReady(own) ? undefined : turnClaim(own)
    },
    take({ messages, remaining }: HandedOut) {
      own.reserved.push(...messages)
      look(own)
      if (remaining > 0) own.isWanted = true
    },
    onEvidence(...[ids, state, evidence]: Parameters<SessionPort['onEvidence']>) {
      if (own.isClosed) return
      const { current, obstacle } = own
      const isQueued = state === 'queued'
      // A person submitted the message from the input box that blocked us: don't deliver it again.
      if (!isQueued && obstacle !== undefined && ids.some((id) => current?.ids.includes(id)))
        current?.cancel.abort('the agent already has a message of this turn')
      move(own, ids, state, evidence, isQueued).then(
        () => (isQueued ? look(own) : undefined),
        (error: unknown) => {
          own.log.error({ agent: own.name, err: error }, 'could not store the evidence of a delivery')
          lookLater(own, RETRY_AFTER_FAILURE_MS)
        },
      )
    },
    onObstacle(reason: string | undefined) {
      if (own.isClosed || reason === own.obstacle) return
      own.obstacle = reason
      own.onChanged()
      if (reason === undefined) refresh(own)
    },
    /** Why an idle agent gets no text, such as a person's draft. */
    obstacle: () => own.obstacle,
    uncertainCount: () => own.uncertain.size,
    /** Resolves when the runtime has answered for the turn that is being handed over; undefined while there is none. */
    handingOver: () => own.current?.done,
    /** Resolves when the turn that is being handed over, and everything known of earlier ones, is stored. */
    async recorded() {
      await own.turn
      await own.lastMove
    },
    handedOverAt: () => own.handedOverAt,
    /** Whether the turn that is being handed over, or the last one, contains an urgent message. */
    isUrgent: () => own.isUrgent,
    /** Cancels a turn that the runtime hasn't begun to write. */
    withdraw: (why: string) => own.current?.cancel.abort(why),
    close() {
      own.isClosed = true
      own.current?.cancel.abort('its session is over')
      own.nextLook?.cancel()
      // Responses that didn't arrive stay unconfirmed: the next session reads their commands again.
    },
  }
}

// ── When to hand over ────────────────────────────────────────────────────────────────────────────

function isReady({ isClosed, isHeld, session }: HandOver): boolean {
  return !isClosed && !isHeld() && session?.state === 'idle' && pendingInterrupt(session) === undefined
}

function isBackingOff({ clock, refusedUntil }: HandOver): boolean {
  return clock.now() < refusedUntil
}

/** Newer messages must not overtake uncertain ones of an earlier session. */
function isHoldingForEarlier({ clock, holdUntil, uncertain }: HandOver): boolean {
  return clock.now() < holdUntil && uncertain.size > 0
}

function look(own: HandOver) {
  own.isWanted = true
  if (!own.isRunning) void run(own)
}

function refresh(own: HandOver) {
  own.refusedUntil = 0
  own.refusals = 0
  own.unresolvedChecks = 0
  look(own)
}

/** Keeps the earliest of the times that were asked for. */
function lookLater(own: HandOver, ms: number) {
  const { clock, nextLook, isClosed } = own
  const at = clock.now() + ms
  if (isClosed || (nextLook !== undefined && nextLook.at <= at)) return
  nextLook?.cancel()
  const cancel = clock.after(ms, () => {
    own.nextLook = undefined
    look(own)
  })
  own.nextLook = { at, cancel }
}

/** checking → handing over, for as long as somebody asks and the agent is ready. */
async function run(own: HandOver) {
  own.isRunning = true
  own.nextLook?.cancel()
  own.nextLook = undefined
  try {
    while (own.isWanted && isReady(own)) {
      own.isWanted = false
      await checkUncertain(own)
      if (!isReady(own) || isBackingOff(own) || isHoldingForEarlier(own)) continue
      const turn = handOverTurn(own)
      own.turn = turn.catch(() => {})
      await turn.finally(() => {
        own.turn = undefined
      })
    }
    if (isBackingOff(own)) lookLater(own, own.refusedUntil - own.clock.now())
    if (own.isWanted) {
      const again = () => look(own)
      pendingInterrupt(own.session)?.then(again, again)
    }
  } catch (error) {
    if (own.isClosed) return
    own.log.error({ agent: own.name, err: error }, 'a delivery failed; retrying')
    lookLater(own, RETRY_AFTER_FAILURE_MS)
  } finally {
    own.isRunning = false
    if (own.reserved.length > 0 && (isBackingOff(own) || !isReady(own))) void requeueReserved(own)
  }
}

function retryAfter(tries: number): number {
  return tries <= EARLY_TRIES ? EARLY_RETRY_MS : LATE_RETRY_MS
}

// ── Handing over one turn ────────────────────────────────────────────────────────────────────────

/** Builds a turn: the responses to the agent's own commands first, then the waiting messages. */
async function handOverTurn(own: HandOver) {
  const { messages, remaining } = own.reserved.length > 0 ? nextReserved(own) : await takeFromQueue(own)
  if (!isReady(own)) {
    // The agent was paused, halted or became busy: `run` requeues them.
    own.reserved.unshift(...messages)
    return
  }
  const areResponsesAwaited = () => own.responses()?.areAwaited() ?? false
  if (messages.length === 0 && !areResponsesAwaited()) return
  if (messages.length > 0) own.onMailHandedOver()
  own.isUrgent = messages.some(({ priority }) => priority === 'urgent')
  const responses = own.responses()?.take()
  const turn: Turn = {
    text: [...(responses?.blocks ?? []), ...messages.map(renderEnvelope)].join('\n\n'),
    ids: messages.map((mail) => mail.id),
  }
  const arrival = await deliver(own, turn)
  if (own.isClosed) return
  const taken = arrival.ids ?? turn.ids
  const came = turn.ids.filter((id) => taken.includes(id))
  const left = turn.ids.filter((id) => !taken.includes(id))
  if (arrival.state === 'queued') {
    own.isUrgent = false
    responses?.putBack()
    own.refusals += 1
    own.refusedUntil =
      own.clock.now() + (own.obstacle === undefined ? retryAfter(own.refusals) : OBSTACLE_RETRY_MS)
    // Messages behind it go back too, or they would overtake it.
    await requeueReserved(own)
  } else {
    own.refusals = 0
    if (remaining > 0) own.isWanted = true
    if (arrival.state !== 'uncertain') {
      responses?.arrived()
      if (areResponsesAwaited()) own.isWanted = true
    } else {
      if (turn.ids.length === 0) responses?.unknown()
      else if (responses !== undefined) own.unproven.push({ keys: keysOf(came), responses })
      lookLater(own, EARLY_RETRY_MS)
    }
  }
  try {
    await move(own, came, arrival.state, arrival.evidence)
  } finally {
    if (left.length > 0) {
      // Messages that were reserved after them must come after them.
      await requeueReserved(own)
      await move(own, left, 'queued', 'there was no room for it in the turn that was handed over')
      own.isWanted = true
      own.onRequeued()
    }
  }
  if (arrival.state === 'queued') own.onRequeued()
}

async function deliver(own: HandOver, turn: Turn): Promise<DeliveryResult> {
  const cancel = new AbortController()
  const { promise: done, resolve } = Promise.withResolvers<void>()
  // Set before the runtime gets it: the agent may turn busy with it at once.
  own.current = { ids: turn.ids, cancel, done }
  let arrival: DeliveryResult
  try {
    arrival = await own.session!.deliver(turn, cancel.signal)
  } catch (error) {
    own.log.error({ agent: own.name, err: error }, 'the runtime failed at a delivery')
    arrival = { state: 'uncertain', evidence: `the runtime failed: ${reasonOf(error)}` }
  }
  own.current = undefined
  if (arrival.state !== 'queued') own.handedOverAt = own.clock.now()
  resolve()
  return arrival
}

function turnClaim({ runtime, messagesPerTurn }: HandOver): TurnClaim {
  return {
    evidence: `given to the ${runtime} runtime`,
    byPriority: true,
    mustWake: true,
    untilFound: true,
    limit: messagesPerTurn,
    maxBytes: TURN_LIMITS.bytes,
  }
}

function takeFromQueue(own: HandOver): Promise<HandedOut> {
  const claim = turnClaim(own)
  return own.store.write((tx) => own.mailboxes.handOut(tx, own.name, claim.evidence, claim))
}

function nextReserved({ reserved, messagesPerTurn }: HandOver) {
  let bytes = 0
  const end = reserved.findIndex((mail, index) => {
    bytes += Buffer.byteLength(mail.content)
    return index > 0 && (index >= messagesPerTurn || bytes > TURN_LIMITS.bytes)
  })
  const messages = reserved.splice(0, end < 0 ? reserved.length : end)
  return { messages, remaining: reserved.length }
}

/** For an agent that became busy, was paused or ended before their turn. */
async function requeueReserved(own: HandOver) {
  const ids = own.reserved.map((mail) => mail.id)
  own.reserved = []
  await move(own, ids, 'queued', 'not delivered: the agent was no longer idle').catch((error: unknown) => {
    if (!own.isClosed)
      own.log.error({ agent: own.name, err: error }, 'could not requeue a message that was not delivered')
  })
  if (ids.length > 0) own.onRequeued()
}

// ── Evidence ─────────────────────────────────────────────────────────────────────────────────────

function move(
  own: HandOver,
  ids: readonly string[],
  state: DeliveryResult['state'],
  evidence: string,
  takenBack = false,
): Promise<void> {
  const moved = moveKeys(own, keysOf(ids), state, evidence, takenBack)
  own.lastMove = Promise.allSettled([own.lastMove, moved]).then(() => {})
  return moved
}

async function moveKeys(
  own: HandOver,
  keys: readonly number[],
  state: DeliveryResult['state'],
  evidence: string,
  takenBack = false,
) {
  if (keys.length === 0 || own.isClosed) return
  const { uncertain } = own
  const moved = await own.store
    .write((tx) => own.mailboxes.moved(tx, own.name, keys, state, evidence, takenBack))
    .catch((error: unknown) => {
      // The record is wrong now, so the messages are checked.
      for (const key of keys) if (!uncertain.has(key)) uncertain.set(key, false)
      throw error
    })
  if (state === 'uncertain') {
    for (const key of moved) uncertain.set(key, true)
    // The others had evidence before the runtime lost track.
    const proven = keys.filter((key) => !uncertain.has(key))
    settle(own, proven, 'submitted')
  } else settle(own, keys, state)
  own.onChanged()
}

function settle(
  own: HandOver,
  keys: readonly number[],
  state: Exclude<DeliveryResult['state'], 'uncertain'>,
) {
  for (const key of keys) {
    own.uncertain.delete(key)
    const index = own.unproven.findIndex((turn) => turn.keys.includes(key))
    const [turn] = index < 0 ? [] : own.unproven.splice(index, 1)
    if (state === 'queued') turn?.responses.putBack()
    else turn?.responses.arrived()
  }
}

async function checkUncertain(own: HandOver) {
  const { clock, session } = own
  const isAnythingLeft = () => own.uncertain.size > 0 || session?.hasPendingInput?.() === true
  if (own.holdUntil === Number.POSITIVE_INFINITY) own.holdUntil = clock.now() + HOLD_FOR_EARLIER_MS
  if (!isAnythingLeft()) return
  await locateUncertain(own, session!)
  if (!isAnythingLeft()) own.holdUntil = 0
  else if (isHoldingForEarlier(own)) lookLater(own, CHECK_EARLIER_EVERY_MS)
  else {
    // A program that hung doesn't report when it continues, so check again later.
    own.unresolvedChecks += 1
    lookLater(own, retryAfter(own.unresolvedChecks))
  }
}

const STATE_AT = { submitted: 'submitted', absent: 'queued', unknown: 'uncertain' } as const

async function locateUncertain(own: HandOver, session: Session) {
  const { uncertain } = own
  if (uncertain.size > 0) {
    // The agent itself may have acknowledged some of them.
    const open = new Set(await unconfirmedDeliveries(own.store, own.name))
    const acknowledged = [...uncertain.keys()].filter((key) => !open.has(key))
    settle(own, acknowledged, 'read')
  }
  const keys = [...uncertain.keys()]
  const places = await session.locate(keys.map((key) => formatId('msg', key)))
  const moves = new Map<string, { keys: number[]; state: DeliveryResult['state']; evidence: string }>()
  for (const [index, { at, evidence }] of places.entries()) {
    const key = keys[index]!
    const isRecorded = uncertain.get(key)
    // Evidence came during the lookup, or the message is already recorded as uncertain.
    if (isRecorded === undefined || (at === 'unknown' && isRecorded)) continue
    if (at === 'unknown') uncertain.set(key, true)
    const same = moves.get(`${at} ${evidence}`) ?? { keys: [], state: STATE_AT[at], evidence }
    moves.set(`${at} ${evidence}`, same)
    same.keys.push(key)
  }
  for (const { keys, state, evidence } of moves.values()) await moveKeys(own, keys, state, evidence)
}

function keysOf(ids: readonly string[]): number[] {
  return ids.map((id) => parseId('msg', id)).filter((key) => key !== undefined)
}
