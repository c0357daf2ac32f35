import { openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'go',
  group: 'Run',
  summary: 'let everything go on after `orc stop --all`',
  details:
    'Deliveries flow, clocks go on with the time they had left, and agents that were interrupted or refused are told.',
  examples: ['orc go', 'orc go --json'],
  async run({ place, json }) {
    const client = await openClient(place)
    const answer = await client.go()
    if (json) printJson(answer)
    else if (answer.halt === undefined) print('Nothing was stopped.')
    else {
      const told = answer.told.length === 0 ? '' : ` Told to go on: ${answer.told.join(', ')}.`
      print(`Everything goes on, after ${lasted(answer.lasted_seconds ?? 0)}.${told}`)
    }
    return 0
  },
}

function lasted(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
