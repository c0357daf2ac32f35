import type { AnswerOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import { openClientIfRunning } from '../../connection/client.ts'
import { loadTeam } from '../../connection/offline.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'agent prompt',
  summary: 'print the text that teaches an agent the protocol',
  details:
    'Asks the running service, which knows the commands its application adds; without one, reads orc.yaml.',
  arguments: [{ name: 'AGENT' }],
  examples: ['orc agent prompt Worker', 'orc agent prompt Worker >> CLAUDE.md'],
  async run({ words, location, json }) {
    const answer = (await askPrompt(location, words[0]!)) ?? (await readPrompt(location, words[0]!))
    if (json) printJson(answer)
    else print(answer.prompt)
    return 0
  },
}

type PromptAnswer = AnswerOf<'prompt'>

async function askPrompt(location: TeamLocation, name: string): Promise<PromptAnswer | undefined> {
  const client = await openClientIfRunning(location)
  return await client?.prompt(name).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'SERVICE_UNREACHABLE') return undefined
    throw error
  })
}

async function readPrompt(location: TeamLocation, name: string): Promise<PromptAnswer> {
  const config = await loadTeam(location)
  const [{ unknownAgent }, { renderPrompt }, { createTeam }, { createRegistry }, { CONFIDENTIAL_PROMPT }] =
    await Promise.all([
      import('../../../commands/identity.ts'),
      import('../../../agents/agents.ts'),
      import('../../../commands/team.ts'),
      import('../../../protocol/registry.ts'),
      import('../../../github/terms.ts'),
    ])
  const team = createTeam(config)
  const agent = team.resolve(name)
  if (agent === undefined) {
    throw unknownAgent(team, name)
  }
  const notes = team.isConfidential(agent) ? CONFIDENTIAL_PROMPT : []
  return { agent, prompt: renderPrompt(agent, team, createRegistry(), { notes }) }
}
