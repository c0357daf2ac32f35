import { AppError } from '../base/errors.ts'
import type { Tx } from '../store/store.ts'

/** Who stopped everything, when and why. */
export interface Halted {
  readonly by: string
  readonly reason: string | undefined
  readonly at: number
}

/**
 * Whether everything is halted, known to all that would act. It is a word in memory, so that it holds from one moment
 * to the next, whatever waits before the disk; src/halt/halt.ts keeps it on disk as well.
 */
export interface HaltState {
  halted(): Halted | undefined
  /** What the clocks of tasks go by: during a halt, the moment it began. */
  now(tx: Tx): number
  /** For whoever would act; undefined while all goes, and for what comes after the end in its transaction. */
  refusal(tx?: Tx): AppError | undefined
  /** For a person who would approve something now; a no, and an answer, are always taken. */
  noApproval(tx: Tx): AppError | undefined
  begin(halted: Halted): void
  /** What follows in this transaction happens after the halt; others see its end once that is on disk. */
  endIn(tx: Tx): void
  end(): void
}

export function createHaltState(): HaltState {
  let current: Halted | undefined
  /** A batch that is rolled back and run again comes with another transaction. */
  const endedIn = new WeakSet<Tx>()

  function refuse(what: string, hint: string, tx: Tx | undefined): AppError | undefined {
    if (current === undefined || (tx !== undefined && endedIn.has(tx))) return undefined
    return new AppError('HALTED', `${what}: ${describeHalt(current)}`, { hint })
  }

  return {
    halted: () => current,
    now: (tx) => (current === undefined || endedIn.has(tx) ? tx.now : Math.min(current.at, tx.now)),
    refusal: (tx) => refuse('Nothing of this was done', FOR_AGENTS, tx),
    noApproval: (tx) => refuse('Nothing is approved meanwhile', FOR_PEOPLE, tx),
    begin(halted) {
      current = halted
    },
    endIn: (tx) => void endedIn.add(tx),
    end() {
      current = undefined
    },
  }
}

const FOR_AGENTS =
  'End your turn and wait. You will be told when the work goes on; say it again then, if it still holds.'
const FOR_PEOPLE = 'Reject it now, or approve it after `orc go`.'

export function describeHalt({ by, reason, at }: Halted): string {
  const why = reason === undefined ? '' : `: ${reason}`
  return `${by} stopped everything at ${new Date(at).toISOString()}${why}`
}
