/**
 * Looks after one running agent: carries out the commands it sends, hands over what waits for it, and knows when its
 * turns begin and end.
 *
 * States of the agent, as its runtime reports them (`SessionState`) and as this file counts turns:
 *
 *   unseen          The session is starting; nothing is known. A dialog found in this state belongs to a turn if the
 *                   last service said so (`wasInTurn`).
 *   idle            Ready for a turn. Turns are handed over in this state only (turns.ts).
 *   in turn         `busy`, or `waiting_input` during a turn. Begins with the first `busy` after another state; ends
 *                   with `idle`, once everything the agent said was carried out and no response starts the next turn.
 *   at a dialog     `waiting_input` outside of a turn: the program asks something before it has begun.
 *   closed          The session is over.
 *
 * A person, a halt and an urgent message interrupt a turn (interrupts.ts). A high-priority message only gives a notice.
 * turns.ts describes the states of the hand-over, messages/delivery-states.ts those of each message.
 */
import { ORCHESTRATOR, type SessionState } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { countQueued, unansweredDeliveries } from '../messages/delivery-states.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { Priority } from '../messages/message.ts'
import type { PermissionDialogs } from '../people/permission-dialogs.ts'
import type { AgentText, Session, SessionPort, Usage } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import {
  createInterrupts,
  createUrgentInterrupts,
  type InterruptResult,
  type Interrupts,
  type UrgentInterrupts,
} from './interrupts.ts'
import {
  type CommandResponse,
  createPendingResponses,
  createRecentOutput,
  type Listener,
  type PendingResponses,
  type RecentOutput,
  type RecentText,
} from './listener.ts'
import { createTurns, type Turns } from './turns.ts'

export interface AgentDelivery {
  /** Receives the reports of the runtime. */
  readonly port: SessionPort
  session(): Session | undefined
  /** When the agent's current turn began, or its last one. */
  turnBegan(): number | undefined
  /** Why an idle agent gets no messages. */
  obstacle(): string | undefined
  /** The session is up: checks what an earlier one left uncertain, then begins to hand over. */
  begin(session: Session): Promise<void>
  /** Something may wait for the agent, or may be allowed now. */
  look(): void
  /** Whether a turn is just being handed over. */
  isHandingOver(): boolean
  /** Whether there is a turn to end. */
  isInTurn(): boolean
  /** Ends the turn for a halt, even one that is just being handed over. Returns undefined if there was none. */
  halt(by: string): Promise<InterruptResult | undefined>
  /** Ends the turn for a person. Returns undefined if there was none. */
  interrupt(by: string): Promise<InterruptResult | undefined>
  /** The agent's recent output, oldest first. */
  recentOutput(): readonly RecentText[]
  /** The agent is being stopped: no new message reaches it. */
  detach(): void
  close(): void
}

interface AgentDeliveryOptions {
  name: string
  store: Store
  mailboxes: Mailboxes
  permissions: PermissionDialogs
  clock: Clock
  log: Log
  /** Names the runtime in the evidence. */
  runtime: string
  deliver: 'together' | 'single'
  isPaused(): boolean
  isHalted(): boolean
  /** Whether the agent was found running, and in a turn when an earlier service saw it last. */
  wasInTurn(): boolean
  listen(respond: (response: CommandResponse) => Promise<void>): Listener
  onUsage(usage: Usage): Promise<void>
  /** Stores the state that the session needs to be found again. */
  save(state: unknown): Promise<void>
  onChanged(state: SessionState, evidence: string, isInTurn: boolean): Promise<void>
  onTurnBegan(): void
  /** Everything the agent said in the turn was carried out, and no response begins another turn. */
  onTurnEnded(lastWords: string): void
}

/** An agent gets at most one notice of high-priority messages in this time (C2). */
const NOTICE_EVERY_MS = 2000
/** Delays the label around the terminal, so a burst of changes updates it once. */
const LABEL_DELAY_MS = 200
/** Wake an agent for at most this many failed commands in a row, or one that keeps failing gets turns forever (S2.1). */
const MISTAKES_ANSWERED = 3
/** A transcript counts as complete if nothing is written to it for this long after a turn. */
const FILE_QUIET_MS = 1000
/** A turn that begins this soon after a hand-over is the one that was handed over. */
const TURN_BEGINS_WITHIN_MS = 5000
const LAST_WORDS = 2000
const MAIL_COUNTED = 100

/** State of one agent. The functions below share it, so that an idle agent costs no closures. */
interface Agent {
  readonly options: AgentDeliveryOptions
  readonly turns: Turns
  /** Created when the agent first speaks: most of a team is silent most of the time. */
  hearing?: { output: RecentOutput; listener: Listener; responses: PendingResponses } | undefined
  session?: Session | undefined
  isClosed: boolean
  turnBegan?: number | undefined
  lastState?: SessionState | undefined
  lastWords: string
  utterances: number
  /** Failed commands in a row, since the agent last got a message. */
  mistakes: number
  turnCount: number
  isInTurn: boolean
  /** False in the state `unseen`. */
  isSeen: boolean
  /** Whether an ordinary message began the current turn. */
  isTurnOrdinary: boolean
  /** The hand-over that began the current turn, if it was still going on then. */
  begunBy?: Promise<unknown> | undefined
  noticedAt?: number | undefined
  cancelLabel?: (() => void) | undefined
  saving?: { value: unknown; saved: Promise<void> } | undefined
  interrupts?: Interrupts | undefined
  urgent?: UrgentInterrupts | undefined
}

export function createAgentDelivery(options: AgentDeliveryOptions): AgentDelivery {
  const isHeld = () => options.isPaused() || options.isHalted()
  const turns = createTurns({
    ...options,
    responses: () => agent.hearing?.responses,
    isHeld,
    onMailHandedOver() {
      agent.mistakes = 0
    },
    onRequeued() {
      urgentOf(agent).mayWait()
      lookForUrgent(agent)
    },
    onChanged: () => updateLabel(agent),
  })
  const agent: Agent = {
    options,
    turns,
    isClosed: false,
    lastWords: '',
    utterances: 0,
    mistakes: 0,
    turnCount: 0,
    isInTurn: false,
    isSeen: false,
    isTurnOrdinary: false,
  }

  const detach = options.mailboxes.attach(options.name, {
    readyFor: turns.readyFor,
    take: turns.take,
    onMail(priority, from) {
      onMail(agent, priority, from).catch((error: unknown) =>
        options.log.error({ agent: options.name, err: error }, 'could not announce a new message'),
      )
    },
  })

  return {
    port: {
      onText: (utterance) => hear(agent, utterance),
      onStateChange: (state, evidence) => onChanged(agent, state, evidence),
      onObstacle: turns.onObstacle,
      isPaused: isHeld,
      onEvidence: turns.onEvidence,
      askPermission: (question, gone) => options.permissions.ask(options.name, question, gone),
      onUsage(usage) {
        const { name, log } = options
        options
          .onUsage(usage)
          .catch((error: unknown) => log.error({ agent: name, err: error }, 'could not store the usage'))
      },
      saveState: (value) => save(agent, value),
    },
    session: () => agent.session,
    turnBegan: () => agent.turnBegan,
    obstacle: turns.obstacle,
    async begin(started) {
      agent.session = started
      // The agent's last turn is unknown: if it forgot to report, it needs a reminder.
      if (started.state === 'idle') void reportTurnEnd(agent)
      updateLabel(agent)
      await turns.begin(started)
      lookForUrgent(agent)
    },
    look() {
      updateLabel(agent)
      if (isHeld()) turns.withdraw(options.isHalted() ? 'everything was stopped' : 'it was paused')
      else lookForUrgent(agent)
      turns.refresh()
    },
    isHandingOver: () => turns.handingOver() !== undefined,
    isInTurn: () => sessionInTurn(agent) !== undefined,
    halt: (by) => halt(agent, by),
    async interrupt(by) {
      const session = sessionInTurn(agent)
      return session === undefined ? undefined : await interruptsOf(agent).forPerson(session, by)
    },
    recentOutput: () => agent.hearing?.output.all() ?? [],
    detach,
    close() {
      agent.isClosed = true
      detach()
      turns.close()
      agent.cancelLabel?.()
    },
  }
}

function sessionInTurn({ session, isClosed, isInTurn }: Agent): Session | undefined {
  if (session === undefined || isClosed) return undefined
  const { state } = session
  return state === 'busy' || (state === 'waiting_input' && isInTurn) ? session : undefined
}

// ── What the runtime reports ─────────────────────────────────────────────────────────────────────

function hear(agent: Agent, utterance: AgentText): Promise<void> {
  agent.utterances += 1
  agent.hearing ??= startHearing(agent)
  agent.hearing.output.add(utterance, agent.options.clock.now())
  const earlier = utterance.key === undefined ? agent.lastWords : ''
  agent.lastWords = `${earlier}${utterance.text}`.slice(-LAST_WORDS)
  return agent.hearing.listener.hear(utterance)
}

function startHearing(agent: Agent): NonNullable<Agent['hearing']> {
  const responses = createPendingResponses()
  const listener = agent.options.listen((response) => {
    agent.mistakes = response.isMistake ? agent.mistakes + 1 : 0
    const wakes = response.wakes && agent.mistakes <= MISTAKES_ANSWERED
    const arrived = responses.add({ ...response, wakes })
    if (wakes) agent.turns.look()
    return arrived
  })
  return { output: createRecentOutput(), listener, responses }
}

function onChanged(agent: Agent, state: SessionState, evidence: string) {
  if (agent.isClosed) return
  const { options, turns, lastState } = agent
  if (state === 'busy') beginTurn(agent)
  else void endTurn(agent, state === 'idle' && lastState !== 'idle')
  const isDialogOfTurn = agent.isInTurn || (!agent.isSeen && options.wasInTurn())
  agent.isInTurn = state === 'busy' || (state === 'waiting_input' && isDialogOfTurn)
  if (state !== 'initializing' && state !== 'unknown') agent.isSeen = true
  if (state !== lastState) lookForUrgent(agent)
  agent.lastState = state
  options.permissions.watch(options.name, state === 'waiting_input')
  void options.onChanged(state, evidence, agent.isInTurn).then(turns.refresh)
  updateLabel(agent)
}

/** While one write is under way, only the newest of the values that follow is written. */
function save(agent: Agent, value: unknown): Promise<void> {
  const { options, saving, isClosed } = agent
  if (isClosed) return Promise.resolve()
  if (saving !== undefined) {
    saving.value = value
    return saving.saved
  }
  const next = { value, saved: Promise.resolve() }
  agent.saving = next
  next.saved = Promise.resolve().then(() => {
    agent.saving = undefined
    return options.save(next.value)
  })
  return next.saved
}

// ── The agent's turns ────────────────────────────────────────────────────────────────────────────

function beginTurn(agent: Agent) {
  const { options, turns, lastState } = agent
  const now = options.clock.now()
  const isJustHandedOver = now - turns.handedOverAt() < TURN_BEGINS_WITHIN_MS
  // Handed over just before the halt. A turn that a person begins at the terminal is left alone.
  if (options.isHalted() && isJustHandedOver) void halt(agent, ORCHESTRATOR)
  // After a dialog, the same turn goes on.
  if (lastState === 'busy' || lastState === 'waiting_input') return
  // Found in the middle of a turn, its beginning is unknown.
  if (lastState !== undefined && lastState !== 'initializing') agent.turnBegan = now
  agent.begunBy = turns.handingOver()
  agent.isTurnOrdinary = (agent.begunBy !== undefined || isJustHandedOver) && !turns.isUrgent()
  agent.turnCount += 1
  agent.lastWords = ''
  options.onTurnBegan()
}

async function endTurn(agent: Agent, isIdle: boolean) {
  const { hearing } = agent
  hearing?.output.endTurn()
  await hearing?.listener.endTurn()
  if (isIdle) await reportTurnEnd(agent)
}

/** Reports the end only when everything was heard: a report that comes a moment late needs no reminder. */
async function reportTurnEnd(agent: Agent) {
  const { turns, turnCount } = agent
  if (agent.session?.hasDelayedOutput === true) await waitUntilQuiet(agent)
  // A quick turn ends before its hand-over is stored, and its tasks begin with that.
  const handingOver = turns.handingOver()
  if (handingOver === undefined || handingOver === agent.begunBy) await turns.recorded()
  const isFollowed =
    agent.turnCount !== turnCount ||
    agent.hearing?.responses.areAwaited() ||
    turns.handingOver() !== undefined
  if (agent.isClosed || isFollowed || agent.session?.state !== 'idle') return
  agent.options.onTurnEnded(agent.lastWords)
}

async function waitUntilQuiet(agent: Agent) {
  const { clock } = agent.options
  for (let heard = -1; heard !== agent.utterances && !agent.isClosed; ) {
    heard = agent.utterances
    await new Promise<void>((resolve) => clock.after(FILE_QUIET_MS, resolve))
    await agent.hearing?.listener.endTurn()
  }
}

// ── New messages, interrupts and notices ─────────────────────────────────────────────────────────

/** A normal message waits until the agent is idle, a high one is announced at once, an urgent one interrupts (C2). */
async function onMail(agent: Agent, priority: Priority, from: string) {
  updateLabel(agent)
  if (priority === 'urgent') urgentOf(agent).mayWait(from)
  const { session, turns, options, isClosed } = agent
  if (session === undefined || isClosed || options.isPaused() || options.isHalted()) return
  try {
    if (priority === 'urgent') await urgentOf(agent).look()
    else if (priority === 'high' && session.state === 'busy') await notify(agent, session, from)
  } finally {
    turns.look()
  }
}

async function notify(agent: Agent, session: Session, from: string) {
  const now = agent.options.clock.now()
  if (agent.noticedAt !== undefined && now - agent.noticedAt < NOTICE_EVERY_MS) return
  agent.noticedAt = now
  await session.notice(`[ORCHUB NOTICE] A high-priority message from ${from} is waiting for you.`)
}

function urgentOf(agent: Agent): UrgentInterrupts {
  const { name, store, isPaused, isHalted } = agent.options
  const isFree = () => agent.isInTurn && !agent.isClosed && !isPaused() && !isHalted()
  agent.urgent ??= createUrgentInterrupts({
    name,
    store,
    interrupts: () => interruptsOf(agent),
    inTurn: (turn) => (turn === agent.turnCount && isFree() ? agent.session : undefined),
    turn: () => agent.turnCount,
    isTurnOrdinary: () => agent.isTurnOrdinary,
    handingOver: agent.turns.handingOver,
  })
  return agent.urgent
}

function lookForUrgent(agent: Agent) {
  const { name, log } = agent.options
  if (agent.session === undefined || !agent.isInTurn) return
  urgentOf(agent)
    .look()
    .catch((error: unknown) => log.error({ agent: name, err: error }, 'could not look for urgent messages'))
}

function halt(agent: Agent, by: string) {
  const { turns } = agent
  turns.withdraw('everything was stopped')
  return interruptsOf(agent).halt(by, turns.handingOver())
}

function interruptsOf(agent: Agent): Interrupts {
  const { name, store, clock, log, isHalted } = agent.options
  const turnToHalt = () => (isHalted() ? sessionInTurn(agent) : undefined)
  agent.interrupts ??= createInterrupts({ name, store, clock, log, turnToHalt })
  return agent.interrupts
}

// ── The label around the agent's terminal ────────────────────────────────────────────────────────

function updateLabel(agent: Agent) {
  if (agent.session?.setLabel === undefined || agent.cancelLabel !== undefined) return
  agent.cancelLabel = agent.options.clock.after(LABEL_DELAY_MS, () => {
    agent.cancelLabel = undefined
    void showLabel(agent).catch(() => {})
  })
}

async function showLabel({ options, turns, session, isClosed }: Agent) {
  if (session?.setLabel === undefined || isClosed) return
  const { name, store, isHalted, isPaused } = options
  const waiting = await countQueued(store, name, MAIL_COUNTED)
  const state = isHalted() ? 'stopped' : isPaused() ? 'paused' : session.state
  const why = state === 'idle' && turns.obstacle() !== undefined ? `: ${turns.obstacle()}` : ''
  const mail = waiting === 0 ? '' : ` · ${waiting === MAIL_COUNTED ? `${waiting}+` : waiting} waiting${why}`
  const uncertain = turns.uncertainCount() === 0 ? '' : ` · ${turns.uncertainCount()} uncertain`
  session.setLabel(`${name} · ${state}${mail}${uncertain}`)
}

/**
 * A process may have ended before it stored the messages it took. Its unanswered messages become uncertain, so the session
 * that resumes the conversation looks for them.
 */
export async function markUnansweredUncertain(
  store: Store,
  mailboxes: Mailboxes,
  agent: string,
): Promise<void> {
  const evidence = 'the process that took it has ended; looking for it in the conversation'
  await store.write(async (tx) =>
    mailboxes.moved(tx, agent, await unansweredDeliveries(tx, agent), 'uncertain', evidence, true),
  )
}
