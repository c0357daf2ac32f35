import { z } from 'zod'
import { excerpt } from '../../base/excerpt.ts'
import { FENCE_RULE, fence } from '../../llm/fence.ts'
import type { ModelCallOptions, ModelFailure, Models, ObjectCall } from '../../llm/llm.ts'
import { type AgentCandidate, matchAgents } from './match-keywords.ts'

export interface SelectedAgents {
  /** Available agents, the most important first; may be empty. */
  readonly ids: readonly string[]
  readonly why: string
  readonly by: 'model' | 'keywords'
  /** Names that the model invented. */
  readonly unknown: readonly string[]
  /** Why the model could not choose. */
  readonly failure?: ModelFailure
}

/** Answer of the model (S2.14). */
const Selection = z.object({
  ids: z
    .array(z.string().max(200))
    .max(500)
    .describe('The ids of the agents that are necessary. May be empty.'),
  why: z.string().trim().min(1).max(2000).describe('Why these, in one to three sentences.'),
})

const MAX_QUOTED = { task: 20_000, candidates: 60_000 }

const SYSTEM = [
  'You choose which agents of a team are needed for a task. Choose only agents that are NECESSARY, never all of them to',
  'be on the safe side; one is better than two if one is enough. If none fits, choose nobody. Use the ids as given.',
  FENCE_RULE,
].join('\n')

function selectPrompt(
  task: string,
  available: readonly AgentCandidate[],
): Pick<ObjectCall, 'system' | 'prompt'> {
  const listed = available.map(({ id, role, capabilities }) =>
    JSON.stringify({ id, ...(role === undefined ? {} : { role }), capabilities }),
  )
  const prompt = [
    'The task:',
    fence('task', excerpt(task, MAX_QUOTED.task)),
    'The available agents, one per line:',
    fence('agents', excerpt(listed.join('\n'), MAX_QUOTED.candidates)),
    'Which of them are necessary for this task?',
  ].join('\n\n')
  return { system: SYSTEM, prompt }
}

/** Chooses the agents that a task needs, by a model, or by keywords without a model or if it fails. */
export async function selectAgents(
  models: Models | undefined,
  model: string | undefined,
  { task, available }: { task: string; available: readonly AgentCandidate[] },
  options: ModelCallOptions = {},
): Promise<SelectedAgents> {
  if (available.length === 0) return { ids: [], why: 'No agent is available.', by: 'keywords', unknown: [] }
  if (model === undefined || models === undefined)
    return { ...matchAgents(task, available), by: 'keywords', unknown: [] }
  const answer = await models.generateObject({
    model,
    schema: Selection,
    purpose: 'select',
    ...selectPrompt(task, available),
    ...options,
  })
  if (!answer.ok) {
    const { ids, why } = matchAgents(task, available)
    const note = `The model could not choose (${answer.message}), so agents were chosen by keywords. ${why}`
    return { ids, why: note, by: 'keywords', unknown: [], failure: answer }
  }
  const { ids, why } = answer.value
  const known = new Map(available.map(({ id }) => [id.toLowerCase(), id]))
  const found = ids.map((id) => known.get(id.trim().toLowerCase()))
  return {
    ids: [...new Set(found.filter((id) => id !== undefined))],
    why,
    by: 'model',
    unknown: ids.filter((_, index) => found[index] === undefined),
  }
}
