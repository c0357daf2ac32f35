import type { Clock } from '../base/clock.ts'
import { reasonOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import { doubtfulDeliveries } from '../messages/store/deliveries.ts'
import type { Mail } from '../messages/store/messages.ts'
import { renderEnvelope } from '../protocol/envelope.ts'
import type { Arrival, Session, SessionPort, Turn } from '../runtimes/runtime.ts'
import type { Store, Tx } from '../store/store.ts'
import { interruptUnderWay } from './interrupts.ts'
import { createLadder, type Ladder } from './ladder.ts'
import type { WaitingAnswers } from './pending-responses.ts'

/** Puts before one agent what waits for it, turn by turn: when it may be given, and what becomes of each turn. */
export interface Handover {
  /** The session is there: what an earlier one left in doubt is looked for, then deliveries begin. */
  begin(session: Session): Promise<void>
  /** Something may be there for the agent. */
  look(): void
  /** The session, or what is allowed with it, has changed: what was refused before may be taken now. */
  refresh(): void
  /** In the transaction that stores a message. Says whether it was taken. */
  take(tx: Tx): Promise<boolean>
  arrived: SessionPort['arrived']
  waits: SessionPort['waits']
  /** What keeps text from the agent though it is idle. */
  waitsFor(): string | undefined
  /** How many messages nobody knows of whether they arrived. */
  doubts(): number
  /** Settled when the turn that is being given has been. */
  giving(): Promise<unknown> | undefined
  /** Settled when the turn that is being given, and all that is known of those before it, is on record. */
  noted(): Promise<unknown>
  /** When the last turn was given. */
  givenAt(): number
  /** There is an urgent message in the turn that is being given, or in the last one. */
  isGivenUrgent(): boolean
  /** A delivery that has not begun is no longer wanted. */
  withdraw(why: string): void
  dismiss(): void
}

export interface HandoverOptions {
  name: string
  store: Store
  mailboxes: Mailboxes
  clock: Clock
  log: Log
  /** Names the runtime in the evidence. */
  runtime: string
  deliver: 'together' | 'single'
  /** None before it said anything that is answered. */
  answers(): WaitingAnswers | undefined
  /** Nothing is to be given to it. */
  isHeld(): boolean
  /** Messages are given to it, not only answers to what it said. */
  mailGiven(): void
  /** What was handed out is in the queue again. */
  cameBack(): void
  /** A delivery moved, or what it waits for has changed. */
  moved(): void
}

/** What one turn holds at most: a terminal takes it in one paste. The rest is the next turn. */
const TURN = { messages: 50, bytes: 150_000 }
/** After a full disk or a lost database. */
const TRY_AGAIN_MS = 2000
/** A delivery that could not begin, and a doubt that stays, are looked at again when the session changes, and after this. */
const NOT_NOW_MS = 5000
/** What an earlier session left in doubt is given again before anything newer, if it is found out so soon. */
const LEFT_MS = 6000
const LEFT_LOOK_MS = 500
/** So often; then it is not soon settled, and each time costs steps on record, or a look into all that was ever said. */
const SOON_TRIES = 12
const NOT_SOON_MS = 60_000
/** The runtime tells when nothing is in the way any more; this is for one that fails to. */
const OBSTRUCTED_MS = 600_000

/** What is known of one agent's deliveries. What is done with it stands below, once for however many agents there are. */
interface Desk extends Omit<HandoverOptions, 'deliver'> {
  /** Of messages in one turn. */
  readonly limit: number
  /** Made with the first message that moves. */
  ladder: Ladder | undefined
  session: Session | undefined
  /** Handed out with their own commit, and not given yet. */
  taken: Mail[]
  /** The turn that is being given: what is in it, and how its wait is ended. */
  giving: { ids: readonly string[]; gone: AbortController; done: Promise<unknown> } | undefined
  /** All of it, with what is written down of it; never rejects. */
  turn: Promise<unknown> | undefined
  givenAt: number
  isGivenUrgent: boolean
  waitsFor: string | undefined
  /** Until then nothing is given: it would not be taken. */
  refusesUntil: number
  /** In a row, without anything new of the session. */
  refusals: number
  looksInVain: number
  /** What an earlier session left is not overtaken until then; the time counts from when it is first looked for. */
  leftUntil: number
  isDelivering: boolean
  isWanted: boolean
  isDismissed: boolean
  later: { at: number; cancel(): void } | undefined
}

export function createHandover(options: HandoverOptions): Handover {
  const { name, store, mailboxes, clock, log, runtime, answers, isHeld, mailGiven, cameBack, moved } = options
  const desk: Desk = {
    name,
    store,
    mailboxes,
    clock,
    log,
    runtime,
    answers,
    isHeld,
    mailGiven,
    cameBack,
    moved,
    limit: options.deliver === 'single' ? 1 : TURN.messages,
    ladder: undefined,
    session: undefined,
    taken: [],
    giving: undefined,
    turn: undefined,
    givenAt: Number.NEGATIVE_INFINITY,
    isGivenUrgent: false,
    waitsFor: undefined,
    refusesUntil: 0,
    refusals: 0,
    looksInVain: 0,
    leftUntil: 0,
    isDelivering: false,
    isWanted: false,
    isDismissed: false,
    later: undefined,
  }

  return {
    async begin(started) {
      const left = await doubtfulDeliveries(desk.store, desk.name)
      if (left.length > 0) steps(desk).begin(left)
      if (left.length > 0) desk.leftUntil = Number.POSITIVE_INFINITY
      desk.session = started
      look(desk)
    },
    look: () => look(desk),
    refresh: () => refresh(desk),
    async take(tx) {
      const { isDelivering, taken } = desk
      if (isDelivering || taken.length > 0 || doubts(desk) > 0 || isRefusing(desk) || !isListening(desk))
        return false
      const { messages, remaining } = await handOut(desk, tx)
      if (messages.length === 0) return false
      tx.afterCommit(() => {
        desk.taken.push(...messages)
        look(desk)
        // It only looks again after this turn.
        if (remaining > 0) desk.isWanted = true
      })
      return true
    },
    arrived(ids, state, evidence) {
      if (desk.isDismissed) return
      const { giving, waitsFor } = desk
      // A person sent it out of the input box that we wait for: it must not come a second time.
      if (state !== 'queued' && waitsFor !== undefined && ids.some((id) => giving?.ids.includes(id)))
        giving?.gone.abort('the agent has a message of it already')
      const takenBack = state === 'queued'
      steps(desk)
        .move(ids, state, evidence, takenBack)
        .then(
          () => (takenBack ? look(desk) : undefined),
          (error: unknown) => {
            desk.log.error({ agent: desk.name, err: error }, 'evidence of a delivery could not be stored')
            lookLater(desk, TRY_AGAIN_MS)
          },
        )
    },
    waits(reason) {
      if (desk.isDismissed || reason === desk.waitsFor) return
      desk.waitsFor = reason
      desk.moved()
      if (reason === undefined) refresh(desk)
    },
    waitsFor: () => desk.waitsFor,
    doubts: () => doubts(desk),
    giving: () => desk.giving?.done,
    async noted() {
      await desk.turn
      await desk.ladder?.noted()
    },
    givenAt: () => desk.givenAt,
    isGivenUrgent: () => desk.isGivenUrgent,
    withdraw: (why) => desk.giving?.gone.abort(why),
    dismiss() {
      desk.isDismissed = true
      desk.giving?.gone.abort('its session is over')
      desk.later?.cancel()
      // Answers that did not arrive stay unconfirmed: what they answer is read again in the next session.
    },
  }
}

function isListening({ isDismissed, isHeld, session }: Desk): boolean {
  return !isDismissed && !isHeld() && session?.state === 'idle' && interruptUnderWay(session) === undefined
}

function steps(desk: Desk): Ladder {
  const { name, store, mailboxes, moved } = desk
  desk.ladder ??= createLadder({ name, store, mailboxes, moved, isDismissed: () => desk.isDismissed })
  return desk.ladder
}

function doubts({ ladder }: Desk): number {
  return ladder?.doubts() ?? 0
}

function areAnswersAwaited({ answers }: Desk): boolean {
  return answers()?.areAwaited() ?? false
}

// ── when ─────────────────────────────────────────────────────────────────────────────────────────

/** While a turn is given, it makes us look again after it. */
function look(desk: Desk) {
  desk.isWanted = true
  if (!desk.isDelivering) void deliverAll(desk)
}

function refresh(desk: Desk) {
  desk.refusesUntil = 0
  desk.refusals = 0
  desk.looksInVain = 0
  look(desk)
}

/** It took nothing just now: without news of it, nothing is handed out that would only come back. */
function noteRefusal(desk: Desk) {
  desk.refusals += 1
  const pauseMs = desk.waitsFor === undefined ? pauseAfter(desk.refusals) : OBSTRUCTED_MS
  desk.refusesUntil = desk.clock.now() + pauseMs
}

function isRefusing({ clock, refusesUntil }: Desk): boolean {
  return clock.now() < refusesUntil
}

/** At the earliest of the times that were asked for. */
function lookLater(desk: Desk, ms: number) {
  const { clock, later, isDismissed } = desk
  const at = clock.now() + ms
  if (isDismissed || (later !== undefined && later.at <= at)) return
  later?.cancel()
  const cancel = clock.after(ms, () => {
    desk.later = undefined
    look(desk)
  })
  desk.later = { at, cancel }
}

async function deliverAll(desk: Desk) {
  desk.isDelivering = true
  desk.later?.cancel()
  desk.later = undefined
  try {
    while (desk.isWanted && isListening(desk)) {
      desk.isWanted = false
      await lookForDoubts(desk)
      if (isListening(desk) && !isRefusing(desk) && !isLooking(desk)) await noteTurn(desk, deliverTurn(desk))
    }
    if (isRefusing(desk)) lookLater(desk, desk.refusesUntil - desk.clock.now())
    if (desk.isWanted)
      interruptUnderWay(desk.session)?.then(
        () => look(desk),
        () => look(desk),
      )
  } catch (error) {
    if (desk.isDismissed) return
    desk.log.error({ agent: desk.name, err: error }, 'a delivery failed; it will be tried again')
    lookLater(desk, TRY_AGAIN_MS)
  } finally {
    desk.isDelivering = false
    if (desk.taken.length > 0 && (isRefusing(desk) || !isListening(desk))) void putBack(desk)
  }
}

// ── turns ────────────────────────────────────────────────────────────────────────────────────────

async function noteTurn(desk: Desk, turn: Promise<void>) {
  desk.turn = turn.catch(() => {})
  try {
    await turn
  } finally {
    desk.turn = undefined
  }
}

/** First the answers to its own commands, then the messages that wait, as one turn. */
async function deliverTurn(desk: Desk) {
  const { messages, remaining } =
    desk.taken.length > 0 ? nextTaken(desk) : await desk.store.write((tx) => handOut(desk, tx))
  if (!isListening(desk)) {
    // Paused, halted or busy while they were handed out.
    desk.taken.unshift(...messages)
    return
  }
  if (messages.length === 0 && !areAnswersAwaited(desk)) return
  if (messages.length > 0) desk.mailGiven()
  desk.isGivenUrgent = messages.some(({ priority }) => priority === 'urgent')
  const given = desk.answers()?.take()
  const turn = turnOf(messages, given?.blocks)
  const arrival = await giveTurn(desk, turn)
  if (desk.isDismissed) return
  const { came, left } = splitBy(turn.ids, arrival.ids)
  if (arrival.state === 'queued') {
    desk.isGivenUrgent = false
    given?.putBack()
    noteRefusal(desk)
    // Those behind it go back too, or they would overtake it.
    await putBack(desk)
  } else {
    desk.refusals = 0
    if (remaining > 0) desk.isWanted = true
    if (arrival.state !== 'uncertain') given?.arrived()
    else if (turn.ids.length === 0) given?.doubt()
    else if (given !== undefined) steps(desk).bind(came, given)
  }
  if (arrival.state === 'uncertain') lookLater(desk, NOT_NOW_MS)
  else if (arrival.state !== 'queued' && areAnswersAwaited(desk)) desk.isWanted = true
  try {
    await steps(desk).move(came, arrival.state, arrival.evidence)
  } finally {
    if (left.length > 0) await giveNext(desk, left)
  }
  if (arrival.state === 'queued') desk.cameBack()
}

/** They did not fit into the turn; what was handed out after them comes after them. */
async function giveNext(desk: Desk, ids: readonly string[]) {
  await putBack(desk)
  await steps(desk).move(ids, 'queued', 'there was no room for it in the turn that was given')
  desk.isWanted = true
  desk.cameBack()
}

/** `arrived`: left out when all of them did. */
function splitBy(ids: readonly string[], arrived: readonly string[] = ids) {
  const came = ids.filter((id) => arrived.includes(id))
  return { came, left: ids.filter((id) => !arrived.includes(id)) }
}

async function lookForDoubts(desk: Desk) {
  const { clock, session } = desk
  const areLeft = () => doubts(desk) > 0 || session?.hasPendingInput?.() === true
  if (desk.leftUntil === Number.POSITIVE_INFINITY) desk.leftUntil = clock.now() + LEFT_MS
  if (!areLeft()) return
  await steps(desk).settleDoubts(session!)
  if (!areLeft()) desk.leftUntil = 0
  else if (isLooking(desk)) lookLater(desk, LEFT_LOOK_MS)
  else {
    desk.looksInVain += 1
    // A program that hangs, or was stopped, tells of nothing when it goes on.
    lookLater(desk, pauseAfter(desk.looksInVain))
  }
}

function isLooking(desk: Desk): boolean {
  return desk.clock.now() < desk.leftUntil && doubts(desk) > 0
}

async function giveTurn(desk: Desk, turn: Turn): Promise<Arrival> {
  const gone = new AbortController()
  const { promise: done, resolve } = Promise.withResolvers<void>()
  // Before it is given: the agent may turn busy with it at once.
  desk.giving = { ids: turn.ids, gone, done }
  let arrival: Arrival
  try {
    arrival = await desk.session!.deliver(turn, gone.signal)
  } catch (error) {
    desk.log.error({ agent: desk.name, err: error }, 'the runtime failed at a delivery')
    arrival = { state: 'uncertain', evidence: `the runtime failed: ${reasonOf(error)}` }
  }
  desk.giving = undefined
  if (arrival.state !== 'queued') desk.givenAt = desk.clock.now()
  resolve()
  return arrival
}

function handOut({ mailboxes, name, runtime, limit }: Desk, tx: Tx) {
  return mailboxes.handOut(tx, name, `given to the ${runtime} runtime`, {
    byPriority: true,
    mustWake: true,
    untilFound: true,
    limit,
    maxBytes: TURN.bytes,
  })
}

function nextTaken({ taken, limit }: Desk) {
  let bytes = 0
  const end = taken.findIndex((mail, index) => {
    bytes += Buffer.byteLength(mail.content)
    return index > 0 && (index >= limit || bytes > TURN.bytes)
  })
  const messages = taken.splice(0, end < 0 ? taken.length : end)
  return { messages, remaining: taken.length }
}

/** It turned busy, was paused or ended in between. */
async function putBack(desk: Desk) {
  const ids = desk.taken.map((mail) => mail.id)
  desk.taken = []
  await steps(desk)
    .move(ids, 'queued', 'not given: the agent no longer waited for it')
    .catch((error: unknown) => {
      if (desk.isDismissed) return
      // They stay `written`, and are looked for.
      desk.log.error({ agent: desk.name, err: error }, 'a message that was not given stays written')
    })
  if (ids.length > 0) desk.cameBack()
}

function turnOf(messages: readonly Mail[], answers: readonly string[] = []): Turn {
  return {
    text: [...answers, ...messages.map(renderEnvelope)].join('\n\n'),
    ids: messages.map((mail) => mail.id),
  }
}

function pauseAfter(tries: number): number {
  return tries <= SOON_TRIES ? NOT_NOW_MS : NOT_SOON_MS
}
