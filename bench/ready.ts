/** Does the service start as fast, and stay as small, with a million stored messages as with none? */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readTeam, startOrchub } from '../src/main.ts'
import { freePort } from '../tests/fakes/daemon.ts'
import { type Figure, median } from './report.ts'

const CONFIG = 'agents: { Master: {}, Worker: { parent: Master } }\nlimits: { rate: off }\n'
const RUNS = 7

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-ready-'))
  writeFileSync(join(folder, 'orc.yaml'), CONFIG)
  return folder
}

async function fill(folder: string, messages: number) {
  const loaded = readTeam(join(folder, 'orc.yaml'))
  if (!loaded.ok) throw new Error('the configuration of the bench is wrong')
  const orchub = await startOrchub({ config: loaded.value.config, port: 0 })
  const wave = 2000
  for (let sent = 0; sent < messages; sent += wave) {
    await Promise.all(
      Array.from({ length: Math.min(wave, messages - sent) }, (_, index) =>
        orchub.engine.handle(
          { kind: 'agent', agent: 'Master' },
          {
            type: 'send_message',
            fields: { to: 'Worker', title: 'bench', content: `message ${sent + index}` },
          },
        ),
      ),
    )
  }
  await orchub.close()
}

/** Milliseconds from the start of the process to its first answer, and its resident memory then. */
async function measure(folder: string): Promise<{ ready: number; memory: number }> {
  const port = await freePort()
  const startedAt = performance.now()
  const entry = join(import.meta.dirname, '..', 'src', 'cli', 'main.ts')
  const child = spawn(
    process.execPath,
    [entry, 'serve', '--config', join(folder, 'orc.yaml'), '--port', String(port)],
    {
      stdio: 'ignore',
      env: { ...process.env, NODE_COMPILE_CACHE: join(import.meta.dirname, '..', '.cache', 'bench') },
    },
  )
  try {
    while (!(await isUp(port))) await new Promise((resolve) => setTimeout(resolve, 2))
    const ready = performance.now() - startedAt
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    return { ready, memory: Number(/VmRSS:\s+(\d+)/.exec(status)![1]) }
  } finally {
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('exit', resolve))
  }
}

async function isUp(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/healthz`)).ok
  } catch {
    return false
  }
}

export async function runReadyBench(messages = 1_000_000): Promise<Figure[]> {
  const empty = makeFolder()
  const full = makeFolder()
  try {
    await fill(empty, 0)
    await fill(full, messages)
    const figures: Record<string, { ready: number; memory: number }[]> = { [empty]: [], [full]: [] }
    // Alternate, so that other load on the machine affects both.
    for (let run = 0; run < RUNS; run++)
      for (const folder of [empty, full]) figures[folder]!.push(await measure(folder))
    const of = (folder: string, what: 'ready' | 'memory') => median(figures[folder]!.map((one) => one[what]))
    const count = messages.toLocaleString('en')
    return [
      {
        name: `ready with ${count} stored messages`,
        baseline: 'ready with none',
        ratio: of(full, 'ready') / of(empty, 'ready'),
        target: { atMost: 1.3 },
        note: `${of(full, 'ready').toFixed(0)} ms, ${of(empty, 'ready').toFixed(0)} ms`,
      },
      {
        name: `resident memory with ${count} stored messages`,
        baseline: 'with none',
        ratio: of(full, 'memory') / of(empty, 'memory'),
        target: { atMost: 1.2 },
        note: `${(of(full, 'memory') / 1024).toFixed(0)} MiB, ${(of(empty, 'memory') / 1024).toFixed(0)} MiB`,
      },
    ]
  } finally {
    for (const folder of [empty, full]) rmSync(folder, { recursive: true, force: true })
  }
}
