import { AppError } from '../../base/errors.ts'
import { unknownAgent } from '../../commands/identity.ts'
import type { Team } from '../../commands/team.ts'
import type { AgentConfig } from '../../config/config.ts'
import type { Candidate } from './match-keywords.ts'
import { type Circle, circleOf, type Member } from './reachable-agents.ts'
import type { Selected } from './select-agents.ts'

export interface Ask {
  question: string
  /** Who is to answer it; chosen where it is not said. */
  agent?: string
}

/** Who answers, and who may be needed for it (S2.14). */
export interface Choice {
  root: string
  /** The most important first. Nobody is a valid choice. */
  chosen: string[]
  why: string
  by: Selected['by']
  /** What the model named that is not there. */
  unknown: string[]
  /** For the root: the chosen agents with what they are good at. */
  context: Record<string, unknown>
  /** Why this root, where there were several. */
  rootWhy?: string
  /** Why the model that should have chosen did not. */
  failure?: string
}

/** Of what a model invented, as much as helps to see what went wrong. */
const UNKNOWN_NAMED = 20
const ADVICE =
  'Do it alone if you can. Delegate only to those that are needed, and report the whole answer when you have it.'

export async function chooseAgents(team: Team, { agent }: Ask, select: Select): Promise<Choice> {
  const { root, selected: forRoot } = await chooseRoot(team, agent, select)
  const circle = circleOf(team, root)
  const selected = await select(circle.map(candidate))
  const failure = selected.failure ?? forRoot?.failure
  return {
    root,
    chosen: [...selected.ids],
    why: selected.why,
    by: selected.by,
    unknown: [...(forRoot?.unknown ?? []), ...selected.unknown].slice(0, UNKNOWN_NAMED),
    context: contextOf(circle, selected),
    ...(forRoot === undefined ? {} : { rootWhy: forRoot.why }),
    ...(failure === undefined ? {} : { failure: `${failure.code}: ${failure.message}` }),
  }
}

type Select = (available: readonly Candidate[]) => Promise<Selected>

/** The one that is named, else the only one without a parent, else one that is chosen among those. */
async function chooseRoot(
  team: Team,
  named: string | undefined,
  select: Select,
): Promise<{ root: string; selected?: Selected }> {
  if (named !== undefined) {
    const root = team.resolve(named)
    if (root === undefined) throw unknownAgent(team, named)
    return { root }
  }
  const roots = team.config.agents.filter(({ parent }) => parent === undefined)
  if (roots.length === 1) return { root: roots[0]!.name }
  // A root is good at what its team is good at.
  const selected = await select(
    roots.map((root) => {
      const others = circleOf(team, root.name).map(({ agent }) => agent)
      return { ...candidate({ agent: root }), capabilities: [root, ...others].flatMap(wordsOf) }
    }),
  )
  const [root] = selected.ids
  if (root !== undefined) return { root, selected }
  const names = roots.map(({ name }) => name).join(', ')
  throw new AppError('INVALID_REQUEST', `Several agents could answer, and none was chosen: ${names}`, {
    hint: `Say which one with --agent NAME. ${selected.why}`,
  })
}

function wordsOf({ role, capabilities }: AgentConfig): string[] {
  return role === undefined ? [...capabilities] : [role, ...capabilities]
}

function candidate({ agent: { name, role, capabilities } }: Pick<Member, 'agent'>): Candidate {
  return { id: name, ...(role === undefined ? {} : { role }), capabilities }
}

function contextOf(circle: Circle, { ids, why, by }: Selected): Record<string, unknown> {
  const chosen = ids.map((id) => {
    const { agent, through } = circle.find((one) => one.agent.name === id)!
    const { capabilities, ...known } = candidate({ agent })
    return {
      ...known,
      ...(capabilities.length === 0 ? {} : { capabilities }),
      ...(through === undefined ? {} : { through }),
    }
  })
  return { chosen_agents: chosen, why, chosen_by: by, advice: ADVICE }
}
