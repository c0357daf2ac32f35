/**
 * npm run bench [scan|door|delegation|start|ready|runs|room|github …]: ratios measured in one run against named baselines. `--write` also
 * puts them into bench/RESULTS.md, with the machine named.
 */
import { writeFileSync } from 'node:fs'
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
const sections: string[] = []
for (const name of names) {
  const bench = BENCHES[name]
  if (bench === undefined) throw new Error(`no bench ${name}; there are ${Object.keys(BENCHES).join(', ')}`)
  const section = `## ${name}\n\n${asTable(await bench())}\n`
  console.log(`\n${section}`)
  sections.push(section)
}
if (process.argv.includes('--write')) {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, ${process.platform}`
  const head = `# Measured\n\nRatios of one run of \`npm run bench -- --write\` on ${machine}. Absolute figures in the last column are of that run only.\n`
  writeFileSync(join(import.meta.dirname, 'RESULTS.md'), [head, ...sections].join('\n'))
}
