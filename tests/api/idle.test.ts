import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { createDaemon, type Daemon } from '../fakes/daemon.ts'

let daemon: Daemon
afterEach(() => daemon.close())

/** How often its main thread has gone to sleep, which is how often it was woken. */
function naps(pid: number): number {
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
}

it.skipIf(!existsSync('/proc/self/status'))(
  'is not woken again and again while nothing happens',
  async () => {
    daemon = await createDaemon('agents: { Master: {}, Worker: {} }')
    await daemon.start()
    const pid = daemon.pid()!
    const counts: number[] = []
    // Wait until the work of the start, such as loading modules, is done.
    for (let second = 0; second < 20 && (counts.at(-1) ?? Number.POSITIVE_INFINITY) > 10; second++) {
      const before = naps(pid)
      await sleep(1000)
      counts.push(naps(pid) - before)
    }
    expect(counts.at(-1), `wakes in each second: ${counts}`).toBeLessThanOrEqual(10)
  },
)
