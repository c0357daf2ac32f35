import { reasonOf } from '../model/errors.ts'
import type { Arrival, Session, SessionPort, Turn } from '../runtimes/runtime.ts'
import { doubtfulDeliveries } from '../store/deliveries.ts'
import type { Mail } from '../store/messages.ts'
import type { Store, Tx } from '../store/store.ts'
import { renderEnvelope } from '../wire/envelope.ts'
import { interruptUnderWay } from './interrupts.ts'
import { createLadder, type Ladder } from './ladder.ts'
import type { Mailroom } from './mailroom.ts'
import type { Clock, Log } from './surroundings.ts'
import type { WaitingAnswers } from './waiting-answers.ts'

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
  mailroom: Mailroom
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

export function createHandover(options: HandoverOptions): Handover {
  const { name, store, mailroom, clock, log, runtime, answers, isHeld, mailGiven, cameBack, moved } = options
  const limit = options.deliver === 'single' ? 1 : TURN.messages
  /** Made with the first message that moves. */
  let ladder: Ladder | undefined
  let session: Session | undefined
  /** Handed out with their own commit, and not given yet. */
  let taken: Mail[] = []
  /** The turn that is being given: what is in it, and how its wait is ended. */
  let giving: { ids: readonly string[]; gone: AbortController; done: Promise<unknown> } | undefined
  let givenAt = Number.NEGATIVE_INFINITY
  let isGivenUrgent = false
  let waitsFor: string | undefined
  /** Until then nothing is given: it would not be taken. */
  let refusesUntil = 0
  /** In a row, without anything new of the session. */
  let refusals = 0
  let looksInVain = 0
  /** What an earlier session left is not overtaken until then; the time counts from when it is first looked for. */
  let leftUntil = 0
  let delivering = false
  let wanted = false
  let dismissed = false
  let later: { at: number; cancel(): void } | undefined

  function isListening(): boolean {
    return !dismissed && !isHeld() && session?.state === 'idle' && interruptUnderWay(session) === undefined
  }

  function steps(): Ladder {
    ladder ??= createLadder({ name, store, mailroom, moved, isDismissed: () => dismissed })
    return ladder
  }

  function doubts(): number {
    return ladder?.doubts() ?? 0
  }

  // ── when ───────────────────────────────────────────────────────────────────────────────────────

  /** While a turn is given, it makes us look again after it. */
  function look() {
    wanted = true
    if (!delivering) void deliverAll()
  }

  function refresh() {
    refusesUntil = 0
    refusals = 0
    looksInVain = 0
    look()
  }

  /** It took nothing just now: without news of it, nothing is handed out that would only come back. */
  function noteRefusal() {
    refusals += 1
    refusesUntil = clock.now() + (waitsFor === undefined ? pauseAfter(refusals) : OBSTRUCTED_MS)
  }

  function isRefusing(): boolean {
    return clock.now() < refusesUntil
  }

  /** At the earliest of the times that were asked for. */
  function lookLater(ms: number) {
    const at = clock.now() + ms
    if (dismissed || (later !== undefined && later.at <= at)) return
    later?.cancel()
    const cancel = clock.after(ms, () => {
      later = undefined
      look()
    })
    later = { at, cancel }
  }

  async function deliverAll() {
    delivering = true
    later?.cancel()
    later = undefined
    try {
      while (wanted && isListening()) {
        wanted = false
        await lookForDoubts()
        if (isListening() && !isRefusing() && !isLooking()) await deliverTurn()
      }
      if (isRefusing()) lookLater(refusesUntil - clock.now())
      if (wanted) interruptUnderWay(session)?.then(look, look)
    } catch (error) {
      if (dismissed) return
      log.error({ agent: name, err: error }, 'a delivery failed; it will be tried again')
      lookLater(TRY_AGAIN_MS)
    } finally {
      delivering = false
      if (taken.length > 0 && (isRefusing() || !isListening())) void putBack()
    }
  }

  // ── turns ──────────────────────────────────────────────────────────────────────────────────────

  /** First the answers to its own commands, then the messages that wait, as one turn. */
  async function deliverTurn() {
    const { messages, remaining } = taken.length > 0 ? nextTaken() : await store.write(handOut)
    if (!isListening()) {
      // Paused, halted or busy while they were handed out.
      taken.unshift(...messages)
      return
    }
    if (messages.length === 0 && !areAnswersAwaited()) return
    if (messages.length > 0) mailGiven()
    isGivenUrgent = messages.some(({ priority }) => priority === 'urgent')
    const given = answers()?.take()
    const turn = turnOf(messages, given?.blocks)
    const arrival = await giveTurn(turn)
    if (dismissed) return
    if (arrival.state === 'queued') {
      isGivenUrgent = false
      given?.putBack()
      noteRefusal()
      // Those behind it go back too, or they would overtake it.
      await putBack()
    } else {
      refusals = 0
      if (remaining > 0) wanted = true
      if (arrival.state !== 'uncertain') given?.arrived()
      else if (turn.ids.length === 0) given?.doubt()
      else if (given !== undefined) steps().bind(turn.ids, given)
    }
    if (arrival.state === 'uncertain') lookLater(NOT_NOW_MS)
    else if (arrival.state !== 'queued' && areAnswersAwaited()) wanted = true
    await steps().move(turn.ids, arrival.state, arrival.evidence)
    if (arrival.state === 'queued') cameBack()
  }

  function areAnswersAwaited(): boolean {
    return answers()?.areAwaited() ?? false
  }

  async function lookForDoubts() {
    const areLeft = () => doubts() > 0 || session?.hasUnsent?.() === true
    if (leftUntil === Number.POSITIVE_INFINITY) leftUntil = clock.now() + LEFT_MS
    if (!areLeft()) return
    await steps().settleDoubts(session!)
    if (!areLeft()) leftUntil = 0
    else if (isLooking()) lookLater(LEFT_LOOK_MS)
    else {
      looksInVain += 1
      // A program that hangs, or was stopped, tells of nothing when it goes on.
      lookLater(pauseAfter(looksInVain))
    }
  }

  function isLooking(): boolean {
    return clock.now() < leftUntil && doubts() > 0
  }

  async function giveTurn(turn: Turn): Promise<Arrival> {
    const gone = new AbortController()
    const { promise: done, resolve } = Promise.withResolvers<void>()
    // Before it is given: the agent may turn busy with it at once.
    giving = { ids: turn.ids, gone, done }
    let arrival: Arrival
    try {
      arrival = await session!.deliver(turn, gone.signal)
    } catch (error) {
      log.error({ agent: name, err: error }, 'the runtime failed at a delivery')
      arrival = { state: 'uncertain', evidence: `the runtime failed: ${reasonOf(error)}` }
    }
    giving = undefined
    if (arrival.state !== 'queued') givenAt = clock.now()
    resolve()
    return arrival
  }

  function handOut(tx: Tx) {
    return mailroom.handOut(tx, name, `given to the ${runtime} runtime`, {
      byPriority: true,
      mustWake: true,
      untilFound: true,
      limit,
      maxBytes: TURN.bytes,
    })
  }

  function nextTaken() {
    let bytes = 0
    const end = taken.findIndex((mail, index) => {
      bytes += Buffer.byteLength(mail.content)
      return index > 0 && (index >= limit || bytes > TURN.bytes)
    })
    const messages = taken.splice(0, end < 0 ? taken.length : end)
    return { messages, remaining: taken.length }
  }

  /** It turned busy, was paused or ended in between. */
  async function putBack() {
    const ids = taken.map((mail) => mail.id)
    taken = []
    await steps()
      .move(ids, 'queued', 'not given: the agent no longer waited for it')
      .catch((error: unknown) => {
        // They stay `written`, and are looked for.
        if (!dismissed) log.error({ agent: name, err: error }, 'a message that was not given stays written')
      })
    if (ids.length > 0) cameBack()
  }

  return {
    async begin(started) {
      const left = await doubtfulDeliveries(store, name)
      if (left.length > 0) steps().begin(left)
      if (left.length > 0) leftUntil = Number.POSITIVE_INFINITY
      session = started
      look()
    },
    look,
    refresh,
    async take(tx) {
      if (delivering || taken.length > 0 || doubts() > 0 || isRefusing() || !isListening()) return false
      const { messages, remaining } = await handOut(tx)
      if (messages.length === 0) return false
      // While the disk syncs, and not sooner: a runtime that is woken while we write takes our processor away.
      tx.whenWritten(() => session?.expect?.(turnOf(messages)))
      tx.afterCommit(() => {
        taken.push(...messages)
        look()
        // It only looks again after this turn.
        if (remaining > 0) wanted = true
      })
      return true
    },
    arrived(ids, state, evidence) {
      if (dismissed) return
      // A person sent it out of the input box that we wait for: it must not come a second time.
      if (state !== 'queued' && waitsFor !== undefined && ids.some((id) => giving?.ids.includes(id)))
        giving?.gone.abort('the agent has a message of it already')
      const takenBack = state === 'queued'
      steps()
        .move(ids, state, evidence, takenBack)
        .then(
          () => (takenBack ? look() : undefined),
          (error: unknown) => {
            log.error({ agent: name, err: error }, 'evidence of a delivery could not be stored')
            lookLater(TRY_AGAIN_MS)
          },
        )
    },
    waits(reason) {
      if (dismissed || reason === waitsFor) return
      waitsFor = reason
      moved()
      if (reason === undefined) refresh()
    },
    waitsFor: () => waitsFor,
    doubts,
    giving: () => giving?.done,
    givenAt: () => givenAt,
    isGivenUrgent: () => isGivenUrgent,
    withdraw: (why) => giving?.gone.abort(why),
    dismiss() {
      dismissed = true
      giving?.gone.abort('its session is over')
      later?.cancel()
      // Answers that did not arrive stay unconfirmed: what they answer is read again in the next session.
    },
  }
}

function turnOf(messages: readonly Mail[], answers: readonly string[] = []): Turn {
  return {
    text: [...answers, ...messages.map(envelopeOf)].join('\n\n'),
    ids: messages.map((mail) => mail.id),
  }
}

/** Once for each: first while it is synced to disk, then for its turn. */
const envelopes = new WeakMap<Mail, string>()

function envelopeOf(mail: Mail): string {
  const envelope = envelopes.get(mail) ?? renderEnvelope(mail)
  envelopes.set(mail, envelope)
  return envelope
}

function pauseAfter(tries: number): number {
  return tries <= SOON_TRIES ? NOT_NOW_MS : NOT_SOON_MS
}
