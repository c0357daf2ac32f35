/** What follows on a failure: retry, fix and retry, skip, escalate (S4.12, C7). */
import { pauseAfter } from '../../base/backoff.ts'
import type { AttemptError, RunEvidence, RunNode } from '../run.ts'
import { endAttempt } from './run-state.ts'
import { type Draft, type Handlers, refuse } from './transition.ts'

export interface Failure {
  why: string
  recoverable: boolean
  error?: AttemptError | null
  evidence?: readonly RunEvidence[]
}

/** An attempt, or the way to it, failed. Whatever of it still lives is stopped. */
export function fail(
  draft: Draft,
  failed: RunNode,
  { why, recoverable, error = null, evidence = [] }: Failure,
): void {
  const ended = endAttempt(failed, draft.now, { outcome: 'failed', why, error, evidence })
  const node: RunNode = { ...ended, reason: why, due: null, stallAt: null, progress: null }
  const { retries } = draft.agent(node.name)
  if (recoverable && node.tries <= retries) {
    draft.write({
      ...node,
      state: 'retrying',
      due: { kind: 'retry', at: draft.now + pauseAfter(node.tries) },
    })
    draft.add({
      type: 'note',
      node: node.name,
      text: `attempt ${node.tries} of ${retries + 1} failed: ${why}`,
    })
    return
  }
  giveUp(
    draft,
    node,
    recoverable ? `${why}; ${count(node.tries)} failed` : `${why}; trying again would not help`,
  )
}

function count(tries: number): string {
  return tries === 1 ? 'its only attempt' : `${tries} attempts`
}

/** Retries are used up, or of no use. */
function giveUp(draft: Draft, node: RunNode, reason: string): void {
  const { onError, fixer, maxFixes } = draft.agent(node.name)
  const canFix = fixer !== null && node.fixed < maxFixes
  if (onError === 'retry') failForGood(draft, node, reason)
  else if (onError === 'skip') draft.settle(node, { state: 'skipped', reason })
  else if (onError === 'fix' && canFix) fix(draft, node, reason)
  else ask(draft, node, reason)
}

function fix(draft: Draft, node: RunNode, reason: string): void {
  const { fixes, fixed } = node
  draft.write({ ...node, state: 'fixing', reason, fixes: fixes + 1, fixed: fixed + 1, fixerAlive: true })
}

/** C7: then a person is told. */
function failForGood(draft: Draft, node: RunNode, reason: string): void {
  const asks = node.asks + 1
  const text = `${node.name} failed: ${reason}`
  draft.add({ type: 'ask_person', node: node.name, ask: asks, text, awaits: false, expiresAt: null })
  draft.settle({ ...node, asks }, { state: 'failed', reason })
}

function ask(draft: Draft, node: RunNode, reason: string): void {
  if (!draft.head.attended) {
    failForGood(draft, node, reason)
    return
  }
  const { askMs } = draft.run.graph.plan
  const asks = node.asks + 1
  const expiresAt = askMs === null ? null : draft.now + askMs
  const due = expiresAt === null ? null : ({ kind: 'ask', at: expiresAt } as const)
  draft.write({ ...node, state: 'asking', reason, asks, due })
  const text = `${node.name} failed: ${reason}. Retry it, fix its inputs and retry, skip it, or let it fail?`
  draft.add({ type: 'ask_person', node: node.name, ask: asks, text, awaits: true, expiresAt })
}

/** A fresh start: all retries are there again. */
function again(draft: Draft, node: RunNode): void {
  draft.enqueue({ ...node, tries: 0, losses: 0 })
}

export const recovery: Pick<Handlers, 'retry_due' | 'fixer_done' | 'person_decided' | 'ask_expired'> = {
  retry_due(draft, { node: name }) {
    const node = draft.read(name)
    if (node.state !== 'retrying' || node.due === null || node.due.at > draft.now) {
      return refuse('STALE', `${name} does not wait for that`)
    }
    draft.enqueue(node)
    return undefined
  },

  fixer_done(draft, { node: name, fix, fixed, why }) {
    const node = draft.read(name)
    if (!node.fixerAlive || node.fixes !== fix) return refuse('STALE', `${name} does not wait for fix ${fix}`)
    const alone: RunNode = { ...node, fixerAlive: false }
    if (node.state !== 'fixing') draft.write(alone)
    else if (fixed) again(draft, { ...alone, corrected: true })
    else ask(draft, alone, `${node.reason}; it could not be fixed: ${why}`)
    return undefined
  },

  person_decided(draft, { node: name, ask: number, decision, by, comment }) {
    const node = draft.read(name)
    if (node.state !== 'asking' || node.asks !== number) {
      return refuse('STALE', `${name} does not wait for that decision`)
    }
    const words = comment === '' ? '' : `: ${comment}`
    draft.add({ type: 'note', node: name, text: `${by} decided: ${decision}${words}` })
    if (decision === 'retry') again(draft, node)
    else if (decision === 'fixed') again(draft, { ...node, corrected: true })
    else {
      const state = decision === 'skip' ? 'skipped' : 'failed'
      draft.settle(node, { state, reason: `${node.reason}; ${by} decided: ${decision}${words}` })
    }
    return undefined
  },

  ask_expired(draft, { node: name }) {
    const node = draft.read(name)
    if (node.state !== 'asking' || node.due === null || node.due.at > draft.now) {
      return refuse('STALE', `${name} does not wait for that`)
    }
    draft.add({ type: 'withdraw', node: name, ask: node.asks })
    draft.settle(node, { state: 'failed', reason: `${node.reason}; nobody decided in time` })
    return undefined
  },
}
