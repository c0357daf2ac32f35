import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Result } from '../../model/run.ts'
import { htmlReport } from '../../runs/html.ts'
import { markdownReport } from '../../runs/markdown.ts'
import { reportOf as reportOfRun } from '../../runs/report.ts'
import { removeFolder } from '../../workspaces/folder.ts'
import { copyOutbox, writeOutbox } from '../../workspaces/keep-outputs.ts'
import { DEFAULT_LIMITS } from '../../workspaces/limits.ts'
import type { Outcome } from '../../workspaces/problem.ts'
import { outputsOf, reportOf, workspaceOf } from '../run-place.ts'
import type { Driver } from './driver.ts'
import type { ValidatedOutputs } from './validated-outputs.ts'

/** What of this round is in `_outputs`, or on its way there. */
interface Collected {
  /** The outputs of the round before are gone. */
  readonly ready: Promise<void>
  readonly copies: Map<string, Promise<void>>
  readonly references: object[]
}

/** The outputs of all who completed side by side, and the report in both forms. After a crash it is simply done again. */
export function createReporting(validated: ValidatedOutputs) {
  const known = new WeakMap<Driver, Collected>()

  function collectedOf(driver: Driver, signal: AbortSignal): Collected {
    const before = known.get(driver)
    if (before !== undefined) return before
    const ready = removeFolder(outputsOf(driver.place), signal)
    ready.catch(() => known.delete(driver))
    const collected = { ready, copies: new Map(), references: [] }
    known.set(driver, collected)
    return collected
  }

  function collect(driver: Driver, name: string, signal: AbortSignal): Promise<void> {
    const collected = collectedOf(driver, signal)
    const { state, result } = driver.run.nodes.get(name)!
    if (state !== 'completed' || result === null) return collected.ready
    const underWay = collected.copies.get(name) ?? copy(driver, name, result, collected, signal)
    collected.copies.set(name, underWay)
    return underWay
  }

  async function copy(
    driver: Driver,
    name: string,
    result: Result,
    { ready, references }: Collected,
    signal: AbortSignal,
  ): Promise<void> {
    await ready
    const outputs = validated.of(driver, name, result.outputsHash)
    const to = join(outputsOf(driver.place), name)
    const copied =
      outputs === undefined
        ? await copyFromOutbox(driver, name, to, result, references, signal)
        : await writeOutbox(outputs, to, signal)
    if (!copied.ok) driver.note(name, `its outputs are not in _outputs: ${copied.problems[0]!.message}`)
  }

  async function copyFromOutbox(
    driver: Driver,
    name: string,
    to: string,
    result: Result,
    references: object[],
    signal: AbortSignal,
  ): Promise<Outcome<unknown>> {
    const workspace = workspaceOf(driver.place, name)
    const missing = new Map(result.outputs.map(({ path, sha256 }) => [path, sha256]))
    const other: string[] = []
    const copied = await copyOutbox(workspace, to, {
      limits: DEFAULT_LIMITS,
      signal,
      copied(path, sha256) {
        if (missing.get(`outbox/${path}`) !== sha256) other.push(path)
        missing.delete(`outbox/${path}`)
      },
      stays(path) {
        missing.delete(`outbox/${path}`)
        const made = result.outputs.find((one) => one.path === `outbox/${path}`)
        references.push({
          path: join(workspace, 'outbox', path),
          size: made?.bytes,
          sha256: made?.sha256,
          instead_of: `${name}/${path}`,
        })
      },
    })
    if (!copied.ok) return copied
    other.push(...[...missing.keys()].map((path) => path.slice('outbox/'.length)))
    if (other.length > 0) {
      const shown = other.sort().slice(0, 10).join(', ')
      driver.note(name, `what is in _outputs/${name} is not what was validated: ${shown}`)
    }
    return copied
  }

  return {
    /** While others work, so that less is left for the end. */
    collect,
    async write(driver: Driver, now: number, signal: AbortSignal): Promise<void> {
      const { run, place } = driver
      mkdirSync(place, { recursive: true })
      for (const name of run.nodes.keys()) await collect(driver, name, signal)
      const { references } = collectedOf(driver, signal)
      // No agent has a name with a dot.
      if (references.length > 0) {
        replace(join(outputsOf(place), 'references.json'), `${JSON.stringify({ references }, null, 2)}\n`)
      }
      const report = reportOfRun(run, now)
      replace(reportOf(place, 'md'), markdownReport(report))
      replace(reportOf(place, 'html'), htmlReport(report))
    },
  }
}

function replace(file: string, text: string) {
  writeFileSync(`${file}.tmp`, text)
  renameSync(`${file}.tmp`, file)
}
