/**
 * The work of a member is in one of these states:
 * - delegating: its program starts, or its task is being stored. `stop` aborts a start; a stored task is ended after it.
 * - followed: the task exists, and every change of it is read. Leads to ended.
 * - stopping: `stop` has cancelled or settled the task. Its end is not a report on the work.
 * - given up: the task failed and asks people for help. It is cancelled, because the run decides what happens next.
 * - ended: reported once, for programs after their session has stopped.
 * - closed: the service stops. Nothing is reported; the next service finds the task by its key.
 */
import type { Sessions } from '../../agents/sessions.ts'
import { spentOnTask } from '../../agents/usage-and-limits.ts'
import type { AuditEntry } from '../../audit/entry.ts'
import { OPERATOR, ORCHESTRATOR, type SessionState } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'
import { reasonOf } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Result } from '../../base/result.ts'
import { findReceipt, storeReceipt } from '../../commands/idempotency.ts'
import type { Team } from '../../commands/team.ts'
import type { Store } from '../../store/store.ts'
import { isEnd, type Task } from '../../tasks/task.ts'
import { findTask, type TaskEvent, type Tasks } from '../../tasks/tasks.ts'
import { type TemporaryAgents, temporaryName } from './temporary-agents.ts'
import type { Worker, WorkerKind, WorkOrder, WorkPort } from './worker.ts'

export type MemberTasks = Pick<Tasks, 'delegate' | 'tell'>
type RunTaskOrder = Parameters<Tasks['delegate']>[1]

interface MemberWorkersOptions {
  store: Store
  clock: Clock
  log: Log
  team(): Team
  tasks: MemberTasks
  temporaryAgents: Pick<TemporaryAgents, 'add' | 'remove' | 'has'>
  sessions(): Pick<Sessions, 'wake' | 'session'>
  isHalted(): boolean
}

/** In a turn, or waiting for a person in one. Both states have their own timeouts. */
const AT_WORK: ReadonlySet<SessionState> = new Set(['busy', 'waiting_input'])

/** A program that takes longer to start may wait for a person, for example to log in or to trust the folder. */
const SLOW_MS = 30_000
const SCREEN_LINES = 30
const GONE: ReadonlySet<SessionState> = new Set(['exited', 'error'])

interface MemberWorkers extends WorkerKind {
  /** The member that does the work; undefined for other runners. */
  nameOf(order: WorkOrder): string | undefined
  close(): void
}

/** Members of the team and programs started for the run. Each gets a task, and reports by REPORT or by its files. */
export function createMemberWorkers(options: MemberWorkersOptions): MemberWorkers {
  const { store, clock, log, team, tasks, temporaryAgents, sessions, isHalted } = options
  /** By task: called when the task changes. */
  const followed = new Map<string, () => void>()
  /** By agent: called when its session changes, while its program starts. */
  const starting = new Map<string, (session: SessionState, evidence: string) => void>()

  const stopListening = store.onCommit((entries: readonly AuditEntry[]) => {
    if (followed.size + starting.size === 0) return
    for (const { data, type } of entries) {
      if (type.startsWith('task.') && typeof data?.task_id === 'string') followed.get(data.task_id)?.()
      if (type !== 'session.changed') continue
      const { agent, session, evidence } = data as { agent: string; session: SessionState; evidence: string }
      starting.get(agent)?.(session, evidence)
    }
  })

  /** Idempotency key: the same work is delegated once, even after a crash. */
  const keyOf = ({ run, node, what }: WorkOrder) => `${run}/${node}/${what}`

  async function give(
    order: WorkOrder,
    port: WorkPort,
    signal: AbortSignal,
  ): Promise<Result<string, string>> {
    const isTemporary = order.runner.kind === 'program'
    const agent = isTemporary ? await temporaryAgents.add(order) : nameOf(order)
    if (agent === undefined) return refused('this member of the team no longer exists')
    if (signal.aborted) return refused('it was stopped')
    // Delegate when the program is ready: its startup must not count against the timeout of the task.
    const why = isTemporary
      ? await awaitStartup(agent, (screen) => port.slow(agent, screen), signal)
      : undefined
    if (why !== undefined) return refused(why)
    return await delegateOnce(store, tasks, keyOf(order), {
      agent,
      text: taskText(order),
      context: { run: order.run, agent: order.node, workspace: order.workspace },
      timeoutMs: order.timeoutMs,
    })
  }

  /** Returns why the program will not be ready; undefined: it is. Calls `slow` once, with its screen. */
  async function awaitStartup(
    agent: string,
    slow: (screen: string) => void,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const stopped = () => resolve('it was stopped before its program started')
    const cancel = clock.after(SLOW_MS, () => {
      const session = sessions().session(agent)
      void Promise.resolve(session?.screen?.(SCREEN_LINES))
        .catch(() => undefined)
        .then((screen) => starting.has(agent) && slow(screen?.trim() ?? ''))
    })
    // Events before the start may belong to an earlier session.
    let isStarted = false
    let last = 'it could not be started'
    const never = () => resolve(`its program did not start: ${last}`)
    starting.set(agent, (state, evidence) => {
      if (!GONE.has(state)) {
        if (state !== 'initializing') resolve(undefined)
        return
      }
      last = evidence
      if (isStarted) never()
    })
    signal.addEventListener('abort', stopped, { once: true })
    try {
      if (signal.aborted) stopped()
      await sessions().wake(agent)
      isStarted = true
      const state = sessions().session(agent)?.state
      if (state !== undefined && !GONE.has(state)) {
        if (state !== 'initializing') resolve(undefined)
      } else if (!isHalted()) never()
      return await promise
    } finally {
      cancel()
      starting.delete(agent)
      signal.removeEventListener('abort', stopped)
    }
  }

  function nameOf(order: WorkOrder): string | undefined {
    if (order.runner.kind === 'program') return temporaryName(order)
    return order.runner.kind === 'agent' ? team().resolve(order.runner.agent) : undefined
  }

  function workerOf(
    order: WorkOrder,
    port: WorkPort,
    give: (signal: AbortSignal) => Promise<Result<string, string>>,
  ): Worker {
    const stopping = new AbortController()
    let task: string | undefined
    let isStarted = false
    let isOver = false
    let isClosed = false
    let stopWith: TaskEvent | undefined
    let gaveUp: string | undefined

    const over = (code: number | null, why: string) => {
      if (isOver || isClosed) return
      isOver = true
      if (task !== undefined) followed.delete(task)
      const tell = () => port.ended({ code, signal: null, lost: false, why })
      if (order.runner.kind !== 'program') return tell()
      // The work has ended when its program has.
      void temporaryAgents
        .remove(order)
        .catch((error: unknown) =>
          log.error({ err: error, run: order.run }, 'stopping a program of a run failed'),
        )
        .then(() => !isClosed && tell())
    }
    const guard = (work: Promise<unknown>) =>
      void work.catch((error: unknown) => {
        log.error({ err: error, run: order.run, node: order.node }, 'following a task of a run failed')
        over(null, reasonOf(error))
      })

    async function look() {
      const found = task === undefined || isOver ? undefined : await findTask(store, task)
      if (found === undefined || isOver) return
      if (!isStarted && found.state !== 'pending') {
        isStarted = true
        port.started()
      } else port.active()
      if (!isEnd(found.state)) {
        // A task that failed for good asks people for help, but here the run decides what follows. Help that the agent itself
        // asks for is not affected.
        const failure = found.failures.at(-1)
        const isFailed = failure !== undefined && found.questions.some(({ kind }) => kind === 'help')
        if (gaveUp !== undefined || !isFailed) return
        gaveUp = failure.why
        await endTask({ type: 'cancelled', by: OPERATOR, reason: `${order.run} decides what follows` })
        return
      }
      await meter(found)
      const isDone = found.state === 'completed'
      const why = gaveUp ?? found.reason ?? found.result ?? ''
      // A task that Orchub ended says nothing about the work.
      if (stopWith === undefined) {
        port.reported(isDone ? 'completed' : 'failed', isDone ? (found.result ?? why) : why)
      }
      over(
        isDone ? 0 : 1,
        isDone ? '' : `${found.id} ${gaveUp === undefined ? found.state : 'failed'}: ${why}`,
      )
    }

    async function meter({ id }: Task) {
      const spent = await spentOnTask(store, parseId('task', id)!)
      if (spent.length === 0) return
      const sum = (of: (one: (typeof spent)[number]) => number) =>
        spent.reduce((total, one) => total + of(one), 0)
      port.metered({
        inputTokens: sum(({ input, cache_read, cache_write }) => input + cache_read + cache_write),
        outputTokens: sum(({ output }) => output),
        cost: spent.every(({ answers, unpriced }) => answers === unpriced) ? null : sum(({ cost }) => cost),
      })
    }

    async function endTask(event: TaskEvent) {
      if (task !== undefined) await store.write((tx) => tasks.tell(tx, task!, event))
      await look()
    }

    guard(
      give(stopping.signal).then(async (given) => {
        if (!given.ok) return over(null, given.error)
        task = given.value
        port.delegated(task)
        followed.set(task, () => guard(look()))
        if (stopWith !== undefined) await endTask(stopWith)
        else await look()
      }),
    )
    return {
      stop(finished) {
        if (isOver || stopWith !== undefined) return
        stopWith = finished
          ? { type: 'settled', by: OPERATOR, as: 'completed', reason: 'its status.json reports completion' }
          : { type: 'cancelled', by: OPERATOR, reason: `${order.run} no longer needs it` }
        if (task !== undefined) guard(endTask(stopWith))
        else stopping.abort()
      },
      showsLife() {
        const name = nameOf(order)
        const state = name === undefined ? undefined : sessions().session(name)?.state
        return state !== undefined && AT_WORK.has(state)
      },
      // The halt suspends its session.
      freeze() {},
      async close() {
        isClosed = true
        stopping.abort()
        if (task !== undefined) followed.delete(task)
      },
    }
  }

  return {
    start: (order, port) => workerOf(order, port, (signal) => give(order, port, signal)),
    async find(order) {
      const earlier = await findReceipt(store, ORCHESTRATOR, keyOf(order))
      if (earlier !== undefined)
        return (port) => workerOf(order, port, async () => ({ ok: true, value: earlier.receipt }))
      // The program was started but not ready yet, so the agent has no task.
      return temporaryAgents.has(order)
        ? (port) => workerOf(order, port, (signal) => give(order, port, signal))
        : undefined
    },
    nameOf,
    close: stopListening,
  }
}

function taskText({ workspace, objective, node, run }: WorkOrder): string {
  return [
    objective || `Do the work of ${node} in ${run}.`,
    '',
    `Your folder for this task is ${workspace}. Its SKILL.md explains how to work there, and inbox/instructions.md describes the work.`,
    'Put your results and a summary.md into its outbox/.',
    'When you are done, set "state" in its status.json to "completed", or report this task as completed; either is enough.',
    'If you cannot continue, set it to "failed" with the reason, or report that you need help.',
  ].join('\n')
}

/** Delegates a task of a run, unless the key shows that it was delegated before. Returns its id, or why it is refused. */
export async function delegateOnce(
  store: Store,
  tasks: MemberTasks,
  key: string,
  order: Pick<RunTaskOrder, 'agent' | 'text' | 'context' | 'timeoutMs'>,
): Promise<Result<string, string>> {
  return await store.write(async (tx) => {
    const earlier = await findReceipt(tx, ORCHESTRATOR, key)
    if (earlier !== undefined) return { ok: true, value: earlier.receipt }
    const given = await tasks.delegate(tx, {
      ...order,
      delegator: OPERATOR,
      requiresResponse: true,
      checks: [],
      judge: null,
      // The run itself retries, after it has moved the results aside.
      maxAttempts: 1,
    })
    if (!given.ok) return refused(given.error.message)
    await storeReceipt(tx, ORCHESTRATOR, key, { digest: 'run', receipt: given.value.id })
    return { ok: true, value: given.value.id }
  })
}

function refused(why: string): Result<never, string> {
  return { ok: false, error: why }
}
