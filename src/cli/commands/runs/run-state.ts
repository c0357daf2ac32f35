import type { AnswerOf } from '../../../api/contract.ts'
import type { NodeState, RunOutcome } from '../../../runs/run.ts'
import type { Style } from '../../output/print.ts'

export type RunShown = AnswerOf<'run'>
export type NodeShown = RunShown['nodes'][number]
export type RunLine = AnswerOf<'runs'>['runs'][number]

/** Mark and color of each state, and its rank when not all agents fit on the screen. */
export const STATE_STYLES: Record<NodeState, { mark: string; style: Style | undefined; rank: number }> = {
  asking: { mark: '?', style: 'magenta', rank: 0 },
  running: { mark: '▸', style: 'cyan', rank: 1 },
  validating: { mark: '▸', style: 'cyan', rank: 1 },
  fixing: { mark: '▸', style: 'yellow', rank: 1 },
  preparing: { mark: '▸', style: undefined, rank: 1 },
  retrying: { mark: '↻', style: 'yellow', rank: 2 },
  failed: { mark: '✗', style: 'red', rank: 3 },
  ready: { mark: '·', style: undefined, rank: 4 },
  waiting: { mark: '·', style: 'dim', rank: 5 },
  skipped: { mark: '–', style: 'yellow', rank: 6 },
  cancelled: { mark: '–', style: 'yellow', rank: 6 },
  completed: { mark: '✓', style: 'green', rank: 7 },
}

export const OUTCOME_STYLE = {
  completed: 'green',
  partial: 'yellow',
  failed: 'red',
  cancelled: 'yellow',
  running: 'cyan',
} as const satisfies Record<RunLine['state'], Style>

/** Exit codes of `orc run`. */
export const RUN_EXIT_CODE: Record<RunOutcome, number> = {
  completed: 0,
  failed: 9,
  partial: 10,
  cancelled: 11,
}
