import { reachRuns } from '../../connection/stored-runs.ts'
import { complain, paint, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { runsText } from './run-text.ts'

export const verb: Verb = {
  name: 'runs',
  group: 'Plans',
  summary: 'the runs, oldest first, and how far each is',
  options: [
    { name: 'open', summary: 'only those that have not ended' },
    { name: 'limit', value: 'N', summary: 'at most so many, the newest (default: 50)' },
  ],
  examples: ['orc runs', 'orc runs --open', 'orc runs --limit 5 --json'],
  async run({ place, flag, option, json }) {
    const limit = option('limit')
    const query = { state: flag('open') ? 'open' : 'all', ...(limit === undefined ? {} : { limit }) } as const
    const { runs } = await reachRuns(
      place,
      (client) => client.runs(query),
      (stored) => stored.list(query),
    )
    if (json) for (const run of runs) printJson(run)
    else if (runs.length > 0) print(runsText(runs))
    else complain(paint('dim', flag('open') ? 'No run is open.' : 'There are no runs.', 'err'))
    return 0
  },
}
