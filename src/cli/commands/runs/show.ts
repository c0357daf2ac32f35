import { reachRuns } from '../../connection/stored-runs.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { runSummary } from './run-text.ts'

export const verb: Verb = {
  name: 'run show',
  summary: 'show one run: the state of each agent and what it waits for',
  arguments: [{ name: 'RUN' }],
  examples: ['orc run show run_1', 'orc run show run_1 --json'],
  async run({ location, words, json }) {
    const id = words[0]!
    const run = await reachRuns(
      location,
      (client) => client.run(id),
      (stored) => stored.show(id),
    )
    if (json) printJson(run)
    else print(runSummary(run))
    return 0
  },
}
