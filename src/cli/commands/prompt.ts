import { AppError } from '../../model/errors.ts'
import { loadTeam } from '../offline.ts'
import { print, printJson } from '../output.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'prompt',
  group: 'Tools',
  summary: 'the text that teaches an agent the protocol: names, permissions, commands',
  details: 'Read off orc.yaml; no service is needed.',
  arguments: [{ name: 'AGENT' }],
  examples: ['orc prompt Worker', 'orc prompt Worker >> CLAUDE.md'],
  async run({ words, place, json }) {
    const config = await loadTeam(place)
    const [{ renderPrompt }, { createTeam }, { createRegistry }] = await Promise.all([
      import('../../engine/prompt.ts'),
      import('../../engine/team.ts'),
      import('../../model/registry.ts'),
    ])
    const team = createTeam(config)
    const agent = team.resolve(words[0]!)
    if (agent === undefined) {
      throw new AppError('UNKNOWN_AGENT', `Unknown agent: ${words[0]}`, {
        hint: `Valid agents: ${team.names.join(', ')}.`,
      })
    }
    const prompt = renderPrompt(agent, team, createRegistry())
    if (json) printJson({ agent, prompt })
    else print(prompt)
    return 0
  },
}
