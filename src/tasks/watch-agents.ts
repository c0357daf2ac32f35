/**
 * Turns what agents do (turns, exits, deliveries) into task events.
 *
 * State per agent with a session:
 * - `inTurn`: tasks of the current turn. A delivery adds one; the end of the turn moves the set to `lastTurn`.
 * - `lastTurn`: tasks of the last turn, until the next begins, because commands and usage may arrive late.
 * - `spoke`: tasks that the agent reported on, asked about or delegated for in this turn. Cleared when a turn begins
 *   or ends.
 * - `interruptedTasks`: tasks that ended while the agent worked on them. A report without an id may be a late one of
 *   these. Cleared at the end of the agent's next turn, or, for an agent without turns, when it reads of the end.
 *
 * During a halt, `lateExits` keeps one exit per agent, and `resume` reports it after the halt.
 */
import type { Sessions, SessionWatch } from '../agents/sessions.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import { countQueued } from '../messages/delivery-states.ts'
import type { DeliveryState } from '../messages/message.ts'
import { hasMailOfChildren, tasksOfMessages } from '../messages/messages.ts'
import type { MaybePromise, Reader, Store, Tx } from '../store/store.ts'
import { clearTimer, setTimer, type Timers } from '../store/timers.ts'
import type { TaskEvent } from './core/events-and-effects.ts'
import { findTask, hasOpenTask, openTasksOf, reviewsOf, tasksAtWork, tasksGiven } from './store.ts'
import type { Task, TaskState } from './task.ts'
import type { TellTask } from './tell-task.ts'

interface WatchAgentsOptions {
  store: Store
  log: Log
  sessions(): Sessions
  tell: TellTask
  idle: { began(agent: string): Promise<void>; rests(agent: string): Promise<void> }
  /** The state of the agent's session is known from now on. */
  sessionKnown(agent: string): void
  /** Whether tasks must not quote the agent's output. */
  isConfidential(agent: string): boolean
  isHalted(): boolean
  /** The agent's turn ended during a halt, so it needs a message once the halt is over. */
  haltAffects(agent: string): void
}

export interface AgentTurn {
  /** The tasks of the turn, as far as they are known. */
  tasks: ReadonlySet<string>
  /** The turn has ended; a command that arrives now may still belong to it. */
  isOver: boolean
}

/** A task that the agent works on, or whose claim it judges. */
type AgentTask = { task: Task; isReview: boolean }
type EventFor = (concerned: AgentTask, reader: Reader) => MaybePromise<TaskEvent | undefined>

export function watchAgents(options: WatchAgentsOptions) {
  const { store, log, sessions, tell, idle, sessionKnown, isConfidential, isHalted, haltAffects } = options
  const inTurn = new Map<string, Set<string>>()
  const lastTurn = new Map<string, Set<string>>()
  const spoke = new Map<string, Set<string>>()
  const interruptedTasks = createInterruptedTasks((agent) => sessions().session(agent) !== undefined)
  const lateExits = new Map<string, () => Promise<void>>()
  let closed = false

  /** Ignores an agent that only holds a token: it has no turns, whose end would clear the set. */
  function add(to: Map<string, Set<string>>, agent: string, task: string) {
    if (sessions().session(agent) === undefined) return
    to.set(agent, (to.get(agent) ?? new Set()).add(task))
  }

  /** Opens a write transaction only if the agent has such tasks. */
  async function tellAll(agent: string, eventFor: EventFor, tasksOf: TasksOfAgent = allOf) {
    if (closed || (await tasksOf(store, agent)).length === 0) return
    await store.write(async (tx) => {
      for (const concerned of await tasksOf(tx, agent)) {
        const event = await eventFor(concerned, tx)
        if (event !== undefined) await tell(tx, concerned.task.id, event)
      }
    })
  }

  function logged(agent: string, telling: Promise<void>): Promise<void> {
    return telling.catch((error: unknown) => {
      if (!closed) log.error({ agent, err: error }, 'could not update the tasks of an agent')
    })
  }

  /** Deliveries of task messages changed their state. */
  async function deliveryMoved(
    tx: Tx,
    agent: string,
    keys: readonly number[],
    state: DeliveryState,
    evidence: string,
  ) {
    if (state !== 'submitted' && state !== 'read' && state !== 'failed') return
    for (const { task: key, kind, recipient } of await tasksOfMessages(tx, keys)) {
      if (recipient !== agent) continue
      const task = (await findTask(tx, formatId('task', key)))!
      const isReview = kind === 'review'
      if (kind === 'cancelled') tx.afterCommit(() => interruptedTasks.readEnd(agent, task.id))
      if (state === 'failed') {
        await tell(tx, task, isReview ? reviewLost(agent, evidence) : unreachable(agent, evidence))
        continue
      }
      if (isReview) await tell(tx, task, { type: 'review_taken', by: agent })
      else await messageTaken(tx, agent, task, state)
      tx.afterCommit(() => add(inTurn, agent, isReview ? task.id : ownTask(task, agent)))
    }
  }

  async function messageTaken(tx: Tx, agent: string, task: Task, state: DeliveryState) {
    // The task would refuse events of anyone but its worker.
    if (task.agent !== agent) return
    const taken = await tell(tx, task, { type: 'acknowledged', by: agent })
    // An agent that only holds a token reads a message, and shows nothing else of its work.
    const isBegun = state === 'read' || sessions().session(agent)?.state === 'busy'
    if (isBegun) await tell(tx, taken.ok ? taken.value : task, { type: 'started', by: agent })
  }

  function endTurn(agent: string) {
    const last = inTurn.get(agent)
    if (last === undefined) lastTurn.delete(agent)
    else lastTurn.set(agent, last)
    inTurn.delete(agent)
    spoke.delete(agent)
  }

  async function turnBegan(agent: string) {
    sessionKnown(agent)
    // The end of the turn before may not have been reported.
    spoke.delete(agent)
    lastTurn.delete(agent)
    interruptedTasks.turnBegan(agent)
    const started = { type: 'started', by: agent } as const
    await logged(
      agent,
      tellAll(agent, () => started, givenTo),
    )
    await logged(agent, idle.began(agent))
  }

  async function turnEnded(agent: string, lastWords: string) {
    sessionKnown(agent)
    const quoted = isConfidential(agent) ? '' : lastWords
    const spokenFor = spoke.get(agent) ?? new Set()
    endTurn(agent)
    interruptedTasks.turnEnded(agent)
    const eventFor: EventFor = async ({ task: { id, delegations }, isReview }, reader) => {
      if (isReview) return { type: 'review_turn_ended', by: agent, lastWords: quoted }
      // Mail from its children will wake it, so it needs no reminder. `spoke` is empty after a restart; this isn't.
      const hasMail = delegations > 0 && (await hasMailOfChildren(reader, agent, parseId('task', id)!))
      return { type: 'turn_ended', by: agent, responded: spokenFor.has(id) || hasMail, lastWords: quoted }
    }
    await logged(agent, tellAll(agent, eventFor, inHandsOf))
    if (!closed) await logged(agent, idle.rests(agent))
  }

  function exited(agent: string, why: string): Promise<void> {
    sessionKnown(agent)
    endTurn(agent)
    interruptedTasks.forget(agent)
    const eventFor: EventFor = ({ task, isReview }) => {
      if (!isReview) return { type: 'worker_exited', by: agent, why }
      // A claim that it didn't take yet is delivered at its next start.
      return task.claim?.review?.taken ? reviewLost(agent, why) : undefined
    }
    return logged(agent, tellAll(agent, eventFor))
  }

  function becameUnreachable(agent: string, why: string): Promise<void> {
    const eventFor: EventFor = ({ isReview }) => (isReview ? reviewLost(agent, why) : unreachable(agent, why))
    return logged(agent, tellAll(agent, eventFor))
  }

  function afterHalt(agent: string, report: () => Promise<void>): Promise<void> {
    if (!isHalted()) return report()
    lateExits.set(agent, report)
    return Promise.resolve()
  }

  /** During a halt, agents don't move tasks: an interrupted turn continues later, and an exit is reported later. */
  const sessionWatch: SessionWatch = {
    turnBegan,
    async turnEnded(agent, lastWords) {
      if (!isHalted()) return await turnEnded(agent, lastWords)
      const isAwaited = (await hasOpenTask(store, agent)) || (await reviewsOf(store, agent)).length > 0
      if (isAwaited) haltAffects(agent)
    },
    exited: (agent, why) => afterHalt(agent, () => exited(agent, why)),
    unreachable: (agent, why) => afterHalt(agent, () => becameUnreachable(agent, why)),
  }

  const tasksOfTurn = (agent: string) => inTurn.get(agent) ?? lastTurn.get(agent) ?? new Set<string>()

  return {
    sessionWatch,
    deliveryMoved,
    interruptedTasks,
    spoke: (agent: string, task: string) => add(spoke, agent, task),
    /** False if the agent's turn is not known. */
    isOnOtherTask(agent: string, task: string): boolean {
      const known = inTurn.get(agent)
      return known !== undefined && known.size > 0 && !known.has(task)
    },
    /** The current turn, or the last one until the next begins. */
    turnOf: (agent: string): AgentTurn => ({ tasks: tasksOfTurn(agent), isOver: !inTurn.has(agent) }),
    /** The only task of its turn. */
    spendsOn(agent: string): string | undefined {
      const about = [...tasksOfTurn(agent)]
      return about.length === 1 ? about[0] : undefined
    },
    /** The halt is over. */
    resume() {
      const late = [...lateExits.values()]
      lateExits.clear()
      for (const report of late) void report()
    },
    close() {
      closed = true
    },
  }
}

/** Selects tasks by state, because an agent with thousands of waiting tasks takes as many turns. */
type TasksOfAgent = (reader: Reader, agent: string) => Promise<AgentTask[]>

const allOf: TasksOfAgent = async (reader, agent) => [
  ...(await openTasksOf(reader, agent)).map(asWorker),
  ...(await reviewsOf(reader, agent)).map(asReviewer),
]

const inHandsOf: TasksOfAgent = async (reader, agent) => [
  ...(await tasksAtWork(reader, agent)).map(asWorker),
  ...(await reviewsOf(reader, agent)).map(asReviewer),
]

const givenTo: TasksOfAgent = async (reader, agent) => (await tasksGiven(reader, agent)).map(asWorker)

function asWorker(task: Task): AgentTask {
  return { task, isReview: false }
}

function asReviewer(task: Task): AgentTask {
  return { task, isReview: true }
}

/** A message about a child's task belongs to the delegator's own task, if it has one. */
function ownTask({ id, agent: worker, delegator, parent }: Task, agent: string): string {
  return worker !== agent && delegator === agent && parent !== null ? parent : id
}

function reviewLost(by: string, why: string): TaskEvent {
  return { type: 'review_lost', by, why }
}

function unreachable(by: string, why: string): TaskEvent {
  return { type: 'worker_unreachable', by, why, recoverable: true }
}

/** `hasTurns`: whether the agent runs in a session, so its turns are known. */
function createInterruptedTasks(hasTurns: (agent: string) => boolean) {
  const interrupted = new Map<string, { tasks: Set<string>; isNextTurn: boolean }>()

  return {
    add(agent: string, task: string) {
      const tasks = interrupted.get(agent)?.tasks ?? new Set()
      interrupted.set(agent, { tasks: tasks.add(task), isNextTurn: false })
    },
    turnBegan(agent: string) {
      const known = interrupted.get(agent)
      if (known?.isNextTurn) interrupted.delete(agent)
      else if (known !== undefined) known.isNextTurn = true
    },
    turnEnded(agent: string) {
      if (interrupted.get(agent)?.isNextTurn) interrupted.delete(agent)
    },
    /** The agent has read that the task ended. */
    readEnd(agent: string, task: string) {
      const known = interrupted.get(agent)
      if (known === undefined || hasTurns(agent)) return
      known.tasks.delete(task)
      if (known.tasks.size === 0) interrupted.delete(agent)
    },
    forget: (agent: string) => void interrupted.delete(agent),
    lastOf: (agent: string) => [...(interrupted.get(agent)?.tasks ?? [])].at(-1),
  }
}

interface IdleStopOptions {
  store: Store
  timers: Timers
  log: Log
  team(): Team
  sessions(): Sessions
}

/** States in which the worker has something to do. */
const AT_WORK: readonly TaskState[] = ['pending', 'analyzing', 'executing']

/** Stops agents that were idle for `stop_when_idle` of orc.yaml. They resume their conversations later. */
export function createIdleStop({ store, timers, log, team, sessions }: IdleStopOptions) {
  const limitOf = (agent: string) => team().config.agents.find(({ name }) => name === agent)?.stopWhenIdleMs

  timers.on('stop_idle', async (tx, agent) => {
    const ms = limitOf(agent)
    if (ms === undefined || sessions().session(agent)?.state !== 'idle') return
    const isAtWork = await hasOpenTask(tx, agent, AT_WORK)
    const isAwaited = isAtWork || (await reviewsOf(tx, agent)).length > 0
    if (isAwaited || (await countQueued(tx, agent, 1)) > 0) {
      setTimer(tx, 'stop_idle', agent, tx.now + ms)
      tx.afterCommit(() => timers.setFor(tx.now + ms))
      return
    }
    tx.afterCommit(() => {
      sessions()
        .stop(agent)
        .catch((error: unknown) => log.error({ agent, err: error }, 'could not stop an idle agent'))
    })
  })

  return {
    async began(agent: string) {
      if (limitOf(agent) === undefined) return
      await store.write((tx) => clearTimer(tx, 'stop_idle', agent))
    },
    async rests(agent: string) {
      const ms = limitOf(agent)
      if (ms === undefined) return
      await store.write(async (tx) => {
        clearTimer(tx, 'stop_idle', agent)
        setTimer(tx, 'stop_idle', agent, tx.now + ms)
        tx.afterCommit(() => timers.setFor(tx.now + ms))
      })
    },
  }
}
