/** A run driven by hand: changes are committed at once, and effects are listed. */

import type { Effect, RunEvent } from '../../../src/runs/core/events-and-effects.ts'
import { reduce } from '../../../src/runs/core/reduce.ts'
import { commit, type RunReduced } from '../../../src/runs/core/transition.ts'
import type { PlanAgentInput, PlanInput } from '../../../src/runs/plan/validate-plan.ts'
import { createRun, type Run, type RunNode } from '../../../src/runs/run.ts'
import { definePlan } from '../define-plan.ts'

type Told<T extends Effect['type']> = Extract<Effect, { type: T }>

export function openBench(
  agents: Record<string, PlanAgentInput>,
  plan: Partial<PlanInput> = {},
  { begin = true } = {},
) {
  let now = 1000
  const withRunner = Object.fromEntries(
    Object.entries(agents).map(([name, agent]) => [name, { command: 'true', ...agent }]),
  )
  let run: Run = createRun({ id: 'run_1', plan: definePlan({ ...plan, agents: withRunner }), now })
  let effects: Effect[] = []

  function tell(event: RunEvent): RunReduced {
    const decided = reduce(run, event, now)
    if (decided.ok) {
      commit(run, decided.state)
      effects.push(...decided.effects)
    }
    return decided
  }

  const node = (name: string): RunNode => run.nodes.get(name)!

  const bench = {
    tell,
    node,
    get run() {
      return run
    },
    set run(next: Run) {
      run = next
    },
    get now() {
      return now
    },
    pass(ms: number) {
      now += ms
    },
    /** Effects since the last call. */
    take() {
      const taken = effects
      effects = []
      return taken
    },
    taken<T extends Effect['type']>(type: T): Told<T>[] {
      return bench.take().filter((effect): effect is Told<T> => effect.type === type)
    },
    states: () => Object.fromEntries([...run.nodes].map(([name, { state }]) => [name, state])),
    copied(name: string, inputsHash = `in ${name}`, outputsHash: string | null = null) {
      return tell({
        type: 'inputs_copied',
        node: name,
        preparation: node(name).preparations,
        inputsHash,
        outputsHash,
      })
    },
    start(name: string) {
      bench.copied(name)
      return tell({ type: 'started', node: name, attempt: node(name).attempt })
    },
    status(name: string, state: 'running' | 'completed' | 'failed', recoverable = true) {
      const error = {
        type: 'ValidationError',
        message: 'Input file format invalid',
        details: '',
        recoverable,
      }
      return tell({
        type: 'status',
        node: name,
        attempt: node(name).attempt,
        state,
        progress: { step: 'analyzing_data', done: 3, total: 5 },
        error: state === 'failed' ? error : null,
      })
    },
    exit(name: string, code: number | null, { lost = false, signal = null as string | null } = {}) {
      return tell({ type: 'exited', node: name, attempt: node(name).attempt, code, signal, lost, why: '' })
    },
    validate(name: string, passed = true, outputsHash = `out ${name}`) {
      const text = passed ? '' : 'summary.md is missing'
      return tell({
        type: 'validated',
        node: name,
        attempt: node(name).attempt,
        passed,
        evidence: [{ step: 'outputs', outcome: passed ? 'passed' : 'failed', text }],
        outputs: [{ path: 'outbox/data.json', bytes: 12, sha256: 'ab' }],
        outputsHash,
        summary: `${name} is done`,
      })
    },
    /** Takes an agent through its whole attempt. */
    finish(name: string, code = 0) {
      bench.start(name)
      bench.exit(name, code)
      if (code === 0) bench.validate(name)
    },
    reduce(name: string, decision: 'retry' | 'fixed' | 'skip' | 'fail') {
      return tell({
        type: 'person_decided',
        node: name,
        ask: node(name).asks,
        decision,
        by: 'ada',
      })
    },
  }
  if (begin) tell({ type: 'begun' })
  return bench
}
