/**
 * npm run bench:delivery [-- --quick] [--only NAME …] [--write]: measures messages from one agent to another
 * through the whole product. NAME is raw, panes, or an agent program such as codex. `--quick` takes about a minute
 * without the programs, for a first look only; `--write` updates docs/delivery.md and keeps the last figures of the
 * parts that didn't run.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { endOnSignals } from './delivery/endings.ts'
import { runPanes } from './delivery/panes.ts'
import { PROGRAMS, runProgram } from './delivery/programs.ts'
import { runRaw } from './delivery/raw.ts'
import { type Measured, renderReport } from './delivery/report.ts'

const ROOT = join(import.meta.dirname, '..')
const KEPT = join(ROOT, '.cache', 'delivery.json')
const FULL = { raw: { deliveries: 10_000, polls: 150 }, panes: 2000, program: 200 }
const QUICK = { raw: { deliveries: 600, polls: 20 }, panes: 200, program: 25 }

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    write: { type: 'boolean', default: false },
  },
})
const names = ['raw', 'panes', ...PROGRAMS.map((one) => one.agent)]
const unknown = values.only.filter((name) => !names.includes(name as never))
if (unknown.length > 0) throw new Error(`no part ${unknown.join(', ')}; there are ${names.join(', ')}`)
// The programs alone take minutes to start and stop.
const wanted = values.only.length > 0 ? values.only : values.quick ? ['raw', 'panes'] : names
const size = values.quick ? QUICK : FULL

endOnSignals()
const loads: Record<string, readonly [number, number]> = {}
const measured: Measured = { programs: {}, loads }
if (wanted.includes('raw')) measured.raw = await withLoad('raw', () => runRaw(size.raw))
if (wanted.includes('panes')) {
  measured.panes = await withLoad('panes', () => runPanes({ panes: 100, deliveries: size.panes }))
}
for (const which of PROGRAMS) {
  if (!wanted.includes(which.agent)) continue
  measured.programs[which.agent] = await withLoad(which.agent, () => runProgram(which, size.program))
}
measured.machine = describeMachine()

const kept = values.quick ? { programs: {} } : readKept()
const all: Measured = {
  ...kept,
  ...measured,
  programs: { ...kept.programs, ...measured.programs },
  loads: { ...kept.loads, ...loads },
}
if (!values.quick) {
  mkdirSync(dirname(KEPT), { recursive: true })
  writeFileSync(KEPT, JSON.stringify(all))
}
const report = renderReport(values.write ? all : measured)
console.log(`\n${report}`)
if (values.write && !values.quick) writeFileSync(join(ROOT, 'docs', 'delivery.md'), report)

async function withLoad<Result>(part: string, run: () => Promise<Result>): Promise<Result> {
  const before = loadavg()[0]!
  const result = await run()
  loads[part] = [before, loadavg()[0]!]
  return result
}

function readKept(): Measured {
  try {
    return JSON.parse(readFileSync(KEPT, 'utf8')) as Measured
  } catch {
    return { programs: {} }
  }
}

function describeMachine(): string {
  const tmux = execFileSync('tmux', ['-V'], { encoding: 'utf8' }).trim()
  const [{ model }, memory] = [cpus()[0]!, Math.round(totalmem() / 2 ** 30)]
  return `${cpus().length} × ${model.trim()}, ${memory} GiB, ${process.platform}, Node ${process.version}, ${tmux}`
}
