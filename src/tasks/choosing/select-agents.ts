import { z } from 'zod'
import { excerpt } from '../../base/excerpt.ts'
import { FENCE_RULE, fence } from '../../llm/fence.ts'
import type { ModelCallOptions, ModelFailure, Models, ObjectCall } from '../../llm/llm.ts'
import { type Candidate, matchAgents } from './match-keywords.ts'

export interface Selected {
  /** In the order of importance; of the available ones only. Nobody is a valid answer. */
  readonly ids: readonly string[]
  readonly why: string
  readonly by: 'model' | 'keywords'
  /** What the model named that is not there. */
  readonly unknown: readonly string[]
  /** Why the model that should have decided did not. */
  readonly failure?: ModelFailure
}

/** S2.14, in the seed's words. */
export const Selection = z.object({
  ids: z
    .array(z.string().max(200))
    .max(500)
    .describe('The ids of the agents that are necessary. May be empty.'),
  why: z.string().trim().min(1).max(2000).describe('Why these, in one to three sentences.'),
})

const MOST = { task: 20_000, candidates: 60_000 }

const SYSTEM = [
  'You choose which agents of a team are needed for a task. Choose only those that are NECESSARY, never all of them to',
  'be on the safe side; one is better than two where one will do. If none fits, choose nobody. Use the ids as given.',
  FENCE_RULE,
].join('\n')

export function selectPrompt(
  task: string,
  available: readonly Candidate[],
): Pick<ObjectCall, 'system' | 'prompt'> {
  const listed = available.map(({ id, role, capabilities }) =>
    JSON.stringify({ id, ...(role === undefined ? {} : { role }), capabilities }),
  )
  const prompt = [
    'The task:',
    fence('task', excerpt(task, MOST.task)),
    'The available agents, one a line:',
    fence('agents', excerpt(listed.join('\n'), MOST.candidates)),
    'Which of them are necessary for this task?',
  ].join('\n\n')
  return { system: SYSTEM, prompt }
}

/** Who is needed for a task: a model's choice, or without one (or when it is away) a match of words. */
export async function selectAgents(
  models: Models | undefined,
  model: string | undefined,
  { task, available }: { task: string; available: readonly Candidate[] },
  asking: ModelCallOptions = {},
): Promise<Selected> {
  if (available.length === 0) return { ids: [], why: 'Nobody is available.', by: 'keywords', unknown: [] }
  if (model === undefined || models === undefined)
    return { ...matchAgents(task, available), by: 'keywords', unknown: [] }
  const answer = await models.generateObject({
    model,
    schema: Selection,
    purpose: 'select',
    ...selectPrompt(task, available),
    ...asking,
  })
  if (!answer.ok) {
    const { ids, why } = matchAgents(task, available)
    const note = `The model could not choose (${answer.message}), so words were compared. ${why}`
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
