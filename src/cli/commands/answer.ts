import { readInput } from '../input.ts'
import { speak } from '../speak.ts'
import type { Verb } from '../verb.ts'
import { giveVerdict } from '../verdict.ts'

export const verb: Verb = {
  name: 'answer',
  group: 'People',
  summary: 'answer a question: a request to people, or the query of an agent; - reads standard input',
  arguments: [{ name: 'ID' }, { name: 'TEXT', rest: true }],
  options: [
    { name: 'from', value: 'AGENT', summary: 'the agent that answers, when the operator speaks for it' },
  ],
  examples: [
    'orc answer req_4 "Use the second one."',
    'orc answer req_4 - < answer.txt',
    'orc answer msg_12 "Price."',
  ],
  async run(invocation) {
    const [id, ...text] = invocation.words
    const words = text.length === 1 && text[0] === '-' ? await readInput() : text.join(' ')
    if (id!.startsWith('req_')) {
      return await giveVerdict(invocation, id!, { decision: 'answer', comment: words })
    }
    const { configFile } = invocation.place
    const from = invocation.option('from')
    return await speak('answer', [
      ...['--in-response-to', id!],
      ...(from === undefined ? [] : ['--from', from]),
      ...(invocation.json ? ['--json'] : []),
      ...(configFile === undefined ? [] : ['--config', configFile]),
      ...['--', words],
    ])
  },
}
