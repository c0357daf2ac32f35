import { openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'service go',
  summary: 'resume everything after `orc service halt`',
  details:
    'Deliveries resume, timers continue with the time they had left, and Orchub notifies agents it interrupted or refused.',
  examples: ['orc service go', 'orc service go --json'],
  async run({ location, json }) {
    const client = await openClient(location)
    const answer = await client.go()
    if (json) printJson(answer)
    else if (answer.halt === undefined) print('Orchub was not halted.')
    else {
      const told = answer.told.length === 0 ? '' : ` Notified: ${answer.told.join(', ')}.`
      print(`Work resumes after ${lasted(answer.lasted_seconds ?? 0)}.${told}`)
    }
    return 0
  },
}

function lasted(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
