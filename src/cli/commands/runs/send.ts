import { MESSAGE_TYPES } from '../../../runs/plan.ts'
import { openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import { readInput } from '../../standard-input.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'run send',
  summary: 'send a message to an agent of a run; - reads standard input',
  details:
    "Writes a numbered file to the run's messages/ folder, and delivers it if the agent has a mailbox.",
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
  async run({ location, words, option, json }) {
    const [id, to, ...text] = words
    const content = text.length === 1 && text[0] === '-' ? await readInput() : text.join(' ')
    const type = (option('type') ?? 'update') as (typeof MESSAGE_TYPES)[number]
    const client = await openClient(location)
    const answer = await client.sendToRun(id!, { to: to!, type, content })
    if (json) printJson(answer)
    else print(`messages/${answer.file}`)
    return 0
  },
}
