import type { Principal } from '../../base/agent.ts'
import type { Engine } from '../../engine.ts'

/** What a client puts before its model: how the tools stand to the rest, then what `orc prompt AGENT` says. */
export function instructionsFor(engine: Engine, principal: Principal): string {
  if (principal.kind !== 'agent') return FOR_OPERATOR
  const prompt = engine.prompt(principal.agent)
  return prompt === undefined ? TOOLS : `${TOOLS}\n\n${prompt}`
}

const TOOLS =
  'The tools of this server are the commands of Orchub. To call one is the same as to write it into your answer: ' +
  'do one or the other, not both. You are known by your token, so that you need not say who you are.'

const FOR_OPERATOR =
  'The tools of this server are the commands of Orchub, the engine for a team of agents. You speak as the ' +
  'operator: name an agent in "from" to speak for it, and in "agent" to say which one is meant.'
