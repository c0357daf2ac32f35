import { type ClientContext, methods } from '@agentclientprotocol/sdk'
import { z } from 'zod'

const option = z.object({ value: z.string() })
const Offer = z.object({
  configOptions: z
    .array(
      z.object({
        id: z.string(),
        category: z.string().nullish(),
        type: z.string().nullish(),
        options: z.array(z.union([option, z.object({ options: z.array(option) })])).nullish(),
      }),
    )
    .nullish()
    .catch(undefined),
  modes: z
    .object({ availableModes: z.array(z.object({ id: z.string() })) })
    .nullish()
    .catch(undefined),
  // From before models became options; Gemini still uses it.
  models: z
    .object({ availableModels: z.array(z.object({ modelId: z.string() })) })
    .nullish()
    .catch(undefined),
})

export interface SessionOption {
  readonly category: 'mode' | 'model'
  readonly value: string
  /** Named in the settings: fail if the agent does not offer it. */
  readonly isWanted: boolean
}

/** Sets an option named in the settings, out of those the agent offered when the session was opened. */
export async function setSessionOption(
  agent: ClientContext,
  sessionId: string,
  opened: unknown,
  { category, value, isWanted }: SessionOption,
): Promise<void> {
  const ways = waysTo(category, Offer.safeParse(opened).data ?? {})
  const way = ways.find(({ values }) => values.includes(value))
  if (way !== undefined) return void (await way.set(agent, sessionId, value))
  if (!isWanted) return
  const offered = ways.flatMap(({ values }) => values)
  throw new Error(
    offered.length === 0
      ? `it offers no choice of ${category}, but the settings have ${value}`
      : `it has no ${category} ${value}; it offers ${offered.slice(0, 20).join(', ')}`,
  )
}

interface OptionSetter {
  readonly values: readonly string[]
  set(agent: ClientContext, sessionId: string, value: string): Promise<unknown>
}

function waysTo(category: SessionOption['category'], offer: z.output<typeof Offer>): OptionSetter[] {
  const ways: OptionSetter[] = []
  for (const { id, category: itsCategory, options } of offer.configOptions ?? []) {
    if (itsCategory !== category || options == null) continue
    ways.push({
      values: options.flatMap((entry) =>
        'value' in entry ? [entry.value] : entry.options.map((each) => each.value),
      ),
      set: (agent, sessionId, value) =>
        agent.request(methods.agent.session.setConfigOption, { sessionId, configId: id, value }),
    })
  }
  if (category === 'mode' && offer.modes != null) {
    ways.push({
      values: offer.modes.availableModes.map((mode) => mode.id),
      set: (agent, sessionId, modeId) => agent.request(methods.agent.session.setMode, { sessionId, modeId }),
    })
  }
  if (category === 'model' && offer.models != null) {
    ways.push({
      values: offer.models.availableModels.map((model) => model.modelId),
      set: (agent, sessionId, modelId) => agent.request('session/set_model', { sessionId, modelId }),
    })
  }
  return ways
}
