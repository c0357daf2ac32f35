/** Compares the door, with rules, idempotency, audit and disk, with the server around it. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDaemon } from '../tests/fakes/daemon.ts'
import { load, perSecond } from './load.ts'
import { type Figure, median } from './report.ts'

const CONFIG = `
agents: { Master: {}, Worker: { parent: Master }, Reviewer: { parent: Master } }
rules: { preset: tree, forbid: [{ from: Reviewer, to: Worker, reason: bench }] }
limits: { rate: off }
`
const OUTSTANDING = 100
const ROUNDS = 5

/** Writes and syncs one page, the least that a commit does. */
function syncTime(folder: string): number {
  const file = openSync(join(folder, 'sync'), 'w')
  const page = Buffer.alloc(4096)
  const times = Array.from({ length: 300 }, () => {
    const startedAt = performance.now()
    writeSync(file, page)
    fdatasyncSync(file)
    return performance.now() - startedAt
  })
  closeSync(file)
  return median(times)
}

/** Sends one byte over loopback and back. */
async function roundTripTime(): Promise<number> {
  const server = createServer((socket) => void socket.setNoDelay(true).pipe(socket)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1').setNoDelay(true)
  await new Promise((resolve) => socket.once('connect', resolve))
  const times: number[] = []
  for (let count = 0; count < 1000; count++) {
    const startedAt = performance.now()
    socket.write('x')
    await new Promise((resolve) => socket.once('data', resolve))
    times.push(performance.now() - startedAt)
  }
  socket.destroy()
  server.close()
  return median(times)
}

export async function runDoorBench(): Promise<Figure[]> {
  const daemon = await createDaemon(CONFIG)
  const scratch = mkdtempSync(join(tmpdir(), 'orchub-door-'))
  try {
    await daemon.start()
    const port = Number(new URL(daemon.url).port)
    const token = await daemon.token('Master')
    const common = { port, token, outstanding: OUTSTANDING, batch: 1 }
    const commands = '/api/v1/commands'
    const none = { ...common, path: commands, batch: 0 }
    const rates = { none: [] as number[], single: [] as number[], array: [] as number[] }
    const alone: number[] = []
    const floors: number[] = []
    await load({ ...common, path: commands, count: 10_000, run: 'warm-up' })
    await load({ ...none, count: 10_000, run: 'warm-up' })
    // Alternate, so that other load on the machine affects all of them.
    for (let round = 0; round < ROUNDS; round++) {
      const run = `round${round}`
      rates.none.push((await load({ ...none, count: 30_000, run })).rate)
      rates.single.push((await load({ ...common, path: commands, count: 20_000, run })).rate)
      rates.array.push(
        100 *
          (await load({ ...common, path: commands, outstanding: 4, batch: 100, count: 400, run: `${run}a` }))
            .rate,
      )
      floors.push(syncTime(scratch) + (await roundTripTime()))
      alone.push((await load({ ...common, path: commands, outstanding: 1, count: 1000, run: `${run}s` })).p50)
    }
    const [floorRate, single, array] = [median(rates.none), median(rates.single), median(rates.array)]
    const [p50, floor] = [median(alone), median(floors)]
    return [
      {
        name: 'durable commands over HTTP, 100 outstanding',
        baseline: 'an empty array of commands, same server',
        ratio: single / floorRate,
        target: { atLeast: 0.5 },
        note: `${perSecond(single)}, ${perSecond(floorRate)}`,
      },
      {
        name: 'one command at a time, p50',
        baseline: 'one fdatasync + one loopback round trip',
        ratio: p50 / floor,
        target: { atMost: 3 },
        note: `${p50.toFixed(2)} ms, ${floor.toFixed(2)} ms`,
      },
      {
        name: 'commands in arrays of 100',
        baseline: 'single commands, one at a time',
        ratio: array / (1000 / p50),
        target: { atLeast: 5 },
        note: `${perSecond(array)}, ${perSecond(1000 / p50)}`,
      },
      {
        name: 'commands in arrays of 100',
        baseline: 'single commands, 100 outstanding',
        ratio: array / single,
        target: { atLeast: 5 },
        note: `${perSecond(array)}, ${perSecond(single)}`,
      },
    ]
  } finally {
    await daemon.close()
    rmSync(scratch, { recursive: true, force: true })
  }
}
