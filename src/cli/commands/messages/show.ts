import { openClient } from '../../connection/client.ts'
import { table } from '../../output/layout.ts'
import { mailText, shortTime } from '../../output/message-text.ts'
import { plainLine, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'message show',
  summary: 'show one message, each delivery step with its evidence, and what it waits for',
  arguments: [{ name: 'ID' }],
  examples: ['orc message show msg_12'],
  async run({ location, words, json }) {
    const client = await openClient(location)
    const message = await client.message(words[0]!)
    if (json) printJson(message)
    else {
      print(mailText(message))
      print('')
      print(
        table(
          message.steps.map(({ at, state, evidence }) => [shortTime(at), state, plainLine(evidence)]),
          '  ',
        ),
      )
      if (message.waits_for !== undefined) print(`  waits: ${plainLine(message.waits_for)}`)
    }
    return 0
  },
}
