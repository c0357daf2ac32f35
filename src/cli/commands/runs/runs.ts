import { MESSAGE_TYPES } from '../../../runs/plan.ts'
import { openClient, reachRuns } from '../../connection/client.ts'
import { noJson } from '../../errors.ts'
import { plain, print, printRaw } from '../../output/print.ts'
import { readText } from '../../standard-input.ts'
import type { Verb } from '../../verb.ts'
import { runSummary, runsText } from './run-text.ts'

export const list: Verb = {
  name: 'run list',
  summary: 'list runs and their progress, oldest first',
  options: [
    { name: 'open', summary: 'only runs that have not ended' },
    { name: 'limit', value: 'N', summary: 'only the newest N runs (default: 50)' },
  ],
  examples: ['orc run list', 'orc run list --open', 'orc run list --limit 5 --json'],
  async run({ location, flag, given, showAll }) {
    const query = { state: flag('open') ? 'open' : 'all', ...given('limit') } as const
    const { runs } = await reachRuns(
      location,
      (client) => client.runs(query),
      (stored) => stored.list(query),
    )
    return showAll(runs, runsText, flag('open') ? 'There are no open runs.' : 'No runs yet.')
  },
}

export const show: Verb = {
  name: 'run show',
  summary: 'show one run: the state of each agent and what it waits for',
  arguments: [{ name: 'RUN' }],
  examples: ['orc run show run_1', 'orc run show run_1 --json'],
  async run({ location, words, show }) {
    const id = words[0]!
    const run = await reachRuns(
      location,
      (client) => client.run(id),
      (stored) => stored.show(id),
    )
    return show(run, () => runSummary(run))
  },
}

export const report: Verb = {
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

export const send: Verb = {
  name: 'run send',
  summary: 'send a message to an agent of a run; - reads standard input',
  details:
    "Writes a numbered file to the run's messages/ folder. If the agent has a mailbox, it also gets the message there.\n" +
    'The plan must set messages: true.',
  arguments: [{ name: 'RUN' }, { name: 'AGENT' }, { name: 'TEXT', rest: true }],
  options: [
    {
      name: 'type',
      value: 'TYPE',
      summary: `${MESSAGE_TYPES.join(', ')} (default: update)`,
      choices: MESSAGE_TYPES,
    },
  ],
  examples: [
    'orc run send run_1 writer "Leave out the appendix."',
    'orc run send run_1 writer - --type answer < a.txt',
  ],
  async run({ location, words, option, show }) {
    const [id, to, ...text] = words
    const content = await readText(text)
    const type = (option('type') ?? 'update') as (typeof MESSAGE_TYPES)[number]
    const client = await openClient(location)
    const answer = await client.sendToRun(id!, { to: to!, type, content })
    return show(answer, () => `messages/${answer.file}`)
  },
}

export const cancel: Verb = {
  name: 'run cancel',
  summary: 'cancel a run and stop its active agents; orc run --resume continues it',
  arguments: [{ name: 'RUN' }],
  options: [{ name: 'reason', value: 'TEXT', summary: 'the reason, for the audit log' }],
  examples: ['orc run cancel run_1', 'orc run cancel run_1 --reason "the wrong data"'],
  async run({ location, words, given, show }) {
    const id = words[0]!
    const client = await openClient(location)
    const answer = await client.cancelRun(id, given('reason'))
    return show(answer, () => (answer.cancelled ? `${id} is being cancelled.` : `${id} has already ended.`))
  },
}
