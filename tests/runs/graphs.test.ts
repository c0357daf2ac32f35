/** Random graphs with random failures and policies through the real engine, with real processes, beside a simple reference. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readPlan } from '../../src/runs/plan/read-plan.ts'
import { EDGE_POLICIES, type Plan } from '../../src/runs/plan.ts'
import type { SeenRun } from '../../src/runs/runs.ts'
import { type Random, randomOf } from './core/random.ts'
import { expectedOf } from './core/reference.ts'
import type { Script, Turn } from './core/script.ts'
import { openRunTeam, type RunTeam } from './harness.ts'

/** `RUNS_SEED=… npx vitest run tests/runs/graphs.test.ts` repeats one. */
const SEED = Number(process.env.RUNS_SEED ?? Math.floor(Math.random() * 1e9))
const TURNS: readonly Turn[] = ['exit', 'error', 'hopeless', 'mute', 'invalid', 'ok']

/** Does in its N-th attempt what the N-th word says, and all well after the last. `begins` and `ends` go to one log. */
const AGENT = `name=$1 talks=$2
shift 2
tries=0
if [ -e workspace/tries ]; then read -r tries < workspace/tries; fi
echo $((tries + 1)) > workspace/tries
echo "begins $name" >> ../../../log
if [ "$tries" -ge $# ]; then turn=ok; else shift "$tries"; turn=$1; fi
if [ "$turn" = ok ]; then
  echo "$name" > outbox/out.txt
  echo "Made by $name." > outbox/summary.md
fi
echo "ends $name" >> ../../../log
say() { printf '{"state": "%s", "error": {"type": "t", "message": "m", "recoverable": %s}}' "$1" "$2" > status.json; }
case $turn in
  ok) if [ "$talks" = true ]; then say completed true; fi ;;
  exit) exit 3 ;;
  error) say failed true ;;
  hopeless) say failed false ;;
  mute) say running true ;;
  invalid) ;;
esac
`

interface Graph {
  readonly text: string
  readonly plan: Plan
  readonly scripts: Map<string, Script>
}

function randomGraph(random: Random, size: number): Graph {
  const trouble = random.pick([0.05, 0.2, 0.5])
  const reach = random.pick([5, 30, size])
  const scripts = new Map<string, Script>()
  const agents = Array.from({ length: size }, (_, index) => {
    const name = `n${index}`
    const turns = random.chance(trouble)
      ? Array.from({ length: 1 + random.below(3) }, () => random.pick(TURNS))
      : []
    const script: Script = { talks: random.chance(0.5), turns, fixes: [], answers: [] }
    scripts.set(name, script)
    const needs = new Set<number>()
    for (let count = random.below(4); count > 0 && index > 0; count--) {
      needs.add(index - 1 - random.below(Math.min(index, reach)))
    }
    const edges = [...needs].map(
      (on) => `{ agent: n${on}, outputs: [out.txt], on_failure: ${random.pick(EDGE_POLICIES)} }`,
    )
    const command = `set -- ${name} ${script.talks} ${turns.join(' ')}; . ../../../agent.sh`
    const onError = random.pick(['retry', 'retry', 'skip'])
    return `  ${name}: { command: "${command}", retries: ${random.below(3)}, on_error: ${onError}, depends_on: [${edges.join(', ')}] }`
  })
  const text = `concurrency: ${1 + random.below(8)}\nagents:\n${agents.join('\n')}\n`
  const read = readPlan(text)
  if (!read.ok) throw new Error(read.error[0]!.message)
  return { text, plan: read.value, scripts }
}

async function carryOut(team: RunTeam, { text }: Graph): Promise<{ seen: SeenRun; log: string[] }> {
  const logFile = team.write('log', '')
  const id = await team.start(text)
  for (;;) {
    // Pauses pass quickly; what really runs takes its real time.
    await team.clock.advance(250)
    const seen = await team.see(id)
    const { outcome, reportPending } = seen.run.head
    if (outcome !== null && !reportPending)
      return { seen, log: readFileSync(logFile, 'utf8').split('\n').slice(0, -1) }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function check({ plan, scripts }: Graph, { run }: SeenRun, log: readonly string[], team: RunTeam) {
  const expected = expectedOf(plan, scripts, false)
  const came = new Map(
    [...run.nodes].map(([name, { state, attempts }]) => [name, { state, attempts: attempts.length }]),
  )
  expect(came).toEqual(expected)

  const begun = new Map<string, number>()
  const firstBegun = new Map<string, number>()
  const lastEnded = new Map<string, number>()
  let alive = 0
  for (const [at, line] of log.entries()) {
    const [what, name] = line.split(' ') as [string, string]
    alive += what === 'begins' ? 1 : -1
    expect(alive).toBeLessThanOrEqual(plan.concurrency)
    if (what === 'ends') lastEnded.set(name, at)
    else begun.set(name, (begun.get(name) ?? 0) + 1)
    if (what === 'begins' && !firstBegun.has(name)) firstBegun.set(name, at)
  }
  for (const { name, dependsOn } of plan.agents) {
    expect(begun.get(name) ?? 0, name).toBe(expected.get(name)!.attempts)
    if (!begun.has(name)) continue
    for (const { agent } of dependsOn) {
      expect(lastEnded.get(agent) ?? -1, `${agent} before ${name}`).toBeLessThan(firstBegun.get(name)!)
      if (expected.get(agent)!.state !== 'completed') continue
      expect(team.file(run.head.id, name, 'inbox', agent, 'out.txt'), `${agent} to ${name}`).toBe(
        `${agent}\n`,
      )
    }
  }
}

it.each([40, 150, 500])(
  'runs a random graph of %i agents with the same result as a simple reference (C7, C22)',
  {
    timeout: 120_000,
  },
  async (size) => {
    const seed = SEED + size
    const team = await openRunTeam()
    team.write('agent.sh', AGENT)
    try {
      const graph = randomGraph(randomOf(seed), size)
      const { seen, log } = await carryOut(team, graph)
      check(graph, seen, log, team)
    } catch (error) {
      throw new Error(`with RUNS_SEED=${SEED}`, { cause: error })
    } finally {
      await team.close()
    }
  },
)
