import { AppError } from '../base/errors.ts'
import type { Tx } from '../store/store.ts'

/** The halt in force: by whom, since when and why. */
export interface Halted {
  readonly by: string
  readonly reason: string | undefined
  readonly at: number
}

/**
 * Whether the team is halted. It is in memory, so that a halt takes effect at once, whatever waits for the disk;
 * src/halt/halt.ts stores it as well.
 */
export interface HaltState {
  halted(): Halted | undefined
  /** The time for the clocks of tasks: during a halt, the moment it began. */
  now(tx: Tx): number
  /** Why nothing can be done now; undefined outside of a halt and in the transaction that ends it. */
  refusal(tx?: Tx): AppError | undefined
  /** Why nothing can be approved now. Rejections and answers are always accepted. */
  noApproval(tx: Tx): AppError | undefined
  begin(halted: Halted): void
  /** The rest of this transaction happens after the halt; everyone else sees its end after the commit. */
  endIn(tx: Tx): void
  end(): void
}

export function createHaltState(): HaltState {
  let current: Halted | undefined
  /** A batch that is rolled back and run again has another transaction. */
  const endedIn = new WeakSet<Tx>()

  function refuse(what: string, hint: string, tx: Tx | undefined): AppError | undefined {
    if (current === undefined || (tx !== undefined && endedIn.has(tx))) return undefined
    return new AppError('HALTED', `${what}: ${describeHalt(current)}`, { hint })
  }

  return {
    halted: () => current,
    now: (tx) => (current === undefined || endedIn.has(tx) ? tx.now : Math.min(current.at, tx.now)),
    refusal: (tx) => refuse('Nothing was done', FOR_AGENTS, tx),
    noApproval: (tx) => refuse('Nothing can be approved now', FOR_PEOPLE, tx),
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
  'End your turn and wait. A message tells you when work continues; send the command again then if you still need it.'
const FOR_PEOPLE = 'Reject it now, or approve it after `orc service go`.'

export function describeHalt({ by, reason, at }: Halted): string {
  const why = reason === undefined ? '' : `: ${reason}`
  return `${by} stopped everything at ${new Date(at).toISOString()}${why}`
}
