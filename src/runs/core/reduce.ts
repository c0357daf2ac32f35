import { ORCHESTRATOR } from '../../base/agent.ts'
import type { Result } from '../../base/result.ts'
import {
  createRun,
  endAttempt,
  isSettled,
  type NodeAttempt,
  type Run,
  type RunNode,
  type RunOptions,
  withAttempt,
} from '../run.ts'
import type { RunEvent } from './events-and-effects.ts'
import { fail, recovery } from './retry-fix-skip.ts'
import {
  beginTransition,
  type RunHandlers,
  type RunReduced,
  type RunRefusal,
  refuse,
  type Transition,
} from './transition.ts'

/**
 * Returns what an event changes in a run and the effects that follow from it, or a refusal for late, duplicate and
 * unknown events. Pure: `commit` applies the change. Its cost grows with the edges of the nodes concerned, not with the
 * size of the run.
 */
export function reduce(run: Run, event: RunEvent, now: number): RunReduced {
  const early = refuseEarly(run, event)
  if (early !== undefined) return { ok: false, refusal: early }
  const transition = beginTransition(run, now)
  const refusal = handle(transition, event)
  return refusal === undefined ? transition.conclude() : { ok: false, refusal }
}

function refuseEarly({ head, nodes }: Run, event: RunEvent): RunRefusal | undefined {
  if ('node' in event && !nodes.has(event.node)) {
    return refuse('UNKNOWN_NODE', `There is no agent ${event.node}`)
  }
  if (head.outcome !== null && event.type !== 'report_written' && event.type !== 'report_failed') {
    return refuse('RUN_ENDED', `${head.id} has ended: ${head.outcome}`)
  }
  if (head.begunAt === null && event.type !== 'begun') return refuse('STALE', `${head.id} has not begun`)
  return undefined
}

function handle<E extends RunEvent>(transition: Transition, event: E): RunRefusal | undefined {
  // The table is total, but TypeScript can't follow that the handler found is the one for this very event.
  const handler = HANDLERS[event.type] as (transition: Transition, event: E) => RunRefusal | undefined
  return handler(transition, event)
}

/** After a restart, every attempt has at least this long, in which the service reads what it has reported. */
const FOUND_WITHIN_MS = 10_000

function cancel(transition: Transition, by: string, reason: string, timedOut: boolean): void {
  transition.writeHead({ cancelled: { by, reason, at: transition.now, timedOut }, deadlineAt: null })
  for (const { name } of transition.run.graph.plan.agents) {
    const node = transition.read(name)
    if (isSettled(node.state)) continue
    if (node.state === 'asking') transition.add({ type: 'withdraw', node: name, ask: node.asks })
    const ended = endAttempt(node, transition.now, { outcome: 'cancelled', why: reason })
    transition.settle({ ...ended, progress: null }, { state: 'cancelled', reason })
  }
}

function isReportPending({ head }: Transition, round: number): boolean {
  return head.reportPending && head.round === round
}

/** Lost attempts that do not count as failures. After more of them, the agent itself may be what brings the machine down. */
const FREE_LOSSES = 3

function stale(name: string, what: string): RunRefusal {
  return refuse('STALE', `${name} does not wait for ${what}`)
}

function start(transition: Transition, node: RunNode, inputsHash: string): void {
  const { timeoutMs, stallMs } = transition.agent(node.name)
  const { now } = transition
  const attempt: NodeAttempt = {
    number: node.attempt + 1,
    orderedAt: now,
    startedAt: null,
    endedAt: null,
    outcome: 'running',
    why: '',
    error: null,
    evidence: [],
    spent: null,
  }
  transition.write({
    ...node,
    state: 'running',
    inputsHash,
    // The next attempt moves its outbox aside.
    previousResult: null,
    attempt: attempt.number,
    tries: node.tries + 1,
    alive: true,
    started: false,
    said: 'pending',
    progress: null,
    reason: '',
    due: { kind: 'deadline', at: now + timeoutMs },
    stallAt: stallMs === null ? null : now + stallMs,
    attempts: [...node.attempts, attempt],
  })
}

function begun(transition: Transition, node: RunNode): RunNode {
  if (node.started) return node
  const at = transition.now + transition.agent(node.name).timeoutMs
  return { ...withAttempt(node, { startedAt: transition.now }), started: true, due: { kind: 'deadline', at } }
}

function awake(transition: Transition, node: RunNode): RunNode {
  const { stallMs } = transition.agent(node.name)
  return stallMs === null ? node : { ...node, stallAt: transition.now + stallMs }
}

/** The agent reports completion, which counts after validation (C22). */
function claim(transition: Transition, node: RunNode): void {
  transition.write({
    ...withAttempt(node, { outcome: 'claimed' }),
    state: 'validating',
    due: null,
    stallAt: null,
  })
}

/** The attempt was lost with the machine or the service, so it does not count as failed. */
function lose(transition: Transition, node: RunNode, why: string): void {
  if (node.losses >= FREE_LOSSES) {
    fail(transition, node, { why, recoverable: true })
    return
  }
  const ended = endAttempt(node, transition.now, { outcome: 'lost', why })
  transition.enqueue({
    ...ended,
    reason: why,
    progress: null,
    tries: node.tries - 1,
    losses: node.losses + 1,
  })
}

const HANDLERS: RunHandlers = {
  ...recovery,

  // Events of the run as a whole. Only these visit every node.

  begun(transition) {
    const { head, now } = transition
    if (head.begunAt !== null) return refuse('DUPLICATE', `${head.id} has already started`)
    const { agents, timeoutMs } = transition.run.graph.plan
    transition.writeHead({ begunAt: now, deadlineAt: timeoutMs === null ? null : now + timeoutMs })
    for (const { name } of agents) {
      const node = transition.read(name)
      if (node.waitingFor === 0) transition.enqueue(node)
    }
    return undefined
  },

  /** No service was watching, so the agents could not show activity. Stall timeouts start again. */
  restarted(transition) {
    for (const { name, stallMs } of transition.run.graph.plan.agents) {
      const node = transition.read(name)
      if (node.state !== 'running' || node.due === null) continue
      const at = Math.max(node.due.at, transition.now + FOUND_WITHIN_MS)
      const awake: RunNode = { ...node, due: { ...node.due, at } }
      transition.write(stallMs === null ? awake : { ...awake, stallAt: transition.now + stallMs })
    }
    return undefined
  },

  run_timed_out(transition) {
    const { deadlineAt } = transition.head
    if (deadlineAt === null || deadlineAt > transition.now)
      return refuse('STALE', 'The deadline of the run has not passed')
    cancel(transition, ORCHESTRATOR, 'the run timed out', true)
    return undefined
  },

  cancelled(transition, { by, reason }) {
    if (transition.head.cancelled !== null)
      return refuse('DUPLICATE', `${transition.head.id} was cancelled already`)
    cancel(transition, by, reason, false)
    return undefined
  },

  report_written(transition, { round, unconsolidated }) {
    if (!isReportPending(transition, round)) return refuse('STALE', 'No such report is pending')
    transition.writeHead({
      reportPending: false,
      ...(unconsolidated === undefined ? {} : { unconsolidated }),
    })
    return undefined
  },

  report_failed(transition, { round, why }) {
    if (!isReportPending(transition, round)) return refuse('STALE', 'No such report is pending')
    transition.writeHead({ reportPending: false, reportFault: why })
    return undefined
  },

  // Events of an attempt, from the copied inputs to the validated result.

  inputs_copied(transition, { node: name, preparation, inputsHash, outputsHash }) {
    const node = transition.read(name)
    if (node.state !== 'preparing' || node.preparations !== preparation) {
      return stale(name, `preparation ${preparation}`)
    }
    const { previousResult } = node
    if (previousResult?.inputsHash === inputsHash && previousResult.outputsHash === outputsHash) {
      const done: RunNode = { ...node, inputsHash, result: previousResult, cached: true }
      transition.settle(done, { state: 'completed', reason: 'its inputs have not changed' })
    } else start(transition, node, inputsHash)
    return undefined
  },

  copy_failed(transition, { node: name, preparation, why, recoverable }) {
    const node = transition.read(name)
    if (node.state !== 'preparing' || node.preparations !== preparation) {
      return stale(name, `preparation ${preparation}`)
    }
    fail(transition, { ...node, tries: node.tries + 1 }, { why, recoverable })
    return undefined
  },

  started(transition, { node: name, attempt }) {
    const node = transition.read(name)
    if (node.state !== 'running' || node.attempt !== attempt) return stale(name, `attempt ${attempt}`)
    if (node.started) return refuse('DUPLICATE', `Attempt ${attempt} of ${name} has already started`)
    transition.write(awake(transition, begun(transition, node)))
    return undefined
  },

  status(transition, { node: name, attempt, state, progress, error }) {
    const node = transition.read(name)
    if (node.state !== 'running' || node.attempt !== attempt) return stale(name, `attempt ${attempt}`)
    const seen: RunNode = {
      ...awake(transition, begun(transition, node)),
      progress: progress ?? node.progress,
    }
    switch (state) {
      case 'pending':
        transition.write(seen)
        break
      case 'running':
        transition.write({ ...seen, said: 'running' })
        break
      case 'completed':
        claim(transition, seen)
        break
      case 'failed':
        fail(transition, seen, {
          why: error === null || error.message === '' ? 'it reported a failure' : error.message,
          recoverable: error?.recoverable ?? true,
          error,
        })
    }
    return undefined
  },

  active(transition, { node: name, attempt }) {
    const node = transition.read(name)
    if (node.state !== 'running' || node.attempt !== attempt) return stale(name, `attempt ${attempt}`)
    const seen = awake(transition, node)
    if (seen !== node) transition.write(seen)
    return undefined
  },

  /** Total spending of an attempt so far; it may come after the end. */
  metered(transition, { node: name, attempt, spent }) {
    const node = transition.read(name)
    if (!node.attempts.some(({ number }) => number === attempt)) return stale(name, `attempt ${attempt}`)
    const attempts = node.attempts.map((one) => (one.number === attempt ? { ...one, spent } : one))
    transition.write({ ...node, attempts })
    return undefined
  },

  exited(transition, { node: name, attempt, code, signal, lost, why }) {
    const before = transition.read(name)
    if (!before.alive || before.attempt !== attempt) return stale(name, `attempt ${attempt}`)
    const node: RunNode = { ...before, alive: false }
    if (node.state === 'retrying' && node.due === null) transition.enqueue(node)
    else if (node.state !== 'running') transition.write(node)
    else if (lost) lose(transition, node, why)
    else if (code !== 0) fail(transition, node, { why: why || howItEnded(code, signal), recoverable: true })
    // The exit code counts for a plain command that never used status.json. An agent that used it must also end with it.
    else if (node.said === 'pending') claim(transition, begun(transition, node))
    else {
      const unreported = 'it exited without reporting completion'
      fail(transition, node, { why: why === '' ? unreported : `${unreported}: ${why}`, recoverable: true })
    }
    return undefined
  },

  stalled(transition, { node: name }) {
    const node = transition.read(name)
    if (node.state !== 'running' || node.stallAt === null || node.stallAt > transition.now)
      return stale(name, 'that')
    const seconds = Math.round(transition.agent(name).stallMs! / 1000)
    fail(transition, node, { why: `no sign of life for ${seconds} s`, recoverable: true })
    return undefined
  },

  timed_out(transition, { node: name }) {
    const node = transition.read(name)
    if (node.state !== 'running' || node.due === null || node.due.at > transition.now)
      return stale(name, 'that')
    const seconds = Math.round(transition.agent(name).timeoutMs / 1000)
    fail(transition, node, { why: `it timed out after ${seconds} s`, recoverable: true })
    return undefined
  },

  validated(transition, { node: name, attempt, passed, evidence, outputs, outputsHash, summary }) {
    const node = transition.read(name)
    if (node.state !== 'validating' || node.attempt !== attempt) return stale(name, `validation ${attempt}`)
    if (!passed) {
      const broken = evidence.find(({ outcome }) => outcome === 'failed' || outcome === 'unavailable')
      fail(transition, node, {
        why: broken?.text || 'its work was not accepted',
        recoverable: true,
        evidence,
      })
      return undefined
    }
    const ended = endAttempt(node, transition.now, { outcome: 'completed', why: '', evidence })
    const result = { attempt, inputsHash: node.inputsHash!, outputsHash, outputs, summary }
    transition.settle({ ...ended, result, progress: null }, { state: 'completed', reason: '' })
    return undefined
  },
}

function howItEnded(code: number | null, signal: string | null): string {
  if (code !== null) return `it exited with ${code}`
  return signal === null ? 'it ended' : `it was ended by ${signal}`
}

/**
 * Begins another round of a run that ended, with the current plan. A completed agent does not run again if its inputs are
 * the same: each agent is prepared, and the hash decides. The `begun` event starts the round. A run that has not ended
 * continues from `pendingEffects` instead.
 */
export function resumeRun(run: Run, { plan, now }: Omit<RunOptions, 'id'>): Result<Run, RunRefusal> {
  const { head } = run
  if (head.outcome === null) {
    return { ok: false, error: refuse('RUN_RUNS', `${head.id} has not ended`) }
  }
  const fresh = createRun({ id: head.id, plan, now })
  for (const node of fresh.nodes.values()) {
    const before = run.nodes.get(node.name)
    if (before !== undefined) fresh.nodes.set(node.name, { ...node, ...carried(before) })
  }
  fresh.head = {
    ...fresh.head,
    createdAt: head.createdAt,
    round: head.round + 1,
    lastQueued: head.lastQueued,
  }
  return { ok: true, value: fresh }
}

/** Keeps the counters, because keys of effects must stay unique. */
function carried(before: RunNode): Partial<RunNode> {
  const { preparations, attempt, fixes, asks, corrected, attempts } = before
  return {
    preparations,
    attempt,
    fixes,
    asks,
    corrected,
    attempts,
    previousResult: before.result ?? before.previousResult,
  }
}
