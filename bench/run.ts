/**
 * npm run bench [scan|door|delegation|start|ready|runs|room|github …]: ratios measured in one run against named baselines. `--write` also
 * puts them into bench/RESULTS.md, with the machine named; parts that were not asked for keep their last figures.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { asTable, type Figure } from './report.ts'

const BENCHES: Record<string, () => Promise<Figure[]>> = {
  scan: async () => (await import('./scan.ts')).runScanBench(),
  door: async () => (await import('./door.ts')).runDoorBench(),
  delegation: async () => (await import('./delegation.ts')).runDelegationBench(),
  start: async () => (await import('./start.ts')).runStartBench(),
  ready: async () => (await import('./ready.ts')).runReadyBench(),
  runs: async () => (await import('./runs.ts')).runRunsBench(),
  room: async () => (await import('./room.ts')).runRoomBench(),
  github: async () => (await import('./github.ts')).runGithubBench(),
}

const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'))
const names = wanted.length === 0 ? Object.keys(BENCHES) : wanted
const RESULTS = join(import.meta.dirname, 'RESULTS.md')
const sections = new Map(readSections())
for (const name of names) {
  const bench = BENCHES[name]
  if (bench === undefined) throw new Error(`no bench ${name}; there are ${Object.keys(BENCHES).join(', ')}`)
  const section = `## ${name}\n\n${asTable(await bench())}\n`
  console.log(`\n${section}`)
  sections.set(name, section)
}
if (process.argv.includes('--write')) {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, ${process.platform}`
  const head = `# Measured\n\nRatios by \`npm run bench -- --write\` on ${machine}. Those of one part are of one run; absolute figures in the last column are of that run only.\n`
  const inOrder = Object.keys(BENCHES).flatMap((name) => sections.get(name) ?? [])
  writeFileSync(RESULTS, [head, ...inOrder].join('\n'))
}

function readSections(): [name: string, section: string][] {
  const parts = readFileSync(RESULTS, 'utf8')
    .split(/^(?=## )/m)
    .slice(1)
  return parts.map((part) => [/^## (\S+)/.exec(part)![1]!, `${part.trimEnd()}\n`])
}
