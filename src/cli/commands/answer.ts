import { readInput } from '../input.ts'
import type { Verb } from '../verb.ts'
import { giveVerdict } from '../verdict.ts'

export const verb: Verb = {
  name: 'answer',
  group: 'People',
  summary: 'answer a question that an agent asked; - reads the answer from standard input',
  arguments: [{ name: 'ID' }, { name: 'TEXT', rest: true }],
  examples: ['orc answer req_4 "Use the second one."', 'orc answer req_4 - < answer.txt'],
  async run(invocation) {
    const [id, ...text] = invocation.words
    const comment = text.length === 1 && text[0] === '-' ? await readInput() : text.join(' ')
    return await giveVerdict(invocation, id!, { decision: 'answer', comment })
  },
}
