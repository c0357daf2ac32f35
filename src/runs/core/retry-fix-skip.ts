/** Recovery from failures: retry, fix and retry, skip, escalate (S4.12, C7). */
import { pauseAfter } from '../../base/backoff.ts'
import { type AttemptError, endAttempt, type RunEvidence, type RunNode } from '../run.ts'
import { type RunHandlers, refuse, type Transition } from './transition.ts'

interface Failure {
  why: string
  recoverable: boolean
  error?: AttemptError | null
  evidence?: readonly RunEvidence[]
}

/** Handles a failed attempt or preparation. Its processes are stopped. */
export function fail(
  transition: Transition,
  failed: RunNode,
  { why, recoverable, error = null, evidence = [] }: Failure,
): void {
  const ended = endAttempt(failed, transition.now, { outcome: 'failed', why, error, evidence })
  const node: RunNode = { ...ended, reason: why, due: null, stallAt: null, progress: null }
  const { retries } = transition.agent(node.name)
  if (recoverable && node.tries <= retries) {
    transition.write({
      ...node,
      state: 'retrying',
      due: { kind: 'retry', at: transition.now + pauseAfter(node.tries) },
    })
    transition.add({
      type: 'note',
      node: node.name,
      text: `attempt ${node.tries} of ${retries + 1} failed: ${why}`,
    })
    return
  }
  giveUp(
    transition,
    node,
    recoverable ? `${why}; ${count(node.tries)} failed` : `${why}; a retry would not help`,
  )
}

function count(tries: number): string {
  return tries === 1 ? 'its only attempt' : `${tries} attempts`
}

function giveUp(transition: Transition, node: RunNode, reason: string): void {
  const { onError, fixer, maxFixes } = transition.agent(node.name)
  const canFix = fixer !== null && node.fixed < maxFixes
  if (onError === 'retry') failForGood(transition, node, reason)
  else if (onError === 'skip') transition.settle(node, { state: 'skipped', reason })
  else if (onError === 'fix' && canFix) fix(transition, node, reason)
  else ask(transition, node, reason)
}

function fix(transition: Transition, node: RunNode, reason: string): void {
  const { fixes, fixed } = node
  transition.write({ ...node, state: 'fixing', reason, fixes: fixes + 1, fixed: fixed + 1, fixerAlive: true })
}

/** Fails the node and notifies a person (C7). */
function failForGood(transition: Transition, node: RunNode, reason: string): void {
  const asks = node.asks + 1
  const text = `${node.name} failed: ${reason}`
  transition.add({ type: 'ask_person', node: node.name, ask: asks, text, awaits: false, expiresAt: null })
  transition.settle({ ...node, asks }, { state: 'failed', reason })
}

function ask(transition: Transition, node: RunNode, reason: string): void {
  const { askMs } = transition.run.graph.plan
  const asks = node.asks + 1
  const expiresAt = askMs === null ? null : transition.now + askMs
  const due = expiresAt === null ? null : ({ kind: 'ask', at: expiresAt } as const)
  transition.write({ ...node, state: 'asking', reason, asks, due })
  const text = `${node.name} failed: ${reason}. Retry it, fix its inputs and retry, skip it, or let it fail?`
  transition.add({ type: 'ask_person', node: node.name, ask: asks, text, awaits: true, expiresAt })
}

/** Starts again with all retries. */
function again(transition: Transition, node: RunNode): void {
  transition.enqueue({ ...node, tries: 0, losses: 0 })
}

export const recovery: Pick<RunHandlers, 'retry_due' | 'fixer_done' | 'person_decided' | 'ask_expired'> = {
  retry_due(transition, { node: name }) {
    const node = transition.read(name)
    if (node.state !== 'retrying' || node.due === null || node.due.at > transition.now) {
      return refuse('STALE', `${name} does not wait for that`)
    }
    transition.enqueue(node)
    return undefined
  },

  fixer_done(transition, { node: name, fix, fixed, why }) {
    const node = transition.read(name)
    if (!node.fixerAlive || node.fixes !== fix) return refuse('STALE', `${name} does not wait for fix ${fix}`)
    const alone: RunNode = { ...node, fixerAlive: false }
    if (node.state !== 'fixing') transition.write(alone)
    else if (fixed) again(transition, { ...alone, corrected: true })
    else ask(transition, alone, `${node.reason}; it could not be fixed: ${why}`)
    return undefined
  },

  person_decided(transition, { node: name, ask: number, decision, by }) {
    const node = transition.read(name)
    if (node.state !== 'asking' || node.asks !== number) {
      return refuse('STALE', `${name} does not wait for that decision`)
    }
    transition.add({ type: 'note', node: name, text: `${by} decided: ${decision}` })
    if (decision === 'retry') again(transition, node)
    else if (decision === 'fixed') again(transition, { ...node, corrected: true })
    else {
      const state = decision === 'skip' ? 'skipped' : 'failed'
      transition.settle(node, { state, reason: `${node.reason}; ${by} decided: ${decision}` })
    }
    return undefined
  },

  ask_expired(transition, { node: name }) {
    const node = transition.read(name)
    if (node.state !== 'asking' || node.due === null || node.due.at > transition.now) {
      return refuse('STALE', `${name} does not wait for that`)
    }
    transition.add({ type: 'withdraw', node: name, ask: node.asks })
    transition.settle(node, { state: 'failed', reason: `${node.reason}; no person decided in time` })
    return undefined
  },
}
