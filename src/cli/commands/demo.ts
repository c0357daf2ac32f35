import { startDemo } from '../demo.ts'
import { print } from '../output.ts'
import { stopSignal } from '../stop-signal.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'demo',
  group: 'Run',
  summary: 'watch a small built-in team at work; needs no key and no network',
  examples: ['orc demo'],
  async run() {
    const colours = process.stdout.isTTY === true && process.env.NO_COLOR === undefined
    const demo = await startDemo({ folder: process.cwd(), write: print, colours })
    await stopSignal()
    print('Stopping …')
    await demo.close()
    return 0
  },
}
