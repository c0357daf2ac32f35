import type { AuditDraft } from '../audit/entry.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import type { RunEvent } from './core/event.ts'
import type { Run } from './core/run-state.ts'
import type { RunReduced } from './core/transition.ts'
import type { NodeState, Progress, RunNode } from './run.ts'

/** Short states that every agent passes: they get no audit entry. */
const PASSING: ReadonlySet<NodeState> = new Set(['waiting', 'ready', 'preparing'])

const REASON = 2000

/** Returns the audit entries for an event, which also feed the event stream. `run` is the state before the event. */
export function auditEntriesOf(
  run: Run,
  event: RunEvent,
  { state: { head, nodes }, effects }: Extract<RunReduced, { ok: true }>,
  cut: RedactedExcerpt,
): AuditDraft[] {
  const entries: AuditDraft[] = []
  const { id, round } = head
  const { name, agents } = run.graph.plan
  if (run.head.begunAt === null && head.begunAt !== null) {
    const text = `${id} (${name}) begins${round > 1 ? ` round ${round}` : ''}: ${agents.length} ${agents.length === 1 ? 'agent' : 'agents'}`
    entries.push(entry(id, 'begun', text, { name, round, agents: agents.length }))
  }
  if (event.type === 'restarted')
    entries.push(entry(id, 'noted', `${id}: the service is back; it goes on`, {}))
  if (event.type === 'cancelled' || event.type === 'run_timed_out') {
    const { by, reason } = head.cancelled!
    entries.push(entry(id, 'cancelling', `${id} is cancelled by ${by}: ${cut(reason)}`, { by }, by))
  }
  for (const node of nodes) {
    const before = run.nodes.get(node.name)!
    if (isTold(before, node)) entries.push(moved(id, node, cut))
    else if (node.progress !== null && isOther(before.progress, node.progress))
      entries.push(stepped(id, node, cut))
  }
  for (const effect of effects) {
    if (effect.type === 'note') entries.push(noted(id, effect.node, cut(effect.text, REASON)))
    if (effect.type !== 'run_ended') continue
    const { settled } = head
    const counts = Object.entries(settled).filter(([, count]) => count > 0)
    const states = counts.map(([state, count]) => `${count} ${state}`).join(', ')
    const text = `${id} (${name}): all agents have ended: ${effect.outcome} (${states})`
    entries.push(entry(id, 'ended', text, { name, round, outcome: effect.outcome, ...settled }))
  }
  if (event.type === 'report_written') {
    entries.push(entry(id, 'reported', `${id}: the report of round ${round} is written`, { round }))
  }
  if (event.type === 'report_failed') {
    const text = `${id}: the report of round ${round} could not be written: ${cut(event.why, REASON)}`
    entries.push(entry(id, 'reported', text, { round, written: false }))
  }
  return entries
}

export function noted(run: string, node: string | null, text: string): AuditDraft {
  return entry(
    run,
    'noted',
    `${run}${node === null ? '' : ` ${node}`}: ${text}`,
    node === null ? {} : { node },
  )
}

function isTold(before: RunNode, { state, attempt }: RunNode): boolean {
  return !PASSING.has(state) && (state !== before.state || attempt !== before.attempt)
}

function isOther(before: Progress | null, { step, done, total }: Progress): boolean {
  return before === null || before.step !== step || before.done !== done || before.total !== total
}

function moved(run: string, node: RunNode, cut: RedactedExcerpt): AuditDraft {
  const { name, state, attempt, cached } = node
  const reason = cut(node.reason, REASON)
  const why = reason === '' ? '' : `: ${reason}`
  const which = state === 'running' ? ` (attempt ${attempt})` : ''
  return entry(run, 'node', `${run} ${name} is ${state}${which}${why}`, {
    node: name,
    state,
    attempt,
    ...(cached ? { cached } : {}),
    ...(reason === '' ? {} : { reason }),
  })
}

function stepped(run: string, { name, attempt, progress }: RunNode, cut: RedactedExcerpt): AuditDraft {
  const { step, done, total } = progress!
  const far = total === 0 ? '' : ` (${done} of ${total})`
  const said = cut(step)
  return entry(run, 'progress', `${run} ${name}: ${said}${far}`, {
    node: name,
    attempt,
    step: said,
    done,
    total,
  })
}

function entry(
  run: string,
  what: string,
  text: string,
  data: Record<string, unknown>,
  actor = ORCHESTRATOR,
): AuditDraft {
  return { type: `run.${what}`, class: 'internal', actor, text, data: { run_id: run, ...data } }
}
