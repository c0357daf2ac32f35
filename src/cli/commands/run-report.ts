import { openClient } from '../connect.ts'
import { noJson } from '../faults.ts'
import { plain, print, printRaw } from '../output.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'run report',
  group: 'Plans',
  summary: 'what a run came to, so far or in the end: Markdown, or one HTML page',
  arguments: [{ name: 'RUN' }],
  options: [{ name: 'html', summary: 'one page that needs no network and no scripts' }],
  examples: ['orc run report run_1', 'orc run report run_1 --html > report.html'],
  async run({ place, words, flag, json }) {
    if (json) throw noJson('run report', 'orc run show RUN --json has the facts.')
    const client = await openClient(place)
    if (flag('html')) printRaw(await client.runReport(words[0]!, { format: 'html' }))
    else print(plain((await client.runReport(words[0]!)).trimEnd()))
    return 0
  },
}
