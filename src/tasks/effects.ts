import type { Sessions } from '../agents/sessions.ts'
import type { SessionState } from '../base/agent.ts'
import { reasonOf } from '../base/errors.ts'
import { parseId } from '../base/ids.ts'
import type { KeyedLimiter } from '../base/keyed-limiter.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import { interruptOnce } from '../delivery/interrupts.ts'
import { wasGivenElse } from '../messages/store/deliveries.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Keyed, OutsideEffect } from './core/effect.ts'
import type { Happening } from './core/event.ts'
import type { Stepped } from './core/view.ts'
import { findTask } from './store/tasks.ts'
import type { Judging } from './validation/ask-judge.ts'
import type { Checking } from './validation/run-checks.ts'

type Start = Extract<OutsideEffect, { type: 'start_agent' }>
type Interrupt = Extract<OutsideEffect, { type: 'interrupt_agent' }>
type Validation = Extract<OutsideEffect, { type: 'run_checks' | 'run_judge' }>

/** States of a session in which nobody can say whether it is in a turn. */
const UNKNOWN: ReadonlySet<SessionState> = new Set(['initializing', 'unknown'])

export interface OutsideOptions {
  store: Store
  log: Log
  team(): Team
  sessions(): Sessions
  checking: Checking
  judge: Judging
  /** Whether the agent's current turn is, as far as is known, on something else. */
  isElsewhere(agent: string, task: string): boolean
  /** So that a restart with thousands of claims asks a model for a few at once. */
  judgeLimiter: KeyedLimiter
  tell(tx: Tx, task: string, event: Happening): Promise<Stepped>
}

interface UnderWay {
  done: Promise<void>
  off: AbortController
}

/**
 * What is done outside of the store, after the commit that ordered it. Nothing here is lost by a crash: what of it is
 * not done yet can be told from the stored task, and is done again at the next start.
 */
export function createOutside(options: OutsideOptions) {
  const { store, log } = options
  /** By their keys. */
  const postponed = new Map<string, Keyed<Interrupt>>()
  const underWay = new Map<string, UnderWay>()
  let isClosed = false

  function perform(effect: Keyed<OutsideEffect>) {
    if (isClosed || underWay.has(effect.key)) return
    // Nothing waits for it, and nothing can call it off.
    if (effect.type === 'start_agent' && !effect.isReview) return wake(effect.agent)
    const off = new AbortController()
    const { signal } = off
    const done = carryOut(effect, signal)
      .catch(async (error: unknown) => {
        if (signal.aborted) return
        log.error({ err: error, task: effect.task, effect: effect.type }, 'an effect of a task failed')
        await tellFailure(effect, reasonOf(error))
      })
      .catch((error: unknown) => {
        // Its timer is left.
        if (!signal.aborted) log.error({ err: error, task: effect.task }, 'a task could not be told of that')
      })
      .finally(() => underWay.delete(effect.key))
    underWay.set(effect.key, { done, off })
  }

  async function carryOut(effect: Keyed<OutsideEffect>, signal: AbortSignal) {
    switch (effect.type) {
      case 'start_agent':
        return await startReviewer(effect)
      case 'interrupt_agent':
        return await interrupt(effect)
      case 'run_checks': {
        const found = await options.checking.check(effect, () => begin(effect, 'checks', signal), signal)
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

  /** Its turn has come. Says whether the claim still waits for it. */
  async function begin({ task, claim }: Validation, step: 'checks' | 'judge', signal: AbortSignal) {
    if (signal.aborted) return false
    const event: Happening = { type: 'validation_began', claim, step }
    const { ok } = await store.write((tx) => options.tell(tx, task, event))
    return ok && !signal.aborted
  }

  function wake(agent: string) {
    options
      .sessions()
      .wake(agent)
      .catch((error: unknown) => log.error({ agent, err: error }, 'an agent could not be woken'))
  }

  async function startReviewer({ agent, task }: Start) {
    if (options.team().resolve(agent) === undefined) {
      return await tell(task, { type: 'review_lost', by: agent, why: 'it is not in the team any more' })
    }
    await options.sessions().wake(agent)
  }

  async function tell(task: string, event: Happening) {
    // What was cut short by the end of the service is no result.
    if (isClosed) return
    await store.write((tx) => options.tell(tx, task, event))
  }

  /** What could not be validated is not waited for: whoever delegated decides, and knows why. */
  async function tellFailure(effect: OutsideEffect, reason: string) {
    if (effect.type !== 'run_checks' && effect.type !== 'run_judge') return
    const what = effect.type === 'run_checks' ? 'its checks could not be run' : `${effect.judge} failed`
    await tell(effect.task, { type: 'validation_gave_up', claim: effect.claim, why: `${what}: ${reason}` })
  }

  async function interrupt(effect: Keyed<Interrupt>) {
    const { agent, task, interrupt: number } = effect
    // Another daemon of the team runs it, and sees to it.
    if (store.engine === 'postgres' && options.team().resolve(agent) === undefined) return
    // Put off, it may come when the next attempt is at work, which it is not for.
    const owing = await findTask(store, task)
    if (owing === undefined || !owing.interrupting || owing.interrupts !== number) return
    const session = options.sessions().session(agent)
    // Found again a moment ago: whether it is in a turn is not known yet.
    if (session !== undefined && UNKNOWN.has(session.state)) {
      postponed.set(effect.key, effect)
      return
    }
    const isAtWork = session !== undefined && options.sessions().isInTurn(agent)
    if (isAtWork && !(await isElsewhere(agent, task))) {
      const { stopped, evidence } = await interruptOnce(session)
      if (!stopped) log.warn({ agent, task, evidence }, 'an agent did not stop')
    }
    await tell(task, { type: 'interrupted', interrupt: number })
  }

  /** What the memory does not know after a restart, the deliveries do: its turn may be on what it was given since. */
  async function isElsewhere(agent: string, id: string): Promise<boolean> {
    if (options.isElsewhere(agent, id)) return true
    const task = await findTask(store, id)
    const since = task?.endedAt ?? task?.failures.at(-1)?.at
    return since !== undefined && (await wasGivenElse(store, agent, { task: parseId('task', id)!, since }))
  }

  return {
    perform,
    /** The state of the agent's session is known now, or there is none any more. */
    known(agent: string) {
      for (const [key, effect] of postponed) {
        if (effect.agent !== agent) continue
        postponed.delete(key)
        perform(effect)
      }
    },
    wake(agent: string) {
      if (!isClosed) wake(agent)
    },
    /** Its task does not need it any more: a check or a judge is broken off. */
    callOff: (key: string) => underWay.get(key)?.off.abort(),
    isUnderWay: (key: string) => underWay.has(key),
    /** Breaks off what is under way. Resolves when nothing of it runs any more. */
    async close(): Promise<void> {
      isClosed = true
      const checks = [...underWay].filter(([key]) => key.includes('/checks/'))
      for (const { off } of underWay.values()) off.abort()
      await Promise.all(checks.map(([, { done }]) => done))
    },
  }
}
