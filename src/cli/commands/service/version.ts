import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'version',
  summary: 'print the version of Orchub; also --version',
  examples: ['orc --version'],
  async run({ program, json }) {
    const version = await program.version()
    if (json) printJson({ version, node: process.versions.node })
    else print(version)
    return 0
  },
}
