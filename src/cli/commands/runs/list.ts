import { reachRuns } from '../../connection/stored-runs.ts'
import { complain, paint, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { runsText } from './run-text.ts'

export const verb: Verb = {
  name: 'run list',
  summary: 'list runs and their progress, oldest first',
  options: [
    { name: 'open', summary: 'only runs that have not ended' },
    { name: 'limit', value: 'N', summary: 'only the newest N runs (default: 50)' },
  ],
  examples: ['orc run list', 'orc run list --open', 'orc run list --limit 5 --json'],
  async run({ location, flag, option, json }) {
    const limit = option('limit')
    const query = { state: flag('open') ? 'open' : 'all', ...(limit === undefined ? {} : { limit }) } as const
    const { runs } = await reachRuns(
      location,
      (client) => client.runs(query),
      (stored) => stored.list(query),
    )
    if (json) for (const run of runs) printJson(run)
    else if (runs.length > 0) print(runsText(runs))
    else complain(paint('dim', flag('open') ? 'There are no open runs.' : 'No runs yet.', 'err'))
    return 0
  },
}
