import { AppError } from '../../base/errors.ts'
import { unknownAgent } from '../../commands/identity.ts'
import type { Team } from '../../commands/team.ts'
import type { AgentConfig } from '../../config/config.ts'
import type { AgentCandidate } from './match-keywords.ts'
import { type ReachableAgent, reachableAgents } from './reachable-agents.ts'
import type { SelectedAgents } from './select-agents.ts'

export interface TeamQuestion {
  question: string
  /** The agent that answers. Default: chosen. */
  agent?: string
}

/** The agent that answers, and the agents that it may need (S2.14). */
export interface Choice {
  root: string
  /** The most important first; may be empty. */
  chosen: string[]
  why: string
  by: SelectedAgents['by']
  /** Names that the model invented. */
  unknown: string[]
  /** For the root: the chosen agents with their capabilities. */
  context: Record<string, unknown>
  /** Why this root, if there were several. */
  rootWhy?: string
  /** Why the model could not choose. */
  failure?: string
}

/** Keep at most this many names that a model invented. */
const MAX_UNKNOWN = 20
const ADVICE =
  'Do it alone if you can. Delegate only to agents that you need, and report the whole answer when you have it.'

export async function chooseAgents(
  team: Team,
  { agent }: TeamQuestion,
  select: SelectAgents,
): Promise<Choice> {
  const { root, selected: forRoot } = await chooseRoot(team, agent, select)
  const reachable = reachableAgents(team, root)
  const selected = await select(reachable.map(candidateOf))
  const failure = selected.failure ?? forRoot?.failure
  return {
    root,
    chosen: [...selected.ids],
    why: selected.why,
    by: selected.by,
    unknown: [...(forRoot?.unknown ?? []), ...selected.unknown].slice(0, MAX_UNKNOWN),
    context: contextOf(reachable, selected),
    ...(forRoot === undefined ? {} : { rootWhy: forRoot.why }),
    ...(failure === undefined ? {} : { failure: `${failure.code}: ${failure.message}` }),
  }
}

type SelectAgents = (available: readonly AgentCandidate[]) => Promise<SelectedAgents>

/** The named agent, else the only one without a parent, else one chosen among those. */
async function chooseRoot(
  team: Team,
  named: string | undefined,
  select: SelectAgents,
): Promise<{ root: string; selected?: SelectedAgents }> {
  if (named !== undefined) {
    const root = team.resolve(named)
    if (root === undefined) throw unknownAgent(team, named)
    return { root }
  }
  const roots = team.config.agents.filter(({ parent }) => parent === undefined)
  if (roots.length === 1) return { root: roots[0]!.name }
  // A root offers the capabilities of its whole team.
  const selected = await select(
    roots.map((root) => {
      const others = reachableAgents(team, root.name).map(({ agent }) => agent)
      return { ...candidateOf({ agent: root }), capabilities: [root, ...others].flatMap(wordsOf) }
    }),
  )
  const [root] = selected.ids
  if (root !== undefined) return { root, selected }
  const names = roots.map(({ name }) => name).join(', ')
  throw new AppError('INVALID_REQUEST', `Several agents could answer, and none was chosen: ${names}`, {
    hint: `Name one with --agent NAME. ${selected.why}`,
  })
}

function wordsOf({ role, capabilities }: AgentConfig): string[] {
  return role === undefined ? [...capabilities] : [role, ...capabilities]
}

function candidateOf({ agent: { name, role, capabilities } }: Pick<ReachableAgent, 'agent'>): AgentCandidate {
  return { id: name, ...(role === undefined ? {} : { role }), capabilities }
}

function contextOf(
  reachable: readonly ReachableAgent[],
  { ids, why, by }: SelectedAgents,
): Record<string, unknown> {
  const chosen = ids.map((id) => {
    const { agent, through } = reachable.find((one) => one.agent.name === id)!
    const { capabilities, ...known } = candidateOf({ agent })
    return {
      ...known,
      ...(capabilities.length === 0 ? {} : { capabilities }),
      ...(through === undefined ? {} : { through }),
    }
  })
  return { chosen_agents: chosen, why, chosen_by: by, advice: ADVICE }
}
