/** Chooses the agents that a question may need: with a model, or by keywords. */
import { z } from 'zod'
import { EVERYONE } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { excerpt } from '../base/excerpt.ts'
import { unknownAgent } from '../commands/identity.ts'
import type { Team } from '../commands/team.ts'
import type { AgentConfig } from '../config/config.ts'
import { FENCE_RULE, fence } from '../llm/fence-untrusted-text.ts'
import type { ModelCallOptions, ModelFailure, Models, ObjectCall } from '../llm/llm.ts'
import { decideDelegation } from './delegate.ts'

/** The agent that answers, and the agents that it may need (S2.14). */
export interface Choice {
  root: string
  /** The most important first; may be empty. */
  chosen: string[]
  why: string
  by: SelectedAgents['by']
  /** Agents that the model named but that don't exist. */
  unknown: string[]
  /** For the root: the chosen agents with their capabilities. */
  context: Record<string, unknown>
  /** Why this root, if there were several. */
  rootWhy?: string
  /** Why the model could not choose. */
  failure?: string
}

/** Report at most this many unknown names that a model gave. */
const MAX_UNKNOWN = 20
const ADVICE =
  'Do it alone if you can. Delegate only to agents that you need, and report the whole answer when you have it.'

/** `named`: the agent that answers. */
export async function chooseAgents(
  team: Team,
  named: string | undefined,
  select: SelectAgents,
): Promise<Choice> {
  const { root, selected: forRoot } = await chooseRoot(team, named, select)
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

interface SelectedAgents {
  /** Available agents, the most important first; may be empty. */
  readonly ids: readonly string[]
  readonly why: string
  readonly by: 'model' | 'keywords'
  /** Agents that the model named but that don't exist. */
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

interface AgentCandidate {
  readonly id: string
  readonly role?: string
  readonly capabilities: readonly string[]
}

/**
 * Chooses agents without a model: a greedy cover of the task's words by the words of roles and capabilities.
 * Deterministic.
 */
export function matchAgents(
  task: string,
  available: readonly AgentCandidate[],
): { ids: readonly string[]; why: string } {
  const wanted = stemsOf(task)
  const able = available.map((candidate) => ({ id: candidate.id, covers: coveredBy(candidate, wanted) }))
  const chosen: { id: string; covers: readonly string[] }[] = []
  const left = new Set(wanted.keys())
  for (;;) {
    let best: { id: string; covers: readonly string[] } | undefined
    for (const { id, covers } of able) {
      const fresh = covers.filter((stem) => left.has(stem))
      if (fresh.length > (best?.covers.length ?? 0)) best = { id, covers: fresh }
    }
    if (best === undefined) break
    chosen.push(best)
    for (const stem of best.covers) left.delete(stem)
  }
  if (chosen.length === 0) return { ids: [], why: 'No role or capability shares a word with the task.' }
  const reasons = chosen.map(
    ({ id, covers }) => `${id}: ${covers.map((stem) => wanted.get(stem)).join(', ')}`,
  )
  return { ids: chosen.map(({ id }) => id), why: `By words in common: ${reasons.join('; ')}.` }
}

function coveredBy(
  { id, role = '', capabilities }: AgentCandidate,
  wanted: ReadonlyMap<string, string>,
): readonly string[] {
  const own = stemsOf([id, role, ...capabilities].join(' '))
  return [...wanted.keys()].filter((stem) => own.has(stem))
}

/** Maps each stem to its first spelling. */
function stemsOf(text: string): Map<string, string> {
  const stems = new Map<string, string>()
  for (const [word] of text
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}+#]+/gu)) {
    if (STOP_WORDS.has(word) || word.length < 2) continue
    const stem = stemOf(word)
    if (!stems.has(stem)) stems.set(stem, word)
  }
  return stems
}

/** A rough stemmer: `tests`, `testing`, `tester` and `test` must be one word. */
function stemOf(word: string): string {
  for (const ending of ENDINGS) {
    if (word.endsWith(ending) && word.length - ending.length >= 3) return word.slice(0, -ending.length)
  }
  return word
}

/** Longest first. */
const ENDINGS = ['ations', 'ation', 'ings', 'ing', 'ers', 'ors', 'ies', 'er', 'or', 'ed', 'es', 'y', 's', 'e']

const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about after agent all also an and any are as at be before but by can could do does for from get give had has have
  how i if in into is it its let make me more my need needs new no not now of on one or our out please should so some
  task team than that the their them then there these they this to up us use using want was we what when where which
  who why will with work would you your`.split(/\s+/),
)

interface ReachableAgent {
  agent: AgentConfig
  /** The agent to delegate to, if this one isn't a direct child. */
  through?: string
}

/** The agents that can work for an agent: those it may delegate to, and all below them. */
function reachableAgents(team: Team, name: string): readonly ReachableAgent[] {
  const childrenOf = Map.groupBy(team.config.agents, ({ parent }) => parent)
  const reachable: ReachableAgent[] = [
    ...new Set([...(childrenOf.get(name) ?? []), ...allowedBeyond(team, name)]),
  ]
    .filter((agent) => agent.name !== name && decideDelegation(team, name, agent.name).verdict !== 'deny')
    .map((agent) => ({ agent }))
  const seen = new Set([name, ...reachable.map(({ agent }) => agent.name)])
  // The list grows during the loop, so children of children follow.
  for (const { agent, through = agent.name } of reachable) {
    for (const child of childrenOf.get(agent.name) ?? []) {
      if (seen.has(child.name)) continue
      seen.add(child.name)
      reachable.push({ agent: child, through })
    }
  }
  return reachable
}

/** Agents that rules.allow names for this one. */
function allowedBeyond({ config }: Team, name: string): AgentConfig[] {
  const rules = config.rules.allow.filter(({ from }) => from.includes(name) || from.includes(EVERYONE))
  const named = new Set(rules.flatMap(({ to }) => to))
  if (named.has(EVERYONE)) return [...config.agents]
  return named.size === 0 ? [] : config.agents.filter((agent) => named.has(agent.name))
}
