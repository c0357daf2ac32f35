/** Events of an attempt, from the copied inputs to the validated result. */

import type { NodeAttempt, RunNode } from '../run.ts'
import { fail } from './recovery-events.ts'
import { endAttempt, withAttempt } from './run-state.ts'
import { type RunHandlers, type RunRefusal, refuse, type Transition } from './transition.ts'

/** Lost attempts that do not count as failures. After that, the agent itself may bring the machine down. */
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
    kept: null,
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

export const working: Pick<
  RunHandlers,
  | 'inputs_copied'
  | 'copy_failed'
  | 'started'
  | 'status'
  | 'active'
  | 'metered'
  | 'exited'
  | 'stalled'
  | 'timed_out'
  | 'validated'
> = {
  inputs_copied(transition, { node: name, preparation, inputsHash, outputsHash }) {
    const node = transition.read(name)
    if (node.state !== 'preparing' || node.preparations !== preparation) {
      return stale(name, `preparation ${preparation}`)
    }
    const { kept } = node
    if (kept !== null && kept.inputsHash === inputsHash && kept.outputsHash === outputsHash) {
      const done: RunNode = { ...node, inputsHash, result: kept, cached: true }
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
    if (node.started) return refuse('DUPLICATE', `Attempt ${attempt} of ${name} has begun already`)
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
      const unsaid = 'it ended without saying that it was done'
      fail(transition, node, { why: why === '' ? unsaid : `${unsaid}: ${why}`, recoverable: true })
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
    fail(transition, node, { why: `it was not done within ${seconds} s`, recoverable: true })
    return undefined
  },

  validated(
    transition,
    { node: name, attempt, passed, evidence, outputs, outputsHash, summary, recoverable },
  ) {
    const node = transition.read(name)
    if (node.state !== 'validating' || node.attempt !== attempt) return stale(name, `validation ${attempt}`)
    if (!passed) {
      const broken = evidence.find(({ outcome }) => outcome === 'failed' || outcome === 'unavailable')
      fail(transition, node, { why: broken?.text || 'its work was not accepted', recoverable, evidence })
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
