import { judgeReport } from '../../models/judge.ts'
import type { Models } from '../../models/model.ts'
import type { Store, Tx } from '../../store/store.ts'
import { findTask } from '../../store/tasks.ts'
import type { Keyed, OutsideEffect } from '../../tasks/effect.ts'
import type { Happening } from '../../tasks/happening.ts'
import { commitOf, declaredCommand, evidenceOf, runCheck } from '../checks.ts'
import type { Sessions } from '../sessions.ts'
import type { Clock, Log } from '../surroundings.ts'
import type { Team } from '../team.ts'

type Effect<T extends OutsideEffect['type']> = Keyed<Extract<OutsideEffect, { type: T }>>

export interface OutsideOptions {
  store: Store
  clock: Clock
  log: Log
  team(): Team
  sessions(): Sessions
  models: Models | undefined
  /** Whether the agent's current turn is, as far as is known, on something else. */
  isElsewhere(agent: string, task: string): boolean
  tell(tx: Tx, task: string, event: Happening): Promise<unknown>
}

/** What a command that an agent declared itself may take. */
const DECLARED_CHECK_MS = 5 * 60_000

/**
 * What is done outside of the store, after the commit that ordered it. Nothing here is lost by a crash: what of it is
 * not done yet can be told from the stored task, and is done again at the next start.
 */
export function createOutside(options: OutsideOptions) {
  const { store, clock, log, team } = options
  const underWay = new Set<string>()
  const ending = new AbortController()

  function perform(effect: Keyed<OutsideEffect>) {
    if (ending.signal.aborted || underWay.has(effect.key)) return
    underWay.add(effect.key)
    carryOut(effect)
      .catch((error: unknown) => {
        if (ending.signal.aborted) return
        log.error({ err: error, task: effect.task, effect: effect.type }, 'an effect of a task failed')
      })
      .finally(() => underWay.delete(effect.key))
  }

  async function carryOut(effect: Keyed<OutsideEffect>) {
    switch (effect.type) {
      case 'start_agent':
        return await options.sessions().wake(effect.agent)
      case 'interrupt_agent':
        return await interrupt(effect)
      case 'run_checks':
        return await runChecks(effect)
      case 'run_judge':
        return await runJudge(effect)
    }
  }

  async function tell(task: string, event: Happening) {
    // What was cut short by the end of the service is no result.
    if (ending.signal.aborted) return
    await store.write((tx) => options.tell(tx, task, event))
  }

  async function interrupt({ agent, task, interrupt: number }: Effect<'interrupt_agent'>) {
    const session = options.sessions().session(agent)
    if (session?.state === 'busy' && !options.isElsewhere(agent, task)) {
      const { stopped, evidence } = await session.interrupt()
      if (!stopped) log.warn({ agent, task, evidence }, 'an agent did not stop')
    }
    await tell(task, { type: 'interrupted', interrupt: number })
  }

  async function runChecks({ task: id, claim, checks }: Effect<'run_checks'>) {
    const task = await findTask(store, id)
    const folder = team().config.agents.find(({ name }) => name === task?.agent)?.folder
    if (folder === undefined) {
      return await tell(id, {
        type: 'validation_gave_up',
        claim,
        why: 'its worker is not in the team any more',
      })
    }
    const results = []
    for (const check of checks) {
      const known = checkOf(check)
      if (known === undefined) {
        const why = `orc.yaml has no check "${check}" any more`
        return await tell(id, { type: 'validation_gave_up', claim, why })
      }
      const result = await runCheck(known, folder, clock, ending.signal)
      results.push(result)
      if (!result.passed) break
    }
    const evidence = evidenceOf(results, await commitOf(folder, clock, ending.signal))
    const passed = results.every((result) => result.passed)
    await tell(id, { type: passed ? 'checks_passed' : 'checks_failed', claim, evidence })
  }

  function checkOf(check: string) {
    const declared = declaredCommand(check)
    if (declared !== undefined) return { name: declared, command: declared, timeoutMs: DECLARED_CHECK_MS }
    const { checks } = team().config.tasks
    return Object.hasOwn(checks, check) ? { name: check, ...checks[check]! } : undefined
  }

  async function runJudge({ task: id, claim, text, result }: Effect<'run_judge'>) {
    const model = team().config.tasks.judge
    if (model === undefined || options.models === undefined) {
      return await tell(id, { type: 'judge_skipped', claim, why: 'no judge is configured any more' })
    }
    const evidence = (await findTask(store, id))?.evidence.filter(({ step }) => step === 'checks') ?? []
    const judged = await judgeReport(
      options.models,
      model,
      { task: text, report: result, evidence: evidence.map((one) => one.text).join('\n') },
      { signal: ending.signal },
    )
    if (judged.ok) {
      const { completed, reason } = judged
      return await tell(id, { type: 'judged', claim, completed, reason })
    }
    await tell(id, { type: 'validation_gave_up', claim, why: `the judge failed: ${judged.message}` })
  }

  return {
    perform,
    wake(agent: string) {
      if (ending.signal.aborted) return
      options
        .sessions()
        .wake(agent)
        .catch((error: unknown) => log.error({ agent, err: error }, 'an agent could not be woken'))
    },
    close: () => ending.abort(),
  }
}
