import type {
  AttemptError,
  NodeTimer,
  OutputFile,
  PersonDecision,
  Progress,
  RunEvidence,
  Spent,
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
  /** The service is back. Comes before the events of due timers. */
  | { type: 'restarted' }
  | { type: 'run_timed_out' }
  | { type: 'cancelled'; by: string; reason: string }
  /** `unconsolidated`: agents whose outputs are not in `_outputs`, with the reason. */
  | { type: 'report_written'; round: number; unconsolidated?: Readonly<Record<string, string>> }
  /** The report was given up; the run has ended without it. */
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
  | ({ type: 'metered'; spent: Spent } & OfAttempt)
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
      /** False: trying again would not help. */
      recoverable: boolean
    } & OfAttempt)
  // Recovery (S4.12)
  | ({ type: 'retry_due' } & OfNode)
  | ({ type: 'fixer_done'; fix: number; fixed: boolean; why: string } & OfNode)
  | ({ type: 'person_decided'; ask: number; decision: PersonDecision; by: string; comment: string } & OfNode)
  | ({ type: 'ask_expired' } & OfNode)

export type RunEventType = RunEvent['type']
export type RunEventOf<T extends RunEventType> = Extract<RunEvent, { type: T }>

/** The event for each kind of timer. */
export const ON_DUE: Record<NodeTimer, (node: string) => RunEvent> = {
  deadline: (node) => ({ type: 'timed_out', node }),
  stall: (node) => ({ type: 'stalled', node }),
  retry: (node) => ({ type: 'retry_due', node }),
  ask: (node) => ({ type: 'ask_expired', node }),
}
