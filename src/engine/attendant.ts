import { ORCHESTRATOR, type SessionState } from '../model/agent.ts'
import type { Priority } from '../model/message.ts'
import type { Session, SessionPort } from '../runtimes/runtime.ts'
import { countQueued } from '../store/deliveries.ts'
import { keepInSession } from '../store/sessions.ts'
import type { Store, Tx } from '../store/store.ts'
import { createHandover } from './handover.ts'
import { createInterrupts, type Interrupts, type Outcome } from './interrupts.ts'
import type { Answer, Listener } from './listener.ts'
import type { Mailroom } from './mailroom.ts'
import type { Meter } from './meter.ts'
import type { PermissionDesk } from './permissions.ts'
import { createSpoken, type Said, type Spoken } from './spoken.ts'
import type { Clock, Log } from './surroundings.ts'
import { createUrgency, type Urgency } from './urgency.ts'
import { createWaitingAnswers, type WaitingAnswers } from './waiting-answers.ts'

/** Attends one running agent: hears what it says, and puts before it what waits for it, as evidence allows. */
export interface Attendant {
  /** What the runtime tells of the session. */
  readonly port: SessionPort
  session(): Session | undefined
  /** When the agent's current turn began, or its last one. */
  turnBegan(): number | undefined
  /** What keeps messages from it though it is idle. */
  waitsFor(): string | undefined
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
  /** A person ends its turn. Undefined when there was none to end. */
  interrupt(by: string): Promise<Outcome | undefined>
  /** The last that it said, oldest first. */
  spoken(): readonly Said[]
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

/** What there is for what an agent says. */
interface Hearing {
  readonly spoken: Spoken
  readonly listener: Listener
  readonly answers: WaitingAnswers
}

/** A flood of important messages is one notice (C2). */
const NOTICE_EVERY_MS = 2000
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

export function createAttendant(options: AttendantOptions): Attendant {
  const { name, store, clock, log } = options
  /** Made when it first speaks: most of a team is silent most of the time. */
  let hearing: Hearing | undefined
  const handover = createHandover({
    ...options,
    answers: () => hearing?.answers,
    isHeld,
    mailGiven() {
      mistakes = 0
    },
    cameBack() {
      urging().came()
      lookForUrgent()
    },
    moved: label,
  })
  let session: Session | undefined
  let dismissed = false
  let turnBegan: number | undefined
  let lastState: SessionState | undefined
  let lastWords = ''
  let utterances = 0
  /** In a row, since it was last given something else than answers. */
  let mistakes = 0
  let turns = 0
  let noticedAt = Number.NEGATIVE_INFINITY
  let cancelLabel: (() => void) | undefined
  let keeping: { value: unknown; kept: Promise<void> } | undefined

  let interrupts: Interrupts | undefined
  /** It is in a turn, whether at work or before a dialog. Not so with a dialog that came before any turn. */
  let isInTurn = false
  let isTurnOrdinary = false
  /** Made with the first turn, or the first urgent message. */
  let urgency: Urgency | undefined

  const port: SessionPort = {
    said(utterance) {
      utterances += 1
      hearing ??= beginHearing()
      hearing.spoken.add(utterance, clock.now())
      const earlier = utterance.key === undefined ? lastWords : ''
      lastWords = `${earlier}${utterance.text}`.slice(-LAST_WORDS)
      return hearing.listener.hear(utterance)
    },
    changed(state, evidence) {
      if (dismissed) return
      if (state === 'busy') beginTurn()
      else void endTurn(state === 'idle' && lastState !== 'idle')
      isInTurn = state === 'busy' || (state === 'waiting_input' && isInTurn)
      if (state !== lastState) lookForUrgent()
      lastState = state
      options.permissions.watch(name, state === 'waiting_input')
      void options.changed(state, evidence).then(handover.refresh)
      label()
    },
    waits: handover.waits,
    isHeld,
    arrived: handover.arrived,
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

  function beginHearing(): Hearing {
    const answers = createWaitingAnswers()
    const listener = options.listen((answer) => {
      mistakes = answer.isMistake ? mistakes + 1 : 0
      // One that makes mistakes for ever would be given turns for ever (S2.1).
      const wakes = answer.wakes && mistakes <= MISTAKES
      const arrived = answers.add({ ...answer, wakes })
      if (wakes) handover.look()
      return arrived
    })
    return { spoken: createSpoken(), listener, answers }
  }

  function beginTurn() {
    const now = clock.now()
    // Given just before the halt. One that a person begins at the terminal is left alone.
    if (options.isHalted() && now - handover.givenAt() < BEGINS_MS) void halt(ORCHESTRATOR)
    // After a dialog it is still the same.
    if (lastState === 'busy' || lastState === 'waiting_input') return
    // Found in the middle of one: when it began is not known.
    if (lastState !== undefined && lastState !== 'initializing') turnBegan = now
    const isGiven = handover.giving() !== undefined || now - handover.givenAt() < BEGINS_MS
    isTurnOrdinary = isGiven && !handover.isGivenUrgent()
    turns += 1
    lastWords = ''
    options.turnBegan()
  }

  async function endTurn(isOver: boolean) {
    hearing?.spoken.endTurn()
    await hearing?.listener.endTurn()
    if (isOver) await tellEnd()
  }

  /** Only when all was heard: a report that comes a moment late needs no reminder. */
  async function tellEnd() {
    const turn = turns
    if (session?.heardLate === true) await hearOut()
    // An answer that it waits for, or mail, has begun another turn, or is about to: that one's end counts.
    const goesOn = turns !== turn || hearing?.answers.areAwaited() || handover.giving() !== undefined
    if (dismissed || goesOn || session?.state !== 'idle') return
    options.turnEnded(lastWords)
  }

  async function hearOut() {
    for (let heard = -1; heard !== utterances && !dismissed; ) {
      heard = utterances
      await new Promise<void>((resolve) => clock.after(LATE_MS, resolve))
      await hearing?.listener.endTurn()
    }
  }

  function isHeld(): boolean {
    return options.isPaused() || options.isHalted()
  }

  async function giveNotice(running: Session, from: string) {
    const now = clock.now()
    if (now - noticedAt < NOTICE_EVERY_MS) return
    noticedAt = now
    await running.notice(`[ORCHUB NOTICE] A message of high priority from ${from} waits for you.`)
  }

  function urging(): Urgency {
    urgency ??= createUrgency({
      name,
      store,
      interrupts: interrupting,
      inTurn: (turn) => (turn === turns && isInTurn && !dismissed && !isHeld() ? session : undefined),
      turn: () => turns,
      isTurnOrdinary: () => isTurnOrdinary,
      giving: handover.giving,
    })
    return urgency
  }

  function lookForUrgent() {
    if (session === undefined || !isInTurn) return
    urging()
      .look()
      .catch((error: unknown) =>
        log.error({ agent: name, err: error }, 'an urgent message may wait for long'),
      )
  }

  function halt(by: string) {
    handover.withdraw('everything was stopped')
    return interrupting().halt(by, handover.giving())
  }

  function interrupting(): Interrupts {
    const toHalt = () => (dismissed || !options.isHalted() ? undefined : session)
    interrupts ??= createInterrupts({ ...{ name, store, clock, log }, toHalt })
    return interrupts
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
    const why = state === 'idle' && handover.waitsFor() !== undefined ? `: ${handover.waitsFor()}` : ''
    const mail = unread === 0 ? '' : ` · ${unread === COUNTED ? `${COUNTED}+` : unread} waiting${why}`
    const doubt = handover.doubts() === 0 ? '' : ` · ${handover.doubts()} uncertain`
    session.show(`${name} · ${state}${mail}${doubt}`)
  }

  return {
    port,
    session: () => session,
    turnBegan: () => turnBegan,
    waitsFor: handover.waitsFor,
    async attend(started) {
      session = started
      // Found idle: nothing is known of its last turn, and what it forgot to say it is reminded of.
      if (started.state === 'idle') void tellEnd()
      label()
      await handover.begin(started)
      lookForUrgent()
    },
    look() {
      label()
      if (isHeld()) handover.withdraw(options.isHalted() ? 'everything was stopped' : 'it was paused')
      else lookForUrgent()
      handover.refresh()
    },
    take: handover.take,
    async mailCame(priority, from) {
      label()
      if (priority === 'urgent') urging().came(from)
      if (session === undefined || dismissed || isHeld()) return
      try {
        if (priority === 'urgent') await urging().look()
        else if (priority === 'high' && session.state === 'busy') await giveNotice(session, from)
      } finally {
        handover.look()
      }
    },
    isGiven: () => handover.giving() !== undefined,
    halt,
    async interrupt(by) {
      return session?.state === 'busy' && !dismissed ? await interrupting().forPerson(session, by) : undefined
    },
    spoken: () => hearing?.spoken.all() ?? [],
    dismiss() {
      dismissed = true
      handover.dismiss()
      cancelLabel?.()
    },
  }
}
