import { noJson } from '../../errors.ts'
import { ifTaken, print } from '../../output/print.ts'
import { watchStopSignal } from '../../signals.ts'
import type { Verb } from '../../verb.ts'
import { startDemo } from './start-demo.ts'

export const verb: Verb = {
  name: 'demo',
  group: 'Run',
  summary: 'watch a small built-in team at work; needs no key and no network',
  examples: ['orc demo'],
  async run({ json }) {
    if (json) throw noJson('demo', 'While it runs: ORC_HOME=.orc/demo orc audit --follow --json')
    // A reader that leaves (`| head`) must not break what commits are doing.
    const write = (line: string) => ifTaken(() => print(line))
    const signal = watchStopSignal()
    const demo = await startDemo({ folder: process.cwd(), write })
    const wanted = await Promise.race([signal.promise.then(() => 'end' as const), demo.stopAsked])
    await demo.close(wanted)
    return 0
  },
}
