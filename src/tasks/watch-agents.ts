import type { Sessions, SessionWatch } from '../agents/sessions.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { DeliveryState } from '../messages/message.ts'
import { hasMailOfChildren, tasksOfMessages } from '../messages/store/messages.ts'
import type { MaybePromise, Reader, Store, Tx } from '../store/store.ts'
import type { Happening } from './core/event.ts'
import type { Turn } from './current-task.ts'
import { createCutShort } from './interrupted-tasks.ts'
import type { Progress } from './progress.ts'
import { findTask, openTasksOf, reviewsOf, tasksAtWork, tasksGiven } from './store/tasks.ts'
import type { Task } from './task.ts'

export interface WatchOptions {
  store: Store
  log: Log
  sessions(): Sessions
  tell: Progress['tell']
  idle: { began(agent: string): Promise<void>; rests(agent: string): Promise<void> }
}

/** What an agent works on, and the claims of others that it is to judge. */
type Concern = { task: Task; isReview: boolean }
type EventFor = (concern: Concern, reader: Reader) => MaybePromise<Happening | undefined>

/** Tells tasks what became of the messages to their workers and reviewers, and of the turns these take. */
export function createWatch({ store, log, sessions, tell, idle }: WatchOptions) {
  /** Tasks that the agent's turn is about, by the messages in it. */
  const inTurn = new Map<string, Set<string>>()
  /** The same of its last turn, until the next begins. */
  const lastTurn = new Map<string, Set<string>>()
  /** Tasks for which it reported, asked or delegated in this turn. */
  const said = new Map<string, Set<string>>()
  const cutShort = createCutShort((agent) => sessions().session(agent) !== undefined)
  let closed = false

  /** An agent that only holds a token has no turns, whose end would clear this. */
  function add(to: Map<string, Set<string>>, agent: string, task: string) {
    if (sessions().session(agent) === undefined) return
    to.set(agent, (to.get(agent) ?? new Set()).add(task))
  }

  /** For all that concerns the agent; nothing is written when there is nothing. */
  async function tellAll(agent: string, eventFor: EventFor, concernsOf: Concerns = allOf) {
    if (closed || (await concernsOf(store, agent)).length === 0) return
    await store.write(async (tx) => {
      for (const concern of await concernsOf(tx, agent)) {
        const event = await eventFor(concern, tx)
        if (event !== undefined) await tell(tx, concern.task.id, event)
      }
    })
  }

  function guarded(agent: string, telling: Promise<void>): Promise<void> {
    return telling.catch((error: unknown) => {
      if (!closed) log.error({ agent, err: error }, 'its tasks could not be told of a change')
    })
  }

  async function moved(
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
      if (kind === 'cancelled') tx.afterCommit(() => cutShort.told(agent, task.id))
      if (state === 'failed') {
        await tell(tx, task, isReview ? reviewLost(agent, evidence) : unreachable(agent, evidence))
        continue
      }
      if (isReview) await tell(tx, task, { type: 'review_taken', by: agent })
      else await given(tx, agent, task, state)
      tx.afterCommit(() => add(inTurn, agent, isReview ? task.id : ownTask(task, agent)))
    }
  }

  async function given(tx: Tx, agent: string, task: Task, state: DeliveryState) {
    // What it is told is for its worker; to others it would only be refused.
    if (task.agent !== agent) return
    const taken = await tell(tx, task, { type: 'acknowledged', by: agent })
    // Of an agent that only holds a token, its receipt is all that is ever known.
    const isBegun = state === 'read' || sessions().session(agent)?.state === 'busy'
    if (isBegun) await tell(tx, taken.ok ? taken.task : task, { type: 'started', by: agent })
  }

  function forget(agent: string) {
    const last = inTurn.get(agent)
    if (last === undefined) lastTurn.delete(agent)
    else lastTurn.set(agent, last)
    inTurn.delete(agent)
    said.delete(agent)
  }

  const watch: SessionWatch = {
    async turnBegan(agent) {
      // What it said in the turn before, whose end nobody waited for, says nothing of this one.
      said.delete(agent)
      lastTurn.delete(agent)
      cutShort.turnBegan(agent)
      const started = { type: 'started', by: agent } as const
      await guarded(
        agent,
        tellAll(agent, () => started, givenTo),
      )
      await guarded(agent, idle.began(agent))
    },
    async turnEnded(agent, lastWords) {
      const spoken = said.get(agent) ?? new Set()
      forget(agent)
      cutShort.turnEnded(agent)
      const eventFor: EventFor = async ({ task: { id, delegations }, isReview }, reader) => {
        if (isReview) return { type: 'review_turn_ended', by: agent, lastWords }
        // What its children have to say wakes it, and needs no reminder; a service before this one may have heard it delegate.
        const isToRead = delegations > 0 && (await hasMailOfChildren(reader, agent, parseId('task', id)!))
        return { type: 'turn_ended', by: agent, said: spoken.has(id) || isToRead, lastWords }
      }
      await guarded(agent, tellAll(agent, eventFor, inHandsOf))
      if (!closed) await guarded(agent, idle.rests(agent))
    },
    exited(agent, why) {
      forget(agent)
      cutShort.forget(agent)
      const eventFor: EventFor = ({ task, isReview }) => {
        if (!isReview) return { type: 'worker_exited', by: agent, why }
        // What it was not given yet, it is given when it is started again.
        return task.claim?.review?.taken ? reviewLost(agent, why) : undefined
      }
      return guarded(agent, tellAll(agent, eventFor))
    },
    unreachable(agent, why) {
      const eventFor: EventFor = ({ isReview }) =>
        isReview ? reviewLost(agent, why) : unreachable(agent, why)
      return guarded(agent, tellAll(agent, eventFor))
    },
  }

  return {
    ...watch,
    moved,
    cutShort,
    spoke: (agent: string, task: string) => add(said, agent, task),
    inTurn: (agent: string): ReadonlySet<string> => inTurn.get(agent) ?? new Set(),
    /** Or its last one, until the next begins: an agent's words are heard late at times. */
    turnOf: (agent: string): Turn => ({
      tasks: inTurn.get(agent) ?? lastTurn.get(agent) ?? new Set(),
      isOver: !inTurn.has(agent),
    }),
    /** What it spends is told late at times, when its turn has ended. */
    spendsOn(agent: string): string | undefined {
      const about = [...(inTurn.get(agent) ?? lastTurn.get(agent) ?? [])]
      return about.length === 1 ? about[0] : undefined
    },
    close() {
      closed = true
    },
  }
}

/** Not all each time: an agent may have thousands of tasks that wait, and takes as many turns. */
type Concerns = (reader: Reader, agent: string) => Promise<Concern[]>

const allOf: Concerns = async (reader, agent) => [
  ...(await openTasksOf(reader, agent)).map(asWorker),
  ...(await reviewsOf(reader, agent)).map(asReviewer),
]

const inHandsOf: Concerns = async (reader, agent) => [
  ...(await tasksAtWork(reader, agent)).map(asWorker),
  ...(await reviewsOf(reader, agent)).map(asReviewer),
]

const givenTo: Concerns = async (reader, agent) => (await tasksGiven(reader, agent)).map(asWorker)

function asWorker(task: Task): Concern {
  return { task, isReview: false }
}

function asReviewer(task: Task): Concern {
  return { task, isReview: true }
}

/** A message on a child's task is about the delegator's own, where it has one. */
function ownTask({ id, agent: worker, delegator, parent }: Task, agent: string): string {
  return worker !== agent && delegator === agent && parent !== null ? parent : id
}

function reviewLost(by: string, why: string): Happening {
  return { type: 'review_lost', by, why }
}

function unreachable(by: string, why: string): Happening {
  return { type: 'worker_unreachable', by, why, recoverable: true }
}
