import { hash, randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import { createKeyedLimiter } from '../../base/keyed-limiter.ts'
import type { Log } from '../../base/log.ts'
import type { Team } from '../../commands/team.ts'
import { endProcesses, readProcesses } from '../../runtimes/processes.ts'
import type { Store } from '../../store/store.ts'
import type { Happening } from '../core/event.ts'
import { findTask } from '../store/tasks.ts'
import type { CheckResult, Findings } from '../task.ts'
import { runProcess } from './check-process.ts'
import { type Check, findCheck, findingsText, resultOf } from './checks.ts'

export interface CheckingOptions {
  store: Store
  clock: Clock
  log: Log
  team(): Team
  environment: Readonly<NodeJS.ProcessEnv>
}

export interface Order {
  task: string
  claim: number
  checks: readonly string[]
}

const GIT_MS = 10_000

/** Runs the checks of claims in the folders of their workers. */
export function createChecking({ store, clock, log, team, environment }: CheckingOptions) {
  // Several suites at once on one machine only make each other late.
  const limiter = createKeyedLimiter(Math.max(1, Math.floor(availableParallelism() / 2)))
  const prefix = `check-${hash('sha256', team().config.stateFolder).slice(0, 12)}-`
  let swept: Promise<void> | undefined

  /** Each run has a mark of its own: the end of one that was broken off does not touch the next. */
  const newMark = () => `${prefix}${randomBytes(6).toString('hex')}`

  const run = (check: Omit<Check, 'name'>, cwd: string, signal: AbortSignal) =>
    runProcess({ ...check, cwd, environment, mark: newMark() }, clock, signal)

  /** A service that was killed leaves its checks running, in the folders that they are now run in again. */
  async function sweep() {
    const marks = new Set((await readProcesses()).map(({ mark }) => mark))
    for (const mark of marks) {
      if (mark?.startsWith(prefix)) await endProcesses({ mark })
    }
  }

  /** `begin`: its turn has come; says whether anybody still waits for it. Undefined where nobody does. */
  async function check(
    { task: id, claim, checks: names }: Order,
    begin: () => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<Happening | undefined> {
    await swept
    const task = await findTask(store, id)
    const folder = team().config.agents.find(({ name }) => name === task?.agent)?.folder
    if (folder === undefined) {
      return { type: 'validation_gave_up', claim, why: 'its worker is not in the team any more' }
    }
    return await limiter.run(folder, async () => {
      if (!(await begin())) return undefined
      const place = await placeOf(folder, signal)
      const checks: CheckResult[] = []
      for (const name of names) {
        const known = findCheck(team().config, name)
        if (known === undefined) {
          return { type: 'validation_gave_up', claim, why: `orc.yaml has no check "${name}" any more` }
        }
        checks.push(resultOf(known.name, await run(known, folder, signal)))
        if (!checks.at(-1)!.passed) break
      }
      const findings: Findings = { checks, ...place }
      const type = checks.every(({ passed }) => passed) ? 'checks_passed' : 'checks_failed'
      return { type, claim, evidence: findingsText(findings), findings }
    })
  }

  /** What the checks look at, where that is a git repository. */
  async function placeOf(folder: string, signal: AbortSignal): Promise<Pick<Findings, 'commit' | 'dirty'>> {
    const git = (words: string) => ({ command: `git --no-optional-locks ${words}`, timeoutMs: GIT_MS })
    const head = await run(git('rev-parse HEAD'), folder, signal)
    if (head.exitCode !== 0) return {}
    const status = await run(git('status --porcelain | head -c 1'), folder, signal)
    const isKnown = status.exitCode === 0
    return { commit: head.output.trim(), ...(isKnown && { dirty: status.output.trim() !== '' }) }
  }

  return {
    check,
    /** Before the first check: ends what an earlier process of the service left running. */
    begin() {
      swept = sweep().catch((error: unknown) => log.error({ err: error }, 'old checks could not be ended'))
    },
  }
}

export type Checking = ReturnType<typeof createChecking>
