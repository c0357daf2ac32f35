import { reachRuns } from '../../connection/stored-runs.ts'
import { noJson } from '../../errors.ts'
import { plain, print, printRaw } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'run report',
  summary: 'print the report of a run as Markdown or one HTML page',
  arguments: [{ name: 'RUN' }],
  options: [{ name: 'html', summary: 'one HTML page that needs no network and no scripts' }],
  examples: ['orc run report run_1', 'orc run report run_1 --html > report.html'],
  async run({ location, words, flag, json }) {
    if (json) throw noJson('run report', 'orc run show RUN --json has the facts.')
    const id = words[0]!
    const format = flag('html') ? 'html' : 'markdown'
    const report = await reachRuns(
      location,
      (client) => client.runReport(id, { format }),
      (stored) => stored.report(id, format),
    )
    if (flag('html')) printRaw(report)
    else print(plain(report.trimEnd()))
    return 0
  },
}
