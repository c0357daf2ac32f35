import type { Store, Tx } from '../../store/store.ts'
import type { Keyed, OutsideEffect } from '../../tasks/effect.ts'
import type { Happening } from '../../tasks/happening.ts'
import type { Sessions } from '../sessions.ts'
import type { Log } from '../surroundings.ts'
import type { Team } from '../team.ts'
import type { Checking } from './checking.ts'
import type { Judging } from './judging.ts'

type Start = Extract<OutsideEffect, { type: 'start_agent' }>
type Interrupt = Extract<OutsideEffect, { type: 'interrupt_agent' }>

export interface OutsideOptions {
  store: Store
  log: Log
  team(): Team
  sessions(): Sessions
  checking: Checking
  judge: Judging
  /** Whether the agent's current turn is, as far as is known, on something else. */
  isElsewhere(agent: string, task: string): boolean
  tell(tx: Tx, task: string, event: Happening): Promise<unknown>
}

/**
 * What is done outside of the store, after the commit that ordered it. Nothing here is lost by a crash: what of it is
 * not done yet can be told from the stored task, and is done again at the next start.
 */
export function createOutside(options: OutsideOptions) {
  const { store, log } = options
  const underWay = new Map<string, Promise<void>>()
  const ending = new AbortController()
  const { signal } = ending

  function perform(effect: Keyed<OutsideEffect>) {
    if (signal.aborted || underWay.has(effect.key)) return
    const done = carryOut(effect)
      .catch((error: unknown) => {
        if (signal.aborted) return
        log.error({ err: error, task: effect.task, effect: effect.type }, 'an effect of a task failed')
      })
      .finally(() => underWay.delete(effect.key))
    underWay.set(effect.key, done)
  }

  async function carryOut(effect: Keyed<OutsideEffect>) {
    switch (effect.type) {
      case 'start_agent':
        return await start(effect)
      case 'interrupt_agent':
        return await interrupt(effect)
      case 'run_checks': {
        const { task, claim, checks } = effect
        return await tell(task, await options.checking.check(task, claim, checks, signal))
      }
      case 'run_judge':
        return await tell(effect.task, await options.judge(effect, signal))
    }
  }

  async function start({ agent, task, isReview }: Start) {
    if (isReview && options.team().resolve(agent) === undefined) {
      return await tell(task, { type: 'review_lost', by: agent, why: 'it is not in the team any more' })
    }
    await options.sessions().wake(agent)
  }

  async function tell(task: string, event: Happening) {
    // What was cut short by the end of the service is no result.
    if (signal.aborted) return
    await store.write((tx) => options.tell(tx, task, event))
  }

  async function interrupt({ agent, task, interrupt: number }: Interrupt) {
    const session = options.sessions().session(agent)
    if (session?.state === 'busy' && !options.isElsewhere(agent, task)) {
      const { stopped, evidence } = await session.interrupt()
      if (!stopped) log.warn({ agent, task, evidence }, 'an agent did not stop')
    }
    await tell(task, { type: 'interrupted', interrupt: number })
  }

  return {
    perform,
    wake(agent: string) {
      if (signal.aborted) return
      options
        .sessions()
        .wake(agent)
        .catch((error: unknown) => log.error({ agent, err: error }, 'an agent could not be woken'))
    },
    /** Breaks off what is under way. Resolves when nothing of it runs any more. */
    async close(): Promise<void> {
      ending.abort()
      const checks = [...underWay].filter(([key]) => key.includes('/checks/'))
      await Promise.all(checks.map(([, done]) => done))
    },
  }
}
