import { ORCHESTRATOR, type SessionState } from '../model/agent.ts'
import { formatId, parseId } from '../model/identifier.ts'
import type { Priority } from '../model/message.ts'
import type { Arrival, Session, SessionPort, Turn, Whereabouts } from '../runtimes/runtime.ts'
import { countQueued, doubtfulDeliveries, unansweredDeliveries } from '../store/deliveries.ts'
import type { Mail } from '../store/messages.ts'
import { keepInSession } from '../store/sessions.ts'
import type { Store, Tx } from '../store/store.ts'
import { renderEnvelope } from '../wire/envelope.ts'
import { createInterrupts, type Outcome } from './interrupts.ts'
import type { Answer, Listener } from './listener.ts'
import type { Mailroom } from './mailroom.ts'
import type { Meter } from './meter.ts'
import type { PermissionDesk } from './permissions.ts'
import type { Clock, Log } from './surroundings.ts'

/** Attends one running agent: hears what it says, and puts before it what waits for it, as evidence allows. */
export interface Attendant {
  /** What the runtime tells of the session. */
  readonly port: SessionPort
  session(): Session | undefined
  /** When the agent's current turn began, or its last one. */
  turnBegan(): number | undefined
  /** The session is there: what an earlier one left in doubt is looked for, then deliveries begin. */
  attend(session: Session): Promise<void>
  /** Something may be there for the agent. */
  look(): void
  mailCame(priority: Priority, from: string): Promise<void>
  /** Something is just being given to it. */
  isGiven(): boolean
  /**
   * Everything is halted: its turn is ended by its program's own means, also one that is just being given. Undefined when
   * there was none to end.
   */
  halt(by: string): Promise<Outcome | undefined>
  /**
   * In the transaction that stores a message for the agent: takes it at once when nothing else is under way, which
   * spares the wait for a second commit. Says whether it did.
   */
  take(tx: Tx): Promise<boolean>
  /** The session is over: nothing is delivered any more. */
  dismiss(): void
}

export interface AttendantOptions {
  name: string
  store: Store
  mailroom: Mailroom
  permissions: PermissionDesk
  meter: Meter
  clock: Clock
  log: Log
  /** Names the runtime in the evidence, and beside what is kept. */
  runtime: string
  deliver: 'together' | 'single'
  isPaused(): boolean
  isHalted(): boolean
  listen(answer: (answer: Answer) => Promise<void>): Listener
  changed(state: SessionState, evidence: string): Promise<void>
  turnBegan(): void
  /** All that it said in the turn was carried out, and no answer begins another one. */
  turnEnded(lastWords: string): void
}

interface WaitingAnswer extends Answer {
  arrived(): void
  /** How often it was given without a sign that it arrived. */
  tries: number
}

/** An answer whose arrival nobody knows of may come twice, rather than not at all; but not for ever. */
const ANSWER_TRIES = 3

/** What one turn holds at most: a terminal takes it in one paste. The rest is the next turn. */
const TURN = { messages: 50, bytes: 150_000 }
/** A flood of important messages is one notice (C2). */
const NOTICE_EVERY_MS = 2000
/** After a full disk or a lost database. */
const TRY_AGAIN_MS = 2000
/** A delivery that could not begin, such as before a person's draft, is tried again when the session changes, and after this. */
const NOT_NOW_MS = 5000
const LABEL_MS = 200
/** How many mistakes in a row an agent is woken for, to put them right. */
const MISTAKES = 3
/** A file in which nothing was written for so long after the end of a turn is read to its end. */
const LATE_MS = 1000
/** A turn that begins so soon after one was given is that one. */
const BEGINS_MS = 5000
/** Of what an agent said last, for whoever has to go on without its report. */
const LAST_WORDS = 2000
const COUNTED = 100

interface Doubt {
  /** That nobody knows was written down. */
  readonly isNoted: boolean
  /** By a process that ended before it wrote down what it had been given. */
  readonly wasTaken?: boolean
}

export function createAttendant(options: AttendantOptions): Attendant {
  const { name, store, mailroom, clock, log } = options
  const limit = options.deliver === 'single' ? 1 : TURN.messages
  let session: Session | undefined
  let answers: WaitingAnswer[] = []
  /** Messages of which nobody knows whether they are in the conversation, by key. */
  const doubtful = new Map<number, Doubt>()
  /** Handed out with their own commit, and not given yet. */
  let taken: Mail[] = []
  /** Turns of which nobody knows whether they arrived, with the answers in them. */
  const unproven: { keys: readonly number[]; given: readonly WaitingAnswer[] }[] = []
  /** Ends the wait of a delivery that has not begun. */
  let withdraw: ((why: string) => void) | undefined
  let delivering = false
  let wanted = false
  let dismissed = false
  let turnBegan: number | undefined
  let lastState: SessionState | undefined
  let lastWords = ''
  let utterances = 0
  /** In a row, since it was last given something else than answers. */
  let mistakes = 0
  let turns = 0
  let noticedAt = Number.NEGATIVE_INFINITY
  let givenAt = Number.NEGATIVE_INFINITY
  /** Settled when the turn that is being given has been. */
  let giving: Promise<unknown> | undefined
  let cancelLater: (() => void) | undefined
  let cancelLabel: (() => void) | undefined
  let keeping: { value: unknown; kept: Promise<void> } | undefined

  const interrupts = createInterrupts({
    ...{ name, store, clock, log },
    toHalt: () => (dismissed || !options.isHalted() ? undefined : session),
  })

  const listener = options.listen((answer) => {
    mistakes = answer.isMistake ? mistakes + 1 : 0
    // One that makes mistakes for ever would be given turns for ever (S2.1).
    if (!answer.wakes || mistakes > MISTAKES) {
      answers.push({ ...answer, wakes: false, arrived() {}, tries: 0 })
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      answers.push({ ...answer, arrived: resolve, tries: 0 })
      look()
    })
  })

  const port: SessionPort = {
    said(utterance) {
      utterances += 1
      const earlier = utterance.key === undefined ? lastWords : ''
      lastWords = `${earlier}${utterance.text}`.slice(-LAST_WORDS)
      return listener.hear(utterance)
    },
    changed(state, evidence) {
      if (dismissed) return
      if (state === 'busy') beginTurn()
      else void endTurn(state === 'idle' && lastState !== 'idle')
      lastState = state
      options.permissions.watch(name, state === 'waiting_input')
      void options.changed(state, evidence).then(look)
      label()
    },
    arrived(ids, state, evidence) {
      if (dismissed) return
      // Taken back by our own interrupt: the only way down the ladder.
      const takenBack = state === 'queued'
      move(keysOf(ids), state, evidence, takenBack).then(
        () => (takenBack ? look() : undefined),
        (error: unknown) =>
          log.error({ agent: name, err: error }, 'evidence of a delivery could not be stored'),
      )
    },
    asked: (question, gone) => options.permissions.ask(name, question, gone),
    used(usage) {
      options.meter
        .used(name, usage)
        .catch((error: unknown) => log.error({ agent: name, err: error }, 'usage could not be stored'))
    },
    keep(value) {
      if (dismissed) return Promise.resolve()
      // While one is being written, only the newest of those that wait is.
      if (keeping !== undefined) {
        keeping.value = value
        return keeping.kept
      }
      const next = { value, kept: Promise.resolve() }
      keeping = next
      next.kept = Promise.resolve().then(() => {
        keeping = undefined
        const kept = JSON.stringify({ runtime: options.runtime, value: next.value })
        return store.write((tx) => keepInSession(tx, name, kept))
      })
      return next.kept
    },
  }

  function beginTurn() {
    turnBegan = clock.now()
    // Given just before the halt. One that a person begins at the terminal is left alone.
    if (options.isHalted() && turnBegan - givenAt < BEGINS_MS) void halt(ORCHESTRATOR)
    // After a dialog it is still the same.
    if (lastState === 'busy' || lastState === 'waiting_input') return
    turns += 1
    lastWords = ''
    options.turnBegan()
  }

  async function endTurn(isOver: boolean) {
    await listener.endTurn()
    if (isOver) await tellEnd()
  }

  /** Only when all was heard: a report that comes a moment late needs no reminder. */
  async function tellEnd() {
    const turn = turns
    if (session?.heardLate === true) await hearOut()
    // An answer that it waits for, or mail, has begun another turn: that one's end counts.
    if (dismissed || turns !== turn || session?.state !== 'idle' || answers.some((answer) => answer.wakes))
      return
    options.turnEnded(lastWords)
  }

  async function hearOut() {
    for (let heard = -1; heard !== utterances && !dismissed; ) {
      heard = utterances
      await new Promise<void>((resolve) => clock.after(LATE_MS, resolve))
      await listener.endTurn()
    }
  }

  /** After its dismissal nothing is written any more: the next session looks for what this one left. */
  async function move(keys: readonly number[], state: Arrival['state'], evidence: string, takenBack = false) {
    if (keys.length === 0 || dismissed) return
    const moved = await store.write((tx) => mailroom.moved(tx, name, keys, state, evidence, takenBack))
    if (state === 'uncertain') for (const key of moved) doubtful.set(key, { isNoted: true })
    else for (const key of keys) doubtful.delete(key)
    label()
  }

  /** While a turn is given, it makes us look again after it. */
  function look() {
    wanted = true
    if (!delivering) void deliverAll()
  }

  async function deliverAll() {
    delivering = true
    cancelLater?.()
    try {
      while (wanted && isListening()) {
        wanted = false
        await settleDoubts()
        if (isListening()) await deliverTurn()
      }
    } catch (error) {
      if (dismissed) return
      log.error({ agent: name, err: error }, 'a delivery failed; it will be tried again')
      lookLater(TRY_AGAIN_MS)
    } finally {
      delivering = false
      if (taken.length > 0 && !isListening()) void putBack()
    }
  }

  /** It turned busy, was paused or ended in between. */
  async function putBack() {
    const keys = keysOf(taken.map((mail) => mail.id))
    taken = []
    if (keys.length === 0) return
    await move(keys, 'queued', 'not given: the agent no longer waited for it').catch((error: unknown) => {
      // They stay `written`, which the next session looks into.
      if (!dismissed) log.error({ agent: name, err: error }, 'a message that was not given stays written')
    })
  }

  function isListening(): boolean {
    return !dismissed && !isHeld() && session?.state === 'idle'
  }

  const isHeld = () => options.isPaused() || options.isHalted()

  function lookLater(ms: number) {
    cancelLater?.()
    cancelLater = clock.after(ms, look)
  }

  /** What was given before and never confirmed is looked for by its id; only what surely did not arrive is sent again. */
  async function settleDoubts() {
    for (const [key, doubt] of [...doubtful]) {
      const { at, evidence } = await session!.locate(formatId('msg', key))
      if (at === 'unknown') doubtful.set(key, { ...doubt, isNoted: true })
      if (at !== 'unknown' || !doubt.isNoted) await move([key], WHERE[at], evidence, doubt.wasTaken)
      settleAnswers(key, at)
    }
    // A program that hangs, or was stopped, tells of nothing when it goes on.
    if (doubtful.size > 0) lookLater(NOT_NOW_MS)
  }

  /** First the answers to its own commands, then the messages that wait, as one turn. */
  async function deliverTurn() {
    const { messages, remaining } = taken.length > 0 ? nextTaken() : await store.write(handOut)
    if (messages.length === 0 && !answers.some((answer) => answer.wakes)) return
    if (messages.length > 0) mistakes = 0
    const given = answers
    answers = []
    const turn: Turn = {
      text: [...given.map((answer) => answer.block), ...messages.map(renderEnvelope)].join('\n\n'),
      ids: messages.map((mail) => mail.id),
    }
    const arrival = await giveTurn(turn)
    if (dismissed) return
    const keys = keysOf(turn.ids)
    if (arrival.state === 'queued') {
      answers.unshift(...given)
      lookLater(NOT_NOW_MS)
      // Those behind it go back too, or they would overtake it.
      await putBack()
    } else if (arrival.state === 'uncertain') {
      // They share the fate of the messages that they were given with.
      if (keys.length > 0) unproven.push({ keys, given })
      else giveAgain(given)
    } else for (const answer of given) answer.arrived()
    if (arrival.state !== 'queued' && remaining > 0) wanted = true
    await move(keys, arrival.state, arrival.evidence)
  }

  /** What became of the answers that were given together with this message. */
  function settleAnswers(key: number, at: Whereabouts) {
    if (at === 'unknown') return
    const index = unproven.findIndex((turn) => turn.keys.includes(key))
    const [turn] = index < 0 ? [] : unproven.splice(index, 1)
    if (turn === undefined) return
    if (at === 'absent') giveAgain(turn.given)
    else for (const answer of turn.given) answer.arrived()
  }

  function giveAgain(given: readonly WaitingAnswer[]) {
    for (const answer of given) answer.tries += 1
    answers.unshift(...given.filter((answer) => answer.tries < ANSWER_TRIES))
    if (answers.length > 0) lookLater(NOT_NOW_MS)
  }

  function handOut(tx: Tx) {
    return mailroom.handOut(tx, name, `given to the ${options.runtime} runtime`, {
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

  async function giveTurn(turn: Turn): Promise<Arrival> {
    const gone = new AbortController()
    withdraw = (why) => gone.abort(why)
    try {
      const delivering = session!.deliver(turn, gone.signal)
      giving = delivering.catch(() => {})
      return await delivering
    } catch (error) {
      log.error({ agent: name, err: error }, 'the runtime failed at a delivery')
      return { state: 'uncertain', evidence: `the runtime failed: ${reasonOf(error)}` }
    } finally {
      withdraw = undefined
      giving = undefined
      givenAt = clock.now()
    }
  }

  async function giveNotice(running: Session, from: string) {
    const now = clock.now()
    if (now - noticedAt < NOTICE_EVERY_MS) return
    noticedAt = now
    await running.notice(`[ORCHUB NOTICE] A message of high priority from ${from} waits for you.`)
  }

  function halt(by: string) {
    withdraw?.('everything was stopped')
    return interrupts.halt(by, giving)
  }

  /** Coalesced: a burst of changes is one line on the screen. */
  function label() {
    if (session?.show === undefined || cancelLabel !== undefined) return
    cancelLabel = clock.after(LABEL_MS, () => {
      cancelLabel = undefined
      void showLabel().catch(() => {})
    })
  }

  async function showLabel() {
    if (session?.show === undefined || dismissed) return
    const unread = await countQueued(store, name, COUNTED)
    const state = options.isHalted() ? 'stopped' : options.isPaused() ? 'paused' : session.state
    const mail = unread === 0 ? '' : ` · ${unread === COUNTED ? `${COUNTED}+` : unread} waiting`
    const doubt = doubtful.size === 0 ? '' : ` · ${doubtful.size} uncertain`
    session.show(`${name} · ${state}${mail}${doubt}`)
  }

  return {
    port,
    session: () => session,
    turnBegan: () => turnBegan,
    async attend(started) {
      for (const key of await doubtfulDeliveries(store, name)) doubtful.set(key, { isNoted: false })
      if (started.isResumed === true)
        for (const key of await unansweredDeliveries(store, name))
          doubtful.set(key, { isNoted: true, wasTaken: true })
      session = started
      // Found idle: nothing is known of its last turn, and what it forgot to say it is reminded of.
      if (started.state === 'idle') void tellEnd()
      label()
      look()
    },
    look() {
      label()
      if (isHeld()) withdraw?.(options.isHalted() ? 'everything was stopped' : 'it was paused')
      look()
    },
    async take(tx) {
      if (delivering || taken.length > 0 || doubtful.size > 0 || !isListening()) return false
      const { messages, remaining } = await handOut(tx)
      if (messages.length === 0) return false
      tx.afterCommit(() => {
        taken.push(...messages)
        look()
        // It only looks again after this turn.
        if (remaining > 0) wanted = true
      })
      return true
    },
    async mailCame(priority, from) {
      label()
      if (session === undefined || dismissed || isHeld()) return
      if (session.state === 'busy') {
        if (priority === 'urgent') await interrupts.forUrgent(session, from)
        else if (priority === 'high') await giveNotice(session, from)
      }
      look()
    },
    isGiven: () => withdraw !== undefined,
    halt,
    dismiss() {
      dismissed = true
      withdraw?.('its session is over')
      cancelLater?.()
      cancelLabel?.()
      // Answers that did not arrive stay unconfirmed: what they answer is read again in the next session.
    },
  }
}

const WHERE = { submitted: 'submitted', absent: 'queued', unknown: 'uncertain' } as const

function keysOf(ids: readonly string[]): number[] {
  return ids.map((id) => parseId('msg', id)).filter((key) => key !== undefined)
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
