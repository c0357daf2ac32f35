import { formatId } from '../../model/identifier.ts'
import type { DeliveryState } from '../../model/message.ts'
import { tasksOfMessages } from '../../store/messages.ts'
import type { Store, Tx } from '../../store/store.ts'
import { openTasksOf } from '../../store/tasks.ts'
import type { Happening } from '../../tasks/happening.ts'
import type { Sessions, SessionWatch } from '../sessions.ts'
import type { Log } from '../surroundings.ts'

export interface WatchOptions {
  store: Store
  log: Log
  sessions(): Sessions
  tell(tx: Tx, task: string, event: Happening): Promise<unknown>
  idle: { began(agent: string): Promise<void>; rests(agent: string): Promise<void> }
}

/** Tells tasks what became of the messages to their workers, and of the turns these take. */
export function createWatch({ store, log, sessions, tell, idle }: WatchOptions) {
  /** Tasks whose messages are in the agent's turn, or were in its last one. */
  const inTurn = new Map<string, Set<string>>()
  /** Tasks for which it reported, asked or delegated in this turn. */
  const said = new Map<string, Set<string>>()
  let closed = false

  function add(to: Map<string, Set<string>>, agent: string, task: string) {
    to.set(agent, (to.get(agent) ?? new Set()).add(task))
  }

  /** For every open task of the agent; nothing is written when there is none. */
  async function tellAll(
    agent: string,
    eventFor: (task: { id: string; state: string }) => Happening | undefined,
  ) {
    if (closed || (await openTasksOf(store, agent)).length === 0) return
    await store.write(async (tx) => {
      for (const task of await openTasksOf(tx, agent)) {
        const event = eventFor(task)
        if (event !== undefined) await tell(tx, task.id, event)
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
    for (const { task, recipient } of await tasksOfMessages(tx, keys)) {
      if (recipient !== agent) continue
      const id = formatId('task', task)
      if (state === 'failed') {
        await tell(tx, id, { type: 'worker_unreachable', by: agent, why: evidence, recoverable: true })
        continue
      }
      await tell(tx, id, { type: 'acknowledged', by: agent })
      // Of an agent that only holds a token, its receipt is all that is ever known.
      const isBegun = state === 'read' || sessions().session(agent)?.state === 'busy'
      if (isBegun) await tell(tx, id, { type: 'started', by: agent })
      tx.afterCommit(() => add(inTurn, agent, id))
    }
  }

  const watch: SessionWatch = {
    async turnBegan(agent) {
      const started = { type: 'started', by: agent } as const
      await guarded(
        agent,
        tellAll(agent, ({ state }) => (state === 'analyzing' ? started : undefined)),
      )
      await guarded(agent, idle.began(agent))
    },
    async turnEnded(agent, lastWords) {
      const spoken = said.get(agent) ?? new Set()
      said.delete(agent)
      inTurn.delete(agent)
      const event = (id: string) =>
        ({ type: 'turn_ended', by: agent, said: spoken.has(id), lastWords }) as const
      await guarded(
        agent,
        tellAll(agent, ({ id }) => event(id)),
      )
      if (!closed) await guarded(agent, idle.rests(agent))
    },
    exited(agent, why) {
      said.delete(agent)
      inTurn.delete(agent)
      return guarded(
        agent,
        tellAll(agent, () => ({ type: 'worker_exited', by: agent, why })),
      )
    },
    unreachable: (agent, why) =>
      guarded(
        agent,
        tellAll(agent, () => ({ type: 'worker_unreachable', by: agent, why, recoverable: true })),
      ),
  }

  return {
    ...watch,
    moved,
    spoke: (agent: string, task: string) => add(said, agent, task),
    inTurn: (agent: string): ReadonlySet<string> => inTurn.get(agent) ?? new Set(),
    close() {
      closed = true
    },
  }
}
