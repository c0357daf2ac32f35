import type { Meter } from '../agents/meter.ts'
import { createSpoken, type Said, type Spoken } from '../agents/recent-output.ts'
import { keepInSession } from '../agents/store/sessions.ts'
import { ORCHESTRATOR, type SessionState } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { Priority } from '../messages/message.ts'
import { countQueued } from '../messages/store/deliveries.ts'
import type { PermissionDialogs } from '../people/permission-dialogs.ts'
import type { Session, SessionPort, Utterance } from '../runtimes/runtime.ts'
import type { Store, Tx } from '../store/store.ts'
import { createInterrupts, type Interrupts, type Outcome } from './interrupts.ts'
import type { Answer, Listener } from './listener.ts'
import { createWaitingAnswers, type WaitingAnswers } from './pending-responses.ts'
import { createHandover, type Handover } from './turns.ts'
import { createUrgency, type Urgency } from './urgency.ts'

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
  /** There is a turn to end: it works, or stands before a dialog in the middle of its work. */
  isInTurn(): boolean
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
  mailboxes: Mailboxes
  permissions: PermissionDialogs
  meter: Meter
  clock: Clock
  log: Log
  /** Names the runtime in the evidence, and beside what is kept. */
  runtime: string
  deliver: 'together' | 'single'
  isPaused(): boolean
  isHalted(): boolean
  /** It was found running, and in a turn when an earlier service saw it last. */
  wasInTurn(): boolean
  listen(answer: (answer: Answer) => Promise<void>): Listener
  changed(state: SessionState, evidence: string, isInTurn: boolean): Promise<void>
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

/** One agent that is attended. What is done with it stands below, once for however many there are. */
interface Attended {
  readonly options: AttendantOptions
  readonly handover: Handover
  /** Made when it first speaks: most of a team is silent most of the time. */
  hearing: Hearing | undefined
  session: Session | undefined
  isDismissed: boolean
  turnBegan: number | undefined
  lastState: SessionState | undefined
  lastWords: string
  utterances: number
  /** In a row, since it was last given something else than answers. */
  mistakes: number
  turns: number
  /** It is in a turn, whether at work or before a dialog. Not so with a dialog that came before any turn. */
  isInTurn: boolean
  /** Whether what it does has been known at all since we attend it. */
  isSeen: boolean
  isTurnOrdinary: boolean
  /** What was just being given when the turn began: the turn itself. */
  givenBy: Promise<unknown> | undefined
  noticedAt: number | undefined
  cancelLabel: (() => void) | undefined
  keeping: { value: unknown; kept: Promise<void> } | undefined
  interrupts: Interrupts | undefined
  /** Made with the first turn, or the first urgent message. */
  urgency: Urgency | undefined
}

export function createAttendant(options: AttendantOptions): Attendant {
  const isHeld = () => options.isPaused() || options.isHalted()
  const handover = createHandover({
    ...options,
    answers: () => agent.hearing?.answers,
    isHeld,
    mailGiven() {
      agent.mistakes = 0
    },
    cameBack() {
      urging(agent).came()
      lookForUrgent(agent)
    },
    moved: () => label(agent),
  })
  const agent: Attended = {
    options,
    handover,
    hearing: undefined,
    session: undefined,
    isDismissed: false,
    turnBegan: undefined,
    lastState: undefined,
    lastWords: '',
    utterances: 0,
    mistakes: 0,
    turns: 0,
    isInTurn: false,
    isSeen: false,
    isTurnOrdinary: false,
    givenBy: undefined,
    noticedAt: undefined,
    cancelLabel: undefined,
    keeping: undefined,
    interrupts: undefined,
    urgency: undefined,
  }

  return {
    port: {
      said: (utterance) => hear(agent, utterance),
      changed: (state, evidence) => changed(agent, state, evidence),
      waits: handover.waits,
      isHeld,
      arrived: handover.arrived,
      asked: (question, gone) => options.permissions.ask(options.name, question, gone),
      used(usage) {
        const { name, meter, log } = options
        meter
          .used(name, usage)
          .catch((error: unknown) => log.error({ agent: name, err: error }, 'usage could not be stored'))
      },
      saveState: (value) => keep(agent, value),
    },
    session: () => agent.session,
    turnBegan: () => agent.turnBegan,
    waitsFor: handover.waitsFor,
    async attend(started) {
      agent.session = started
      // Found idle: nothing is known of its last turn, and what it forgot to say it is reminded of.
      if (started.state === 'idle') void tellEnd(agent)
      label(agent)
      await handover.begin(started)
      lookForUrgent(agent)
    },
    look() {
      label(agent)
      if (isHeld()) handover.withdraw(options.isHalted() ? 'everything was stopped' : 'it was paused')
      else lookForUrgent(agent)
      handover.refresh()
    },
    take: handover.take,
    async mailCame(priority, from) {
      label(agent)
      if (priority === 'urgent') urging(agent).came(from)
      const { session, isDismissed } = agent
      if (session === undefined || isDismissed || isHeld()) return
      try {
        if (priority === 'urgent') await urging(agent).look()
        else if (priority === 'high' && session.state === 'busy') await giveNotice(agent, session, from)
      } finally {
        handover.look()
      }
    },
    isGiven: () => handover.giving() !== undefined,
    isInTurn: () => inTurn(agent) !== undefined,
    halt: (by) => halt(agent, by),
    async interrupt(by) {
      const session = inTurn(agent)
      return session === undefined ? undefined : await interrupting(agent).forPerson(session, by)
    },
    spoken: () => agent.hearing?.spoken.all() ?? [],
    dismiss() {
      agent.isDismissed = true
      handover.dismiss()
      agent.cancelLabel?.()
    },
  }
}

/** The session, as long as there is a turn to end. */
function inTurn({ session, isDismissed, isInTurn }: Attended): Session | undefined {
  if (session === undefined || isDismissed) return undefined
  const { state } = session
  return state === 'busy' || (state === 'waiting_input' && isInTurn) ? session : undefined
}

// ── what it tells ────────────────────────────────────────────────────────────────────────────────

function hear(agent: Attended, utterance: Utterance): Promise<void> {
  agent.utterances += 1
  agent.hearing ??= beginHearing(agent)
  agent.hearing.spoken.add(utterance, agent.options.clock.now())
  const earlier = utterance.key === undefined ? agent.lastWords : ''
  agent.lastWords = `${earlier}${utterance.text}`.slice(-LAST_WORDS)
  return agent.hearing.listener.hear(utterance)
}

function beginHearing(agent: Attended): Hearing {
  const answers = createWaitingAnswers()
  const listener = agent.options.listen((answer) => {
    agent.mistakes = answer.isMistake ? agent.mistakes + 1 : 0
    // One that makes mistakes for ever would be given turns for ever (S2.1).
    const wakes = answer.wakes && agent.mistakes <= MISTAKES
    const arrived = answers.add({ ...answer, wakes })
    if (wakes) agent.handover.look()
    return arrived
  })
  return { spoken: createSpoken(), listener, answers }
}

function changed(agent: Attended, state: SessionState, evidence: string) {
  if (agent.isDismissed) return
  const { options, handover, lastState } = agent
  if (state === 'busy') beginTurn(agent)
  else void endTurn(agent, state === 'idle' && lastState !== 'idle')
  agent.isInTurn = state === 'busy' || (state === 'waiting_input' && isDialogOfTurn(agent))
  if (state !== 'initializing' && state !== 'unknown') agent.isSeen = true
  if (state !== lastState) lookForUrgent(agent)
  agent.lastState = state
  options.permissions.watch(options.name, state === 'waiting_input')
  void options.changed(state, evidence, agent.isInTurn).then(handover.refresh)
  label(agent)
}

/** Found before a dialog: then what is on record of it counts. */
function isDialogOfTurn({ isInTurn, isSeen, options }: Attended): boolean {
  return isInTurn || (!isSeen && options.wasInTurn())
}

function keep(agent: Attended, value: unknown): Promise<void> {
  const { options, keeping, isDismissed } = agent
  if (isDismissed) return Promise.resolve()
  // While one is being written, only the newest of those that wait is.
  if (keeping !== undefined) {
    keeping.value = value
    return keeping.kept
  }
  const next = { value, kept: Promise.resolve() }
  agent.keeping = next
  next.kept = Promise.resolve().then(() => {
    agent.keeping = undefined
    const kept = JSON.stringify({ runtime: options.runtime, value: next.value })
    return options.store.write((tx) => keepInSession(tx, options.name, kept))
  })
  return next.kept
}

// ── its turns ────────────────────────────────────────────────────────────────────────────────────

function beginTurn(agent: Attended) {
  const { options, handover, lastState } = agent
  const now = options.clock.now()
  // Given just before the halt. One that a person begins at the terminal is left alone.
  if (options.isHalted() && now - handover.givenAt() < BEGINS_MS) void halt(agent, ORCHESTRATOR)
  // After a dialog it is still the same.
  if (lastState === 'busy' || lastState === 'waiting_input') return
  // Found in the middle of one: when it began is not known.
  if (lastState !== undefined && lastState !== 'initializing') agent.turnBegan = now
  agent.givenBy = handover.giving()
  const isGiven = agent.givenBy !== undefined || now - handover.givenAt() < BEGINS_MS
  agent.isTurnOrdinary = isGiven && !handover.isGivenUrgent()
  agent.turns += 1
  agent.lastWords = ''
  options.turnBegan()
}

async function endTurn(agent: Attended, isOver: boolean) {
  const { hearing } = agent
  hearing?.spoken.endTurn()
  await hearing?.listener.endTurn()
  if (isOver) await tellEnd(agent)
}

/** Only when all was heard: a report that comes a moment late needs no reminder. */
async function tellEnd(agent: Attended) {
  const { handover, turns: turn } = agent
  if (agent.session?.heardLate === true) await hearOut(agent)
  // A quick one is over before it is on record, by which its tasks have begun.
  if (handover.giving() === undefined || handover.giving() === agent.givenBy) await handover.noted()
  // An answer that it waits for, or mail, has begun another turn, or is about to: that one's end counts.
  const goesOn =
    agent.turns !== turn || agent.hearing?.answers.areAwaited() || handover.giving() !== undefined
  if (agent.isDismissed || goesOn || agent.session?.state !== 'idle') return
  agent.options.turnEnded(agent.lastWords)
}

async function hearOut(agent: Attended) {
  const { clock } = agent.options
  for (let heard = -1; heard !== agent.utterances && !agent.isDismissed; ) {
    heard = agent.utterances
    await new Promise<void>((resolve) => clock.after(LATE_MS, resolve))
    await agent.hearing?.listener.endTurn()
  }
}

// ── what cannot wait ─────────────────────────────────────────────────────────────────────────────

async function giveNotice(agent: Attended, running: Session, from: string) {
  const now = agent.options.clock.now()
  if (agent.noticedAt !== undefined && now - agent.noticedAt < NOTICE_EVERY_MS) return
  agent.noticedAt = now
  await running.notice(`[ORCHUB NOTICE] A message of high priority from ${from} waits for you.`)
}

function urging(agent: Attended): Urgency {
  const { name, store, isPaused, isHalted } = agent.options
  const isFree = () => agent.isInTurn && !agent.isDismissed && !isPaused() && !isHalted()
  agent.urgency ??= createUrgency({
    name,
    store,
    interrupts: () => interrupting(agent),
    inTurn: (turn) => (turn === agent.turns && isFree() ? agent.session : undefined),
    turn: () => agent.turns,
    isTurnOrdinary: () => agent.isTurnOrdinary,
    giving: agent.handover.giving,
  })
  return agent.urgency
}

function lookForUrgent(agent: Attended) {
  const { name, log } = agent.options
  if (agent.session === undefined || !agent.isInTurn) return
  urging(agent)
    .look()
    .catch((error: unknown) => log.error({ agent: name, err: error }, 'an urgent message may wait for long'))
}

function halt(agent: Attended, by: string) {
  const { handover } = agent
  handover.withdraw('everything was stopped')
  return interrupting(agent).halt(by, handover.giving())
}

function interrupting(agent: Attended): Interrupts {
  const { name, store, clock, log, isHalted } = agent.options
  const toHalt = () => (isHalted() ? inTurn(agent) : undefined)
  agent.interrupts ??= createInterrupts({ name, store, clock, log, toHalt })
  return agent.interrupts
}

// ── what people see of it ────────────────────────────────────────────────────────────────────────

/** Coalesced: a burst of changes is one line on the screen. */
function label(agent: Attended) {
  if (agent.session?.show === undefined || agent.cancelLabel !== undefined) return
  agent.cancelLabel = agent.options.clock.after(LABEL_MS, () => {
    agent.cancelLabel = undefined
    void showLabel(agent).catch(() => {})
  })
}

async function showLabel({ options, handover, session, isDismissed }: Attended) {
  if (session?.show === undefined || isDismissed) return
  const { name, store, isHalted, isPaused } = options
  const unread = await countQueued(store, name, COUNTED)
  const state = isHalted() ? 'stopped' : isPaused() ? 'paused' : session.state
  const why = state === 'idle' && handover.waitsFor() !== undefined ? `: ${handover.waitsFor()}` : ''
  const mail = unread === 0 ? '' : ` · ${unread === COUNTED ? `${COUNTED}+` : unread} waiting${why}`
  const doubt = handover.doubts() === 0 ? '' : ` · ${handover.doubts()} uncertain`
  session.show(`${name} · ${state}${mail}${doubt}`)
}
