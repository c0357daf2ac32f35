import { hash, randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import { createKeyedLimiter } from '../../base/keyed-limiter.ts'
import type { Log } from '../../base/log.ts'
import type { Team } from '../../commands/team.ts'
import { endProcesses, readProcesses } from '../../runtimes/processes.ts'
import type { Store } from '../../store/store.ts'
import type { TaskEvent } from '../core/event.ts'
import { findTask } from '../store/tasks.ts'
import type { CheckResult, Findings } from '../task.ts'
import { runCheck } from './check-process.ts'
import { type Check, findCheck, findingsText, resultOf } from './checks.ts'

interface CheckRunnerOptions {
  store: Store
  clock: Clock
  log: Log
  team(): Team
  environment: Readonly<NodeJS.ProcessEnv>
}

interface ClaimChecks {
  task: string
  claim: number
  checks: readonly string[]
}

const GIT_MS = 10_000

/** Runs the checks of claims in the folders of their workers, one claim per folder at a time. */
export function createCheckRunner({ store, clock, log, team, environment }: CheckRunnerOptions) {
  // More test suites in parallel would only slow each other down.
  const limiter = createKeyedLimiter(Math.max(1, Math.floor(availableParallelism() / 2)))
  const prefix = `check-${hash('sha256', team().config.stateFolder).slice(0, 12)}-`
  let leftoversEnded: Promise<void> | undefined

  /** A mark per run, so ending a cancelled run doesn't touch the next one. */
  const newMark = () => `${prefix}${randomBytes(6).toString('hex')}`

  const run = (check: Omit<Check, 'name'>, cwd: string, signal: AbortSignal) =>
    runCheck({ ...check, cwd, environment, mark: newMark() }, clock, signal)

  /** Ends checks that a killed service left running, because the same checks will run again in the same folders. */
  async function endLeftovers() {
    const marks = new Set((await readProcesses()).map(({ mark }) => mark))
    for (const mark of marks) {
      if (mark?.startsWith(prefix)) await endProcesses({ mark })
    }
  }

  /** `begin` is called when the checks leave the queue, and returns whether the claim still waits for them. */
  async function check(
    { task: id, claim, checks: names }: ClaimChecks,
    begin: () => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<TaskEvent | undefined> {
    await leftoversEnded
    const task = await findTask(store, id)
    const folder = team().config.agents.find(({ name }) => name === task?.agent)?.folder
    if (folder === undefined) {
      return { type: 'validation_gave_up', claim, why: 'its worker is no longer in the team' }
    }
    return await limiter.run(folder, async () => {
      if (!(await begin())) return undefined
      const version = await versionOf(folder, signal)
      const checks: CheckResult[] = []
      for (const name of names) {
        const known = findCheck(team().config, name)
        if (known === undefined) {
          return { type: 'validation_gave_up', claim, why: `orc.yaml no longer has a check "${name}"` }
        }
        checks.push(resultOf(known.name, await run(known, folder, signal)))
        if (!checks.at(-1)!.passed) break
      }
      const findings: Findings = { checks, ...version }
      const type = checks.every(({ passed }) => passed) ? 'checks_passed' : 'checks_failed'
      return { type, claim, evidence: findingsText(findings), findings }
    })
  }

  /** The checked commit, if the folder is a git repository. */
  async function versionOf(folder: string, signal: AbortSignal): Promise<Pick<Findings, 'commit' | 'dirty'>> {
    const git = (words: string) => ({ command: `git --no-optional-locks ${words}`, timeoutMs: GIT_MS })
    const head = await run(git('rev-parse HEAD'), folder, signal)
    if (head.exitCode !== 0) return {}
    const status = await run(git('status --porcelain | head -c 1'), folder, signal)
    const isKnown = status.exitCode === 0
    return { commit: head.output.trim(), ...(isKnown && { dirty: status.output.trim() !== '' }) }
  }

  return {
    check,
    /** Called before the first check. */
    begin() {
      leftoversEnded = endLeftovers().catch((error: unknown) =>
        log.error({ err: error }, 'checks of an earlier start could not be ended'),
      )
    },
  }
}

export type CheckRunner = ReturnType<typeof createCheckRunner>
