/** Simulates the engine in memory, with a simulated clock: performs effects in any order, and can crash. */

import {
  type Effect,
  type OutsideEffect,
  pendingEffects,
  type RunEvent,
  timersIn,
} from '../../../src/runs/core/events-and-effects.ts'
import { reduce } from '../../../src/runs/core/reduce.ts'
import { commit, type RunReduced } from '../../../src/runs/core/transition.ts'
import {
  isSettled,
  loadRun,
  type NodeState,
  type PersonDecision,
  type Run,
  type RunNode,
} from '../../../src/runs/run.ts'
import type { Random } from './random.ts'
import type { Scripts } from './script.ts'

/** The stored parts of a run as JSON. */
export function storedText({ graph, head, nodes }: Run): string {
  return JSON.stringify({ plan: graph.plan, head, nodes: [...nodes.values()] })
}

type OfType<T extends Effect['type']> = Extract<Effect, { type: T }>

const WORKING: ReadonlySet<NodeState> = new Set(['preparing', 'running', 'validating', 'fixing'])
const TIMED: ReadonlySet<RunEvent['type']> = new Set([
  'run_timed_out',
  'timed_out',
  'stalled',
  'retry_due',
  'ask_expired',
])

interface Process {
  node: string
  attempt: number
  /** Reports still to come, in this order. */
  says: RunEvent[]
  lost: boolean
}

type Accepted = Extract<RunReduced, { ok: true }>

export interface WorldOptions {
  readonly scripts: Scripts
  readonly random: Random
  /** The hash of an agent's inputs; by default of its name and those of what it was given. */
  readonly inputsHash?: (effect: OfType<'prepare'>) => string
  readonly outputsHash?: (node: string) => string
  /** Performs no effects; only explicit events happen. */
  readonly passive?: boolean
}

export function openWorld(
  first: Run,
  { scripts, random, inputsHash, outputsHash = (node) => `out ${node}`, passive = false }: WorldOptions,
) {
  let run = first
  let now = 1_000_000
  let onDecision: (decided: Accepted) => void = () => {}
  const questions = new Map<string, OfType<'ask_person'>>()
  const notices: OfType<'ask_person'>[] = []
  /** Live attempts, and all attempts so far. */
  const processes = new Map<string, Process>()
  const spawned = new Set<string>()
  /** Answers on their way; the service's memory. */
  let answers: RunEvent[] = []
  const told: RunEvent[] = []
  const keys = new Set<string>()
  const validated = new Set<string>()
  const prepared = new Map<string, number>()
  const begun = new Map<string, number>()
  const turnsTaken = new Map<string, number>()
  const fixesTaken = new Map<string, number>()
  const answersTaken = new Map<string, number>()
  const hashOf =
    inputsHash ??
    ((effect: OfType<'prepare'>) =>
      `in ${effect.node} ${effect.sources.map((s) => s.outputsHash)} ${effect.missing}`)

  const take = (counts: Map<string, number>, node: string) => {
    const taken = counts.get(node) ?? 0
    counts.set(node, taken + 1)
    return taken
  }

  function tell(event: RunEvent): RunReduced {
    const decided = reduce(run, event, now)
    if (!decided.ok) return decided
    told.push(event)
    const before = new Map(decided.state.nodes.map(({ name }) => [name, run.nodes.get(name)!]))
    commit(run, decided.state)
    onDecision(decided)
    if (!passive) check(decided, before)
    for (const effect of decided.effects) {
      if ('key' in effect) {
        if (keys.has(effect.key)) throw new Error(`${effect.key} stands for two effects`)
        keys.add(effect.key)
      }
      if (!passive) carryOut(effect)
    }
    return decided
  }

  function carryOut(effect: Effect): void {
    switch (effect.type) {
      case 'ask_person':
        if (effect.awaits) questions.set(`${effect.node} ${effect.ask}`, effect)
        else notices.push(effect)
        return
      case 'withdraw':
        questions.delete(`${effect.node} ${effect.ask}`)
        return
      case 'note':
        return
      default:
        carryOutOutside(effect)
    }
  }

  function carryOutOutside(effect: OutsideEffect & { key: string }): void {
    switch (effect.type) {
      case 'prepare': {
        const { node, preparation } = effect
        const { sources, missing } = effect
        for (const name of [...sources.map(({ agent }) => agent), ...missing]) {
          if (!isSettled(run.nodes.get(name)!.state))
            throw new Error(`${node} is prepared before ${name} ended`)
        }
        if (turnOf(node) === 'no_inputs' && !effect.hasPreviousResult) {
          answers.push({ type: 'copy_failed', node, preparation, why: 'no disk', recoverable: true })
        } else {
          const inputs = hashOf(effect)
          answers.push({
            type: 'inputs_copied',
            node,
            preparation,
            inputsHash: inputs,
            outputsHash: outputsHash(node),
          })
        }
        return
      }
      case 'start_attempt':
        if (!spawned.has(`${effect.node} ${effect.attempt}`)) spawn(effect.node, effect.attempt)
        return
      case 'follow_attempt':
        return
      case 'stop_attempt': {
        const process = processes.get(`${effect.node} ${effect.attempt}`)
        if (process !== undefined) {
          process.says = [exit(process, null, 'SIGTERM')]
        }
        return
      }
      case 'validate': {
        const { node, attempt } = effect
        const passed = turnOf(node, -1) !== 'invalid'
        answers.push({
          type: 'validated',
          node,
          attempt,
          passed,
          evidence: [{ step: 'outputs', outcome: passed ? 'passed' : 'failed', text: 'summary.md' }],
          outputs: [],
          outputsHash: outputsHash(node),
          summary: 'done',
        })
        return
      }
      case 'fix':
        answers.push({
          type: 'fixer_done',
          node: effect.node,
          fix: effect.fix,
          fixed: scripts.get(effect.node)!.fixes[fixesTaken.get(effect.node) ?? 0] ?? true,
          why: 'no idea',
        })
        return
      case 'stop_fix':
        answers.push({ type: 'fixer_done', node: effect.node, fix: effect.fix, fixed: false, why: 'stopped' })
        return
      case 'write_report':
        answers.push({ type: 'report_written', round: effect.round })
    }
  }

  /** The turn that comes next, or the one that goes on. */
  function turnOf(node: string, offset = 0) {
    return scripts.get(node)!.turns[(turnsTaken.get(node) ?? 0) + offset] ?? 'ok'
  }

  const exit = ({ node, attempt }: Process, code: number | null, signal: string | null): RunEvent => ({
    type: 'exited',
    node,
    attempt,
    code,
    signal,
    lost: false,
    why: '',
  })

  function spawn(node: string, attempt: number): void {
    for (const process of processes.values()) {
      if (process.node === node) throw new Error(`${node} has two processes`)
    }
    if (prepared.get(node) !== run.nodes.get(node)!.preparations) throw new Error(`${node} starts unprepared`)
    const turn = turnOf(node)
    take(turnsTaken, node)
    const { talks } = scripts.get(node)!
    const process: Process = { node, attempt, says: [], lost: false }
    const of = { node, attempt }
    const status = (state: 'running' | 'completed' | 'failed', recoverable = true): RunEvent => ({
      type: 'status',
      ...of,
      state,
      progress: { step: 'work', done: 1, total: 2 },
      error: state === 'failed' ? { type: 'E', message: 'it broke', details: '', recoverable } : null,
    })
    const opening: RunEvent[] = [{ type: 'started', ...of }, status('running')]
    if (random.chance(0.3)) opening.reverse()
    const silent: RunEvent[] = [{ type: 'started', ...of }]
    switch (turn) {
      case 'ok':
      case 'invalid':
        process.says = talks
          ? [...opening, status('completed'), ...(random.chance(0.5) ? [exit(process, 0, null)] : [])]
          : [...silent, exit(process, 0, null)]
        break
      case 'exit':
        process.says = [...(talks ? opening : []), exit(process, 2, null)]
        break
      case 'error':
        process.says = [...opening, status('failed'), exit(process, 1, null)]
        break
      case 'hopeless':
        process.says = [...opening, status('failed', false)]
        break
      case 'mute':
        process.says = [...opening, exit(process, 0, null)]
        break
      case 'hang':
        process.says = random.chance(0.5) ? [] : [...opening, { type: 'active', ...of }]
        break
      case 'no_inputs':
        throw new Error(`${node} starts though its inputs were not copied`)
    }
    processes.set(`${node} ${attempt}`, process)
    spawned.add(`${node} ${attempt}`)
    if (processes.size > run.graph.plan.concurrency) throw new Error(`${processes.size} live at once`)
  }

  /** Invariants after every event. */
  function check({ state: { nodes } }: Accepted, before: ReadonlyMap<string, RunNode>): void {
    const { head, graph, readyQueue } = run
    for (const node of nodes) {
      const was = before.get(node.name)!
      if (isSettled(was.state) && node.state !== was.state) throw new Error(`${node.name} left ${was.state}`)
      if (node.state === 'running' && was.state === 'preparing') {
        for (const { from } of graph.needs.get(node.name)!) {
          if (!isSettled(run.nodes.get(from)!.state))
            throw new Error(`${node.name} started before ${from} ended`)
        }
        begun.set(node.name, (begun.get(node.name) ?? 0) + 1)
      }
      if (node.state === 'completed' && was.state !== 'completed' && !node.cached) {
        if (!validated.has(`${node.name} ${node.attempt}`))
          throw new Error(`${node.name} completed unvalidated`)
      }
    }
    if (head.slots < graph.plan.concurrency && readyQueue.size > 0 && head.outcome === null) {
      throw new Error(`${[...readyQueue.keys()]} could run`)
    }
  }

  /** Compares the counters of the head with the nodes. */
  function audit(): void {
    const all = [...run.nodes.values()]
    const { head } = run
    const counted = {
      open: all.filter(({ state }) => !isSettled(state)).length,
      slots: all.filter(({ state, alive, fixerAlive }) => alive || fixerAlive || WORKING.has(state)).length,
      alive: all.reduce((sum, { alive, fixerAlive }) => sum + Number(alive) + Number(fixerAlive), 0),
      completed: all.filter(({ state }) => state === 'completed').length,
    }
    const said = { open: head.open, slots: head.slots, alive: head.alive, completed: head.settled.completed }
    if (JSON.stringify(counted) !== JSON.stringify(said)) {
      throw new Error(`The head says ${JSON.stringify(said)}, the nodes ${JSON.stringify(counted)}`)
    }
    if (head.slots > run.graph.plan.concurrency) throw new Error(`${head.slots} slots are held`)
    const loaded = loadRun(JSON.parse(storedText(run)))
    if (JSON.stringify([...loaded.readyQueue]) !== JSON.stringify([...run.readyQueue]))
      throw new Error('The line is lost')
  }

  /** Triggers a random possible event; false if there is none. */
  function step(): boolean {
    const talking = [...processes.values()].filter(({ says }) => says.length > 0)
    const open = [...questions.values()].filter(({ node, ask }) => answerTo(node, ask) !== 'none')
    const choices = answers.length + talking.length + open.length
    if (choices === 0) return wait()
    const chosen = random.below(choices)
    if (chosen < answers.length) answer(chosen)
    else if (chosen < answers.length + talking.length) speak(talking[chosen - answers.length]!)
    else decideQuestion(open[chosen - answers.length - talking.length]!)
    return true
  }

  function answer(index: number): void {
    const [event] = answers.splice(index, 1)
    if (event!.type === 'validated' && event!.passed) validated.add(`${event!.node} ${event!.attempt}`)
    if (event!.type === 'inputs_copied') prepared.set(event!.node, event!.preparation)
    const decided = tell(event!)
    if (!decided.ok) return
    if (event!.type === 'copy_failed') take(turnsTaken, event!.node)
    if (event!.type === 'fixer_done') take(fixesTaken, event!.node)
  }

  function speak(process: Process): void {
    const event = process.says.shift()!
    if (event.type === 'exited') processes.delete(`${process.node} ${process.attempt}`)
    tell(event)
  }

  function answerTo(node: string, _ask: number): PersonDecision | 'none' {
    return scripts.get(node)!.answers[answersTaken.get(node) ?? 0] ?? 'retry'
  }

  function decideQuestion({ node, ask }: OfType<'ask_person'>): void {
    const decision = answerTo(node, ask)
    if (decision === 'none') throw new Error('There is no answer to that question')
    questions.delete(`${node} ${ask}`)
    take(answersTaken, node)
    tell({ type: 'person_decided', node, ask, decision, by: 'ada' })
  }

  /** Advances the clock to the next timer. */
  function wait(): boolean {
    const [next] = timersIn(run).sort((a, b) => a.at - b.at)
    if (next === undefined) return false
    now = Math.max(now, next.at)
    return tell(next.event).ok
  }

  /** Simulates kill -9 of the service or a power failure: everything that is not stored is lost. */
  function crash(withMachine: boolean): void {
    run = loadRun(JSON.parse(storedText(run)))
    answers = []
    if (withMachine) {
      for (const process of processes.values()) {
        const node = run.nodes.get(process.node)!
        if (process.lost || node.losses >= 3) continue
        process.lost = true
        const event = {
          type: 'exited',
          node: process.node,
          attempt: process.attempt,
          code: null,
          signal: null,
          lost: true,
          why: 'the machine went down',
        } as const
        process.says = [event]
        // The next service does what this one would have done.
        if (node.state === 'running') turnsTaken.set(process.node, turnsTaken.get(process.node)! - 1)
      }
    }
    if (run.head.outcome === null) tell({ type: 'restarted' })
    for (const effect of pendingEffects(run)) carryOutOutside(effect)
  }

  return {
    get run() {
      return run
    },
    set run(next: Run) {
      run = next
    },
    get now() {
      return now
    },
    set onDecision(listener: (decided: Accepted) => void) {
      onDecision = listener
    },
    notices,
    questions,
    begun,
    tell,
    step,
    crash,
    audit,
    /** Repeats a random earlier event. */
    repeat: () => {
      const event = random.pick(told)
      // Events of timers carry no number, so a repeated one counts if its timer is due.
      return TIMED.has(event.type) ? undefined : reduce(run, event, now)
    },
    told,
    pass: (ms: number) => {
      now += ms
    },
    isOver: () => run.head.outcome !== null && !run.head.reportPending,
  }
}

export type World = ReturnType<typeof openWorld>
