import { join } from 'node:path'
import { type Clock, sleep, unlessAborted } from '../base/clock.ts'
import { keepOutbox } from '../workspaces/outbox.ts'
import { removeFolder, replaceFiles } from '../workspaces/workspaces.ts'
import { DISK_FULL, type Driver } from './driver.ts'
import { htmlReport, markdownReport, reportOf } from './report.ts'
import { outputsOf, workspaceOf } from './run-folder.ts'

interface ReportFault {
  /** True: the disk is full, so a retry may help. */
  readonly isFull: boolean
  readonly text: string
}

/** Agents whose outputs in `_outputs` differ from the validated ones or are missing, with the reason. */
type Unconsolidated = Readonly<Record<string, string>>

/** Retry interval while the disk is full. */
const RETRY_MS = 1000
const FULL = `${DISK_FULL}: its outputs and its report wait for free space`

/** Copies the outputs of all completed agents to `_outputs`, and writes the report as Markdown and HTML. Idempotent. */
export function createReportWriter(clock: Clock) {
  /** Undefined: copied, or there are no outputs. Adds references to files that are too large to copy (C21). */
  async function collect(
    driver: Driver,
    name: string,
    references: object[],
    signal: AbortSignal,
  ): Promise<ReportFault | undefined> {
    const { state, result } = driver.run.nodes.get(name)!
    if (state !== 'completed' || result === null) return undefined
    const workspace = workspaceOf(driver.runFolder, name)
    const validated = new Map(result.outputs.map((output) => [output.path.slice('outbox/'.length), output]))
    const missing = new Set(validated.keys())
    const differing: string[] = []
    const large: object[] = []
    const copied = await keepOutbox(
      workspace,
      { parent: outputsOf(driver.runFolder), name },
      {
        signal,
        copied(path, sha256) {
          missing.delete(path)
          if (validated.get(path)?.sha256 !== sha256) differing.push(path)
        },
        stays(path) {
          missing.delete(path)
          const { bytes: size, sha256 } = validated.get(path) ?? {}
          large.push({ path: join(workspace, 'outbox', path), size, sha256, instead_of: `${name}/${path}` })
        },
      },
    )
    if (!copied.ok) {
      const { code, message } = copied.error[0]!
      if (code === 'disk_full') return { isFull: true, text: message }
      return noteFault(driver, name, `its outputs are not in _outputs: ${message}`)
    }
    references.push(...large)
    differing.push(...missing)
    if (differing.length === 0) return undefined
    const shown = differing.sort().slice(0, 10).join(', ')
    return noteFault(driver, name, `_outputs/${name} differs from the validated outputs: ${shown}`)
  }

  /** Retries while the disk is full, and reports that to people. */
  async function untilItFits(
    driver: Driver,
    signal: AbortSignal,
    work: () => Promise<ReportFault | undefined>,
  ): Promise<ReportFault | undefined> {
    try {
      for (;;) {
        const fault = await work()
        if (fault?.isFull !== true) return fault
        driver.setWaitingForDisk(FULL)
        await unlessAborted(sleep(clock, RETRY_MS), signal)
      }
    } finally {
      driver.setWaitingForDisk(undefined)
    }
  }

  /** Throws if the report cannot be written. */
  return async function writeReport(
    driver: Driver,
    now: number,
    signal: AbortSignal,
  ): Promise<Unconsolidated> {
    const { run, runFolder } = driver
    const unconsolidated: Record<string, string> = {}
    const references: object[] = []
    await removeFolder(outputsOf(runFolder), signal)
    for (const name of run.nodes.keys()) {
      const fault = await untilItFits(driver, signal, () => collect(driver, name, references, signal))
      if (fault !== undefined) unconsolidated[name] = fault.text
    }
    const report = reportOf({ ...run, head: { ...run.head, unconsolidated } }, now)
    const files = { 'report.md': markdownReport(report), 'report.html': htmlReport(report) }
    const fault = await untilItFits(driver, signal, () => writeFiles(runFolder, references, files))
    if (fault !== undefined) throw new Error(fault.text)
    return unconsolidated
  }
}

function noteFault(driver: Driver, name: string, text: string): ReportFault {
  driver.note(name, text)
  return { isFull: false, text }
}

async function writeFiles(
  runFolder: string,
  references: readonly object[],
  files: Readonly<Record<string, string>>,
): Promise<ReportFault | undefined> {
  const shown = 'the report'
  const text = `${JSON.stringify({ references }, null, 2)}\n`
  // Cannot collide with the folder of an agent: names of agents have no dot.
  const listed =
    references.length === 0
      ? undefined
      : await replaceFiles(outputsOf(runFolder), { 'references.json': text }, shown)
  const written = listed?.ok === false ? listed : await replaceFiles(runFolder, files, shown)
  if (written.ok) return undefined
  const { code, message } = written.error[0]!
  return { isFull: code === 'disk_full', text: message }
}
