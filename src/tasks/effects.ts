import type { Sessions } from '../agents/sessions.ts'
import type { SessionState } from '../base/agent.ts'
import { reasonOf } from '../base/errors.ts'
import { parseId } from '../base/ids.ts'
import type { KeyedLimiter } from '../base/keyed-limiter.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import { interruptOnce } from '../delivery/interrupts.ts'
import { wasGivenElse } from '../messages/delivery-states.ts'
import type { Store } from '../store/store.ts'
import type { TaskEvent, TaskOutsideEffect, WithKey } from './core/events-and-effects.ts'
import { findTask } from './store.ts'
import type { TellTask } from './tell-task.ts'
import type { CheckRunner } from './validation/checks.ts'
import type { JudgeRunner } from './validation/judge.ts'

type StartAgent = Extract<TaskOutsideEffect, { type: 'start_agent' }>
type InterruptAgent = Extract<TaskOutsideEffect, { type: 'interrupt_agent' }>
type Validation = Extract<TaskOutsideEffect, { type: 'run_checks' | 'run_judge' }>

/** Session states that don't show whether the agent is in a turn. */
const UNKNOWN: ReadonlySet<SessionState> = new Set(['initializing', 'unknown'])

export interface TaskEffectsOptions {
  store: Store
  log: Log
  team(): Team
  sessions(): Sessions
  checks: CheckRunner
  judge: JudgeRunner
  /** Whether the agent's current turn is known to be on another task. */
  isOnOtherTask(agent: string, task: string): boolean
  /** Limits parallel judgements, because a restart may find thousands of claims. */
  judgeLimiter: KeyedLimiter
  tell: TellTask
}

interface RunningEffect {
  done: Promise<void>
  abort: AbortController
}

/**
 * Carries out effects outside of the store, after the commit that ordered them. A crash loses none: `pendingEffects`
 * derives the unfinished ones from the stored task, and the next start carries them out.
 */
export function createTaskEffects(options: TaskEffectsOptions) {
  const { store, log } = options
  /** Interrupts of agents whose session state isn't known yet, by key. */
  const postponed = new Map<string, WithKey<InterruptAgent>>()
  const running = new Map<string, RunningEffect>()
  let isClosed = false

  function perform(effect: WithKey<TaskOutsideEffect>) {
    if (isClosed || running.has(effect.key)) return
    if (effect.type === 'start_agent' && !effect.isReview) return wake(effect.agent)
    const abort = new AbortController()
    const { signal } = abort
    const done = carryOut(effect, signal)
      .catch(async (error: unknown) => {
        if (signal.aborted) return
        log.error({ err: error, task: effect.task, effect: effect.type }, 'an effect of a task failed')
        await tellFailure(effect, reasonOf(error))
      })
      .catch((error: unknown) => {
        // The task's timer will end the wait.
        if (!signal.aborted) log.error({ err: error, task: effect.task }, 'could not report a failed effect')
      })
      .finally(() => running.delete(effect.key))
    running.set(effect.key, { done, abort })
  }

  async function carryOut(effect: WithKey<TaskOutsideEffect>, signal: AbortSignal) {
    switch (effect.type) {
      case 'start_agent':
        return await startReviewer(effect)
      case 'interrupt_agent':
        return await interrupt(effect)
      case 'run_checks': {
        const found = await options.checks.check(effect, () => begin(effect, 'checks', signal), signal)
        return found === undefined || signal.aborted ? undefined : await tell(effect.task, found)
      }
      case 'run_judge':
        return await options.judgeLimiter.run(effect.key, async () => {
          if (!(await begin(effect, 'judge', signal))) return
          const found = await options.judge(effect, signal)
          if (!signal.aborted) await tell(effect.task, found)
        })
    }
  }

  /** The validation left the queue. Returns whether the claim still waits for it. */
  async function begin({ task, claim }: Validation, step: 'checks' | 'judge', signal: AbortSignal) {
    if (signal.aborted) return false
    const event: TaskEvent = { type: 'validation_began', claim, step }
    const { ok } = await store.write((tx) => options.tell(tx, task, event))
    return ok && !signal.aborted
  }

  function wake(agent: string) {
    options
      .sessions()
      .wake(agent)
      .catch((error: unknown) => log.error({ agent, err: error }, 'could not wake an agent'))
  }

  async function startReviewer({ agent, task }: StartAgent) {
    if (options.team().resolve(agent) === undefined) {
      return await tell(task, { type: 'review_lost', by: agent, why: 'it is no longer in the team' })
    }
    await options.sessions().wake(agent)
  }

  async function tell(task: string, event: TaskEvent) {
    // An effect that the end of the service aborted has no result.
    if (isClosed) return
    await store.write((tx) => options.tell(tx, task, event))
  }

  /** A claim that could not be validated goes to the delegator at once, with the reason. */
  async function tellFailure(effect: TaskOutsideEffect, reason: string) {
    if (effect.type !== 'run_checks' && effect.type !== 'run_judge') return
    const what = effect.type === 'run_checks' ? 'its checks could not be run' : `${effect.judge} failed`
    await tell(effect.task, { type: 'validation_gave_up', claim: effect.claim, why: `${what}: ${reason}` })
  }

  async function interrupt(effect: WithKey<InterruptAgent>) {
    const { agent, task, interrupt: number } = effect
    // Another daemon on the store runs the agent and will interrupt it.
    if (store.engine === 'postgres' && options.team().resolve(agent) === undefined) return
    // A postponed interrupt must not hit the next attempt.
    const current = await findTask(store, task)
    if (current === undefined || !current.interrupting || current.interrupts !== number) return
    const session = options.sessions().session(agent)
    // After a restart it takes a moment until the session's state is known.
    if (session !== undefined && UNKNOWN.has(session.state)) {
      postponed.set(effect.key, effect)
      return
    }
    const isAtWork = session !== undefined && options.sessions().isInTurn(agent)
    if (isAtWork && !(await isOnOtherTask(agent, task))) {
      const { stopped, evidence } = await interruptOnce(session)
      if (!stopped) log.warn({ agent, task, evidence }, 'an agent ignored its interrupt')
    }
    await tell(task, { type: 'interrupted', interrupt: number })
  }

  /** After a restart, the stored deliveries show whether the agent got something else since. */
  async function isOnOtherTask(agent: string, id: string): Promise<boolean> {
    if (options.isOnOtherTask(agent, id)) return true
    const task = await findTask(store, id)
    const since = task?.endedAt ?? task?.failures.at(-1)?.at
    return since !== undefined && (await wasGivenElse(store, agent, { task: parseId('task', id)!, since }))
  }

  return {
    perform,
    /** The state of the agent's session is known, or the session has ended. */
    sessionKnown(agent: string) {
      for (const [key, effect] of postponed) {
        if (effect.agent !== agent) continue
        postponed.delete(key)
        perform(effect)
      }
    },
    wake(agent: string) {
      if (!isClosed) wake(agent)
    },
    /** The task no longer needs the effect. */
    abort: (key: string) => running.get(key)?.abort.abort(),
    isRunning: (key: string) => running.has(key),
    /** Aborts all running effects, and resolves when no check runs. */
    async close(): Promise<void> {
      isClosed = true
      const checks = [...running].filter(([key]) => key.includes('/checks/'))
      for (const { abort } of running.values()) abort.abort()
      await Promise.all(checks.map(([, { done }]) => done))
    },
  }
}
