import { AppError } from '../../../base/errors.ts'
import { openClient } from '../../connection/client.ts'
import { plain, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'logs',
  summary: "print the last lines of an agent's terminal",
  arguments: [{ name: 'AGENT' }],
  options: [{ name: 'lines', short: 'n', value: 'N', summary: 'number of lines (default: 200)' }],
  examples: ['orc logs Worker', 'orc logs Worker -n 20', 'orc logs Worker --json'],
  async run({ location, words, option, json }) {
    const lines = Number(option('lines') ?? 200)
    if (!Number.isInteger(lines) || lines < 1 || lines > 10_000) {
      throw new AppError('USAGE', `"${option('lines')}" is not a valid number of lines`, {
        hint: 'Use a number from 1 to 10000.',
      })
    }
    const client = await openClient(location)
    const { view: _, ...about } = await client.terminal(words[0]!, { lines })
    if (json) printJson(about)
    else print(plain(about.screen))
    return 0
  },
}
