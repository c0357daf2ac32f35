import { AppError } from '../../../model/errors.ts'
import { openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { sequenceDiagram } from './sequence-diagram.ts'
import { traceText } from './trace-text.ts'

export const verb: Verb = {
  name: 'trace',
  group: 'Look',
  summary: 'the exact flow of a task and all below it: messages, questions to people, verdicts, attempts',
  arguments: [{ name: 'TASK' }],
  options: [
    { name: 'mermaid', summary: 'as a Mermaid sequence diagram' },
    { name: 'limit', value: 'N', summary: 'at most so many steps (default: 10000)' },
  ],
  examples: ['orc trace task_7', 'orc trace task_7 --mermaid > flow.mmd', 'orc trace task_7 --json'],
  async run({ place, words, flag, option, json }) {
    if (json && flag('mermaid')) {
      throw new AppError('USAGE', '--json and --mermaid do not go together', { hint: 'Keep one of the two.' })
    }
    const limit = option('limit')
    const client = await openClient(place)
    const trace = await client.trace(words[0]!, limit === undefined ? {} : { limit })
    if (json) printJson(trace)
    else print(flag('mermaid') ? sequenceDiagram(trace) : traceText(trace))
    return 0
  },
}
