import type { PlanInput } from '../../../src/runs/plan/validate-plan.ts'
import type { PersonDecision } from '../../../src/runs/run.ts'
import type { Random } from './random.ts'

/** How one attempt goes. `mute`: exits with 0 though status.json says running. `hang`: does nothing until it is stopped. */
export const TURNS = ['ok', 'exit', 'error', 'hopeless', 'mute', 'invalid', 'hang', 'no_inputs'] as const
export type Turn = (typeof TURNS)[number]

/** How an agent behaves, whatever is done with it: attempts, fixes and decisions in their order, then all is well. */
export interface Script {
  /** Tells by status.json, and lives on until it is stopped; otherwise by its exit code alone. */
  readonly talks: boolean
  readonly turns: readonly Turn[]
  readonly fixes: readonly boolean[]
  /** `none`: the question expires without an answer. */
  readonly answers: readonly (PersonDecision | 'none')[]
}

export type Scripts = ReadonlyMap<string, Script>

const some = <T>(random: Random, most: number, make: () => T): T[] =>
  Array.from({ length: random.below(most + 1) }, make)

export function randomScript(random: Random, trouble: number): Script {
  const isTroubled = random.chance(trouble)
  return {
    talks: random.chance(0.6),
    turns: isTroubled ? some(random, 7, () => random.pick(TURNS)) : [],
    fixes: some(random, 3, () => random.chance(0.6)),
    answers: some(random, 3, () => random.pick(['retry', 'fixed', 'skip', 'fail', 'none'] as const)),
  }
}

/** A graph in which each may wait for some of those before it; names are shuffled, so that order tells nothing. */
export function randomPlan(random: Random, size: number): PlanInput {
  const names = Array.from({ length: size }, (_, index) => `a${(index * 7919) % 1009}-${index}`)
  const density = random.pick([0.5, 1, 2, 4])
  const reach = random.pick([3, 20, size])
  const agents: PlanInput['agents'] = {}
  for (const [index, name] of names.entries()) {
    const wanted = new Set(
      some(random, Math.ceil(density * 2), () => index - 1 - random.below(Math.min(index, reach) || 1)),
    )
    agents[name] = {
      command: 'true',
      retries: random.below(4),
      stall_timeout: random.chance(0.5) ? '20s' : 'off',
      timeout: '60s',
      on_error: random.pick(['retry', 'retry', 'skip', 'escalate', 'fix'] as const),
      depends_on: [...wanted]
        .filter((at) => at >= 0)
        .map((at) => ({
          agent: names[at]!,
          on_failure: random.pick(['fail', 'skip', 'proceed'] as const),
        })),
    }
    const agent = agents[name]
    if (agent.on_error === 'fix' && random.chance(0.7)) {
      agent.fixer = 'mender'
      agent.max_fixes = 1 + random.below(2)
    }
  }
  const shuffled = Object.entries(agents).sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    name: 'random',
    concurrency: random.pick([1, 2, 5, 1000]),
    agents: Object.fromEntries(shuffled),
    fixers: { mender: { command: 'true' } },
  }
}
