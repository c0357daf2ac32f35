/** Compares the time of `orc send-message` with that of node doing nothing. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createDaemon } from '../tests/fakes/daemon.ts'
import { type Figure, median } from './report.ts'

const ROOT = join(import.meta.dirname, '..')
const RUNS = 60

function time(command: string, args: readonly string[], cwd: string): number {
  const startedAt = performance.now()
  const { status, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`)
  return performance.now() - startedAt
}

export async function runStartBench(): Promise<Figure[]> {
  const daemon = await createDaemon(
    'agents: { Master: {}, Worker: { parent: Master } }\nlimits: { rate: off }\n',
  )
  await daemon.start()
  try {
    const orc = join(ROOT, 'orc')
    const send = [
      'send-message',
      '--from',
      'Master',
      '--to',
      'Worker',
      '--title',
      'bench',
      'How long does this take?',
    ]
    const sends: number[] = []
    const nothings: number[] = []
    time(orc, send, daemon.folder)
    for (let run = 0; run < RUNS; run++) {
      nothings.push(time(process.execPath, ['-e', '0'], daemon.folder))
      sends.push(time(orc, send, daemon.folder))
    }
    return [
      {
        name: '`orc send-message` to a running service',
        baseline: '`node -e 0`, the same Node',
        ratio: median(sends) / median(nothings),
        target: { atMost: 1.5 },
        note: `${median(sends).toFixed(0)} ms, ${median(nothings).toFixed(0)} ms`,
      },
    ]
  } finally {
    await daemon.close()
  }
}
