import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { htmlReport } from '../../runs/html.ts'
import { markdownReport } from '../../runs/markdown.ts'
import { reportOf as reportOfRun } from '../../runs/report.ts'
import { removeFolder } from '../../workspaces/folder.ts'
import { copyOutbox } from '../../workspaces/keep-outputs.ts'
import { DEFAULT_LIMITS } from '../../workspaces/limits.ts'
import { outputsOf, reportOf, workspaceOf } from '../run-place.ts'
import type { Driver } from './driver.ts'

/** The outputs of all who completed side by side, and the report in both forms. After a crash it is simply done again. */
export async function writeReport(driver: Driver, now: number, signal: AbortSignal): Promise<void> {
  const { run, place } = driver
  mkdirSync(place, { recursive: true })
  const target = outputsOf(place)
  await removeFolder(target, signal)
  for (const { name, state, result } of run.nodes.values()) {
    if (state !== 'completed' || result === null) continue
    const copied = await copyOutbox(workspaceOf(place, name), join(target, name), {
      limits: DEFAULT_LIMITS,
      signal,
    })
    if (!copied.ok) driver.note(name, `its outputs are not in _outputs: ${copied.problems[0]!.message}`)
  }
  const report = reportOfRun(run, now)
  replace(reportOf(place, 'md'), markdownReport(report))
  replace(reportOf(place, 'html'), htmlReport(report))
}

function replace(file: string, text: string) {
  writeFileSync(`${file}.tmp`, text)
  renameSync(`${file}.tmp`, file)
}
