import type { Dependency } from '../plan.ts'
import type {
  AttemptError,
  NodeTimer,
  OutputFile,
  PersonDecision,
  Progress,
  Run,
  RunCost,
  RunEvidence,
  RunHead,
  RunNode,
} from '../run.ts'

interface OfNode {
  node: string
}
interface OfAttempt extends OfNode {
  attempt: number
}

/**
 * Everything that can happen to a run. An event about an attempt, a preparation, a fix or a question carries its number,
 * which tells late and duplicate events from new ones.
 */
export type RunEvent =
  | { type: 'begun' }
  /** The service has restarted. This event comes before those of due timers. */
  | { type: 'restarted' }
  | { type: 'run_timed_out' }
  | { type: 'cancelled'; by: string; reason: string }
  /** `unconsolidated`: agents whose outputs are not in `_outputs`, with the reason. */
  | { type: 'report_written'; round: number; unconsolidated?: Readonly<Record<string, string>> }
  /** The run ends without its report. */
  | { type: 'report_failed'; round: number; why: string }
  // Preparing and starting
  /** `outputsHash`: hash of its current outbox, if an earlier result is kept. */
  | ({
      type: 'inputs_copied'
      preparation: number
      inputsHash: string
      outputsHash: string | null
    } & OfNode)
  | ({ type: 'copy_failed'; preparation: number; why: string; recoverable: boolean } & OfNode)
  | ({ type: 'started' } & OfAttempt)
  // Progress and end
  | ({
      type: 'status'
      state: 'pending' | 'running' | 'completed' | 'failed'
      progress: Progress | null
      error: AttemptError | null
    } & OfAttempt)
  /** A sign of life other than a status: a hook, output, a commit. */
  | ({ type: 'active' } & OfAttempt)
  | ({ type: 'metered'; spent: RunCost } & OfAttempt)
  /**
   * The last event of every attempt, even if it was stopped or could not start. The last status comes before it.
   * `lost`: it ended with the machine or the service.
   */
  | ({ type: 'exited'; code: number | null; signal: string | null; lost: boolean; why: string } & OfAttempt)
  | ({ type: 'stalled' } & OfNode)
  | ({ type: 'timed_out' } & OfNode)
  | ({
      type: 'validated'
      passed: boolean
      evidence: readonly RunEvidence[]
      outputs: readonly OutputFile[]
      outputsHash: string
      summary: string
    } & OfAttempt)
  // Recovery (S4.12)
  | ({ type: 'retry_due' } & OfNode)
  | ({ type: 'fixer_done'; fix: number; fixed: boolean; why: string } & OfNode)
  | ({ type: 'person_decided'; ask: number; decision: PersonDecision; by: string } & OfNode)
  | ({ type: 'ask_expired' } & OfNode)

export type RunEventType = RunEvent['type']
export type RunEventOf<T extends RunEventType> = Extract<RunEvent, { type: T }>

/** The event for each kind of timer. */
const ON_DUE: Record<NodeTimer, (node: string) => RunEvent> = {
  deadline: (node) => ({ type: 'timed_out', node }),
  stall: (node) => ({ type: 'stalled', node }),
  retry: (node) => ({ type: 'retry_due', node }),
  ask: (node) => ({ type: 'ask_expired', node }),
}

/** Effects that are part of the transaction that stores the run. */
export type StoreEffect =
  /** `awaits` false: a notice (C7). Otherwise the verdict comes back with this number. */
  | { type: 'ask_person'; node: string; ask: number; text: string; awaits: boolean; expiresAt: number | null }
  /** Withdraws a question that is obsolete. */
  | { type: 'withdraw'; node: string; ask: number }
  /** Adds an audit entry. */
  | { type: 'note'; node: string | null; text: string }

/** The previous attempt, as described to the next one. */
interface PreviousAttempt {
  attempt: number
  why: string
}

/** Outputs of a dependency to copy. */
interface OutputSource extends Pick<Dependency, 'agent' | 'outputs' | 'copyTo'> {
  outputsHash: string
}

/**
 * Effects that are performed after the commit. Unfinished ones are derived from the stored run (`pendingEffects`). Each
 * effect leads to an event, and may safely be performed again under the same key.
 */
export type OutsideEffect =
  /**
   * Copy inputs and outputs of dependencies into the inbox, and hash them. `missing`: dependencies without outputs.
   * `hasPreviousResult`: hash the outbox of an earlier result. Events: inputs_copied, copy_failed.
   */
  | {
      type: 'prepare'
      node: string
      preparation: number
      sources: readonly OutputSource[]
      missing: readonly string[]
      hasPreviousResult: boolean
    }
  /** Move the results of the previous attempt aside (error_report.md, partial/), and start. Events: started, exited. */
  | { type: 'start_attempt'; node: string; attempt: number; before: PreviousAttempt | null }
  /** Follow status.json and the process. Events: status, active, exited. */
  | { type: 'follow_attempt'; node: string; attempt: number }
  /** `finished`: it reported completion, so it gets time to exit on its own. Event: exited. */
  | { type: 'stop_attempt'; node: string; attempt: number; finished: boolean }
  /** Validate in the order of C22. Event: validated. */
  | { type: 'validate'; node: string; attempt: number }
  /** Give the error report and the inputs to the fixer. Event: fixer_done. */
  | { type: 'fix'; node: string; fix: number; fixer: string; before: PreviousAttempt }
  | { type: 'stop_fix'; node: string; fix: number }
  /** Consolidate outputs and write the report. Events: report_written, report_failed. */
  | { type: 'write_report'; round: number }

/** Keys are unique over all rounds of a run. */
export type Keyed<E> = E & { key: string }
export type Effect = StoreEffect | Keyed<OutsideEffect>

/** Reads nodes with the changes of the current transition. */
type ReadNode = (name: string) => RunNode

/**
 * Derives the unfinished effects from the stored state. A crash between a commit and its effects therefore loses none: after
 * a restart, the service performs all of them again.
 */
export function pendingEffects(run: Run): Keyed<OutsideEffect>[] {
  const read: ReadNode = (name) => run.nodes.get(name)!
  const ofNodes = [...run.nodes.values()].flatMap((node) => pendingOf(run, node, read))
  if (!run.head.reportPending) return ofNodes
  const { id, round } = run.head
  return [...ofNodes, { type: 'write_report', key: `${id}/report/${round}`, round }]
}

/** True while the run waits for the effect. */
export function isPending(run: Run, effect: Keyed<OutsideEffect>): boolean {
  if (effect.type === 'write_report') return run.head.reportPending
  const pending = pendingOf(run, run.nodes.get(effect.node)!, (name) => run.nodes.get(name)!)
  return pending.some(({ key }) => key === effect.key)
}

export function pendingOf(run: Run, node: RunNode, read: ReadNode): Keyed<OutsideEffect>[] {
  const { name, attempt, state } = node
  const key = (what: string, number: number) => `${run.head.id}/${name}/${what}/${number}`
  const pending: Keyed<OutsideEffect>[] = []
  if (node.alive && state !== 'running') {
    const finished = state === 'validating' || state === 'completed'
    pending.push({ type: 'stop_attempt', key: key('stop', attempt), node: name, attempt, finished })
  }
  if (node.fixerAlive && state !== 'fixing') {
    pending.push({ type: 'stop_fix', key: key('stop-fix', node.fixes), node: name, fix: node.fixes })
  }
  switch (state) {
    case 'preparing':
      pending.push({ ...preparation(run, node, read), key: key('prepare', node.preparations) })
      break
    case 'running':
      if (node.started) {
        pending.push({ type: 'follow_attempt', key: key('follow', attempt), node: name, attempt })
      } else {
        const before = beforeOf(node, attempt)
        pending.push({ type: 'start_attempt', key: key('start', attempt), node: name, attempt, before })
      }
      break
    case 'validating':
      pending.push({ type: 'validate', key: key('validate', attempt), node: name, attempt })
      break
    case 'fixing': {
      const fixer = run.graph.agents.get(name)!.fixer!
      const before = { attempt, why: node.reason }
      pending.push({ type: 'fix', key: key('fix', node.fixes), node: name, fix: node.fixes, fixer, before })
    }
  }
  return pending
}

function preparation(run: Run, node: RunNode, read: ReadNode): Extract<OutsideEffect, { type: 'prepare' }> {
  const { dependsOn } = run.graph.agents.get(node.name)!
  const sources: OutputSource[] = []
  const missing = new Set<string>()
  for (const { agent, outputs, copyTo } of dependsOn) {
    const { result, state } = read(agent)
    if (state !== 'completed' || result === null) missing.add(agent)
    else if (outputs.length > 0) sources.push({ agent, outputs, copyTo, outputsHash: result.outputsHash })
  }
  return {
    type: 'prepare',
    node: node.name,
    preparation: node.preparations,
    sources,
    missing: [...missing],
    hasPreviousResult: node.previousResult !== null,
  }
}

function beforeOf({ attempts }: RunNode, attempt: number): PreviousAttempt | null {
  const before = attempts.findLast(({ number }) => number < attempt)
  return before === undefined ? null : { attempt: before.number, why: before.why }
}

/** Timers are not effects: those of a node follow from its state. */
function timersOf({ due, stallAt }: RunNode): Partial<Record<NodeTimer, number>> {
  return { ...(due === null ? {} : { [due.kind]: due.at }), ...(stallAt === null ? {} : { stall: stallAt }) }
}

/**
 * Timers of one run. Their due times are part of the run. The timer table has one row for the run, which is due with the
 * earliest of them or sooner: clearing a timer leaves the row alone, so a thousand agents that end long before their
 * deadlines cost nothing.
 */
export function createRunTimers(run: Run) {
  /** Due time of the row; undefined: there is none. */
  let armed: number | undefined
  /** The earliest timer that was set since the row was last written. */
  let soonest = Number.POSITIVE_INFINITY

  return {
    /** Called after each event. */
    changed({ head, nodes }: { head: RunHead; nodes: readonly RunNode[] }) {
      const times = nodes.flatMap((node) => Object.values(timersOf(node)))
      for (const at of times) soonest = Math.min(soonest, at)
      if (head.deadlineAt !== null) soonest = Math.min(soonest, head.deadlineAt)
    },
    /** Called when all due times have changed. */
    reset() {
      armed = undefined
    },
    /** Returns the events of all due timers. Called after the row was deleted. */
    takeDue(now: number): RunEvent[] {
      armed = undefined
      return timersIn(run).flatMap(({ at, event }) => (at <= now ? [event] : []))
    },
    /** Returns the time to which the row must be moved; undefined: it is early enough. Reads all timers only if there is no row. */
    wanted(): number | undefined {
      const earliest =
        armed === undefined
          ? timersIn(run).reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY)
          : soonest
      return Number.isFinite(earliest) && (armed === undefined || earliest < armed) ? earliest : undefined
    },
    /** Called before the row is written: only timers set from now on count for the next move. */
    claim() {
      soonest = Number.POSITIVE_INFINITY
    },
    /** Called when the row is stored. */
    arm(at: number) {
      armed = at
    },
  }
}

/** All timers of a run, with the event that each leads to. */
export function timersIn({ head, nodes }: Run): { at: number; event: RunEvent }[] {
  const ofNodes = [...nodes.values()].flatMap((node) =>
    Object.entries(timersOf(node)).map(([kind, at]) => ({ at, event: ON_DUE[kind as NodeTimer](node.name) })),
  )
  if (head.outcome !== null || head.deadlineAt === null) return ofNodes
  return [{ at: head.deadlineAt, event: { type: 'run_timed_out' } }, ...ofNodes]
}
