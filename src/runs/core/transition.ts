import type { Reduced } from '../../base/result.ts'
import type { PlanAgent } from '../plan.ts'
import {
  holdsSlot,
  isSettled,
  outcomeOf,
  type Run,
  type RunHead,
  type RunNode,
  type SettledState,
} from '../run.ts'
import {
  type Effect,
  type Keyed,
  type OutsideEffect,
  pendingOf,
  type RunEventOf,
  type RunEventType,
  type StoreEffect,
} from './events-and-effects.ts'

interface Settlement {
  state: SettledState
  reason: string
}

/** Collects the changes that one event makes, on top of a run that stays unchanged. */
export interface Transition {
  readonly run: Run
  readonly now: number
  readonly head: RunHead
  agent(name: string): PlanAgent
  read(name: string): RunNode
  write(node: RunNode): void
  writeHead(changes: Partial<RunHead>): void
  add(effect: StoreEffect): void
  /** Queues a node for preparation. If its last attempt still has a process, it waits for the end of that. */
  enqueue(node: RunNode): void
  /** Settles a node, and decides on its dependents. */
  settle(node: RunNode, settlement: Settlement): void
  conclude(): RunReduced
}

export function beginTransition(run: Run, now: number): Transition {
  const changed = new Map<string, RunNode>()
  const fresh: string[] = []
  const effects: StoreEffect[] = []
  let head = run.head

  const read = (name: string) => changed.get(name) ?? run.nodes.get(name)!

  function write(node: RunNode): void {
    const before = read(node.name)
    changed.set(node.name, node)
    const settled = { ...head.settled }
    if (isSettled(before.state)) settled[before.state]--
    if (isSettled(node.state)) settled[node.state]++
    head = {
      ...head,
      settled,
      open: head.open + Number(isSettled(before.state)) - Number(isSettled(node.state)),
      slots: head.slots + Number(holdsSlot(node)) - Number(holdsSlot(before)),
      alive: head.alive + lives(node) - lives(before),
    }
  }

  function enqueue(node: RunNode): void {
    if (node.alive) {
      write({ ...node, state: 'retrying', due: null, stallAt: null })
      return
    }
    const queued = head.lastQueued + 1
    head = { ...head, lastQueued: queued }
    write({ ...node, state: 'ready', queued, due: null, stallAt: null })
    fresh.push(node.name)
  }

  function settle(first: RunNode, settlement: Settlement): void {
    write(first)
    const todo: Todo[] = [[first.name, settlement]]
    // The list grows during the loop; recursion would overflow the stack for a chain of ten thousand.
    for (const [name, { state, reason }] of todo) {
      const node = read(name)
      if (isSettled(node.state)) continue
      write({ ...node, state, reason, queued: null, due: null, stallAt: null, settledAt: now })
      if (state === 'cancelled') continue
      for (const { to, onFailure } of run.graph.feeds.get(name)!) {
        const dependent = read(to)
        if (isSettled(dependent.state)) continue
        const closer = { ...dependent, waitingFor: dependent.waitingFor - 1 }
        write(closer)
        // `fail` outweighs all other policies, so it need not wait for the other dependencies.
        if (state !== 'completed' && onFailure === 'fail') todo.push([to, blame('failed', name, state)])
        else if (closer.waitingFor === 0) decideOn(closer, todo)
      }
    }
  }

  function decideOn(node: RunNode, todo: Todo[]): void {
    const broken = run.graph.needs
      .get(node.name)!
      .map(({ from, onFailure }) => ({ onFailure, from, state: read(from).state }))
      .filter(({ state }) => state !== 'completed')
    const worst =
      broken.find(({ onFailure }) => onFailure === 'fail') ??
      broken.find(({ onFailure }) => onFailure === 'skip')
    if (worst === undefined) enqueue(node)
    else
      todo.push([
        node.name,
        blame(worst.onFailure === 'fail' ? 'failed' : 'skipped', worst.from, worst.state),
      ])
  }

  /** Prepares queued nodes up to the concurrency of the plan, first come first served. */
  function fill(): void {
    const { concurrency } = run.graph.plan
    for (const names of [run.readyQueue.keys(), fresh]) {
      for (const name of names) {
        if (head.slots >= concurrency) return
        const node = read(name)
        if (node.queued === null) continue
        write({ ...node, state: 'preparing', queued: null, preparations: node.preparations + 1 })
      }
    }
  }

  function end(): void {
    if (head.begunAt === null || head.outcome !== null || head.open > 0 || head.alive > 0) return
    head = { ...head, outcome: outcomeOf(head), endedAt: now, deadlineAt: null, reportPending: true }
  }

  function conclude(): RunReduced {
    if (head.outcome === null && head.begunAt !== null) fill()
    end()
    const nodes = [...changed.values()].filter((node) => node !== run.nodes.get(node.name))
    if (nodes.length === 0 && effects.length === 0 && head === run.head) {
      return { ok: true, state: { head, nodes: [] }, effects: [] }
    }
    return {
      ok: true,
      state: { head, nodes },
      effects: [...effects, ...nodes.flatMap(outsideEffects), ...report()],
    }
  }

  /** Effects are derived from the node before and after the event, so no handler can forget one. */
  function outsideEffects(node: RunNode): Keyed<OutsideEffect>[] {
    const before = pendingOf(run, run.nodes.get(node.name)!, (name) => run.nodes.get(name)!)
    const known = new Set(before.map(({ key }) => key))
    return pendingOf(run, node, read).filter(({ key }) => !known.has(key))
  }

  function report(): Keyed<OutsideEffect>[] {
    if (!head.reportPending || run.head.reportPending) return []
    return [{ type: 'write_report', key: `${head.id}/report/${head.round}`, round: head.round }]
  }

  return {
    run,
    now,
    get head() {
      return head
    },
    agent: (name) => run.graph.agents.get(name)!,
    read,
    write,
    writeHead: (changes) => {
      head = { ...head, ...changes }
    },
    add: (effect) => effects.push(effect),
    enqueue,
    settle,
    conclude,
  }
}

type Todo = [name: string, settlement: Settlement]

function lives({ alive, fixerAlive }: RunNode): number {
  return Number(alive) + Number(fixerAlive)
}

const ENDED_AS: Record<string, string> = {
  failed: 'failed',
  skipped: 'was skipped',
  cancelled: 'was cancelled',
}

function blame(state: 'failed' | 'skipped', dependency: string, as: string): Settlement {
  return { state, reason: `${dependency} ${ENDED_AS[as]}` }
}

/** Why an event is refused. */
type RefusalCode = 'RUN_ENDED' | 'RUN_RUNS' | 'STALE' | 'DUPLICATE' | 'UNKNOWN_NODE'

export interface RunRefusal {
  code: RefusalCode
  /** For the sender. */
  message: string
}

/**
 * The part of a run that an event changed. A copy of the whole state for each event would make a run with ten thousand
 * agents quadratic; `commit` applies the change.
 */
interface RunChange {
  head: RunHead
  nodes: readonly RunNode[]
}

export type RunReduced = Reduced<RunChange, Effect, RunRefusal>

export function refuse(code: RefusalCode, message: string): RunRefusal {
  return { code, message }
}

/** Applies a change to the run in memory. */
export function commit(run: Run, { head, nodes }: RunChange): void {
  run.head = head
  for (const node of nodes) {
    run.nodes.set(node.name, node)
    if (node.queued === null) run.readyQueue.delete(node.name)
  }
  const queued = nodes.filter((node) => node.queued !== null && !run.readyQueue.has(node.name))
  for (const node of queued.sort((a, b) => a.queued! - b.queued!)) run.readyQueue.set(node.name, node.queued!)
}

/** Applies an event to the transition, or refuses it. */
type RunHandler<T extends RunEventType> = (
  transition: Transition,
  event: RunEventOf<T>,
) => RunRefusal | undefined
export type RunHandlers<T extends RunEventType = RunEventType> = { [K in T]: RunHandler<K> }
