import { print, printJson } from '../output.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'version',
  group: 'Tools',
  summary: 'the version of Orchub; also --version',
  examples: ['orc --version'],
  async run({ json }) {
    const { VERSION } = await import('../../version.ts')
    if (json) printJson({ version: VERSION, node: process.versions.node })
    else print(VERSION)
    return 0
  },
}
