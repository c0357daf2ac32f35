import { isDaemonUp } from '../../store/daemons.ts'
import type { Reader, Store, Tx } from '../../store/store.ts'
import type { HappeningType } from '../core/event.ts'
import { lockTask, updateTask } from '../store/tasks.ts'
import type { Claim, Task, Validator } from '../task.ts'

/** `nowhere`: the daemon that had it is gone. */
export type Whereabouts = 'in_line' | 'under_way' | 'nowhere'

/**
 * Which daemon sees to a claim, and whether its turn has come there, is stored with it: where several share the store, the
 * timer of any of them may ring.
 */
export function createValidators({ daemon, epoch }: Pick<Store, 'daemon' | 'epoch'>) {
  function takenHere(task: Task, begun: boolean): Task {
    return { ...task, claim: { ...task.claim!, validator: { daemon, epoch, begun } } }
  }

  async function isElsewhere(reader: Reader, { daemon: name }: Validator, now: number): Promise<boolean> {
    return name !== daemon && (await isDaemonUp(reader, name, now))
  }

  return {
    /** The task as it is to be stored: whoever has a claim come to a step sees to that step. */
    stamped(before: Task, event: HappeningType, after: Task): Task {
      const begun = event === 'validation_began'
      if (!isOwed(after) || (!begun && isSameStep(before.claim, after.claim))) return after
      return takenHere(after, begun)
    },
    async whereabouts(reader: Reader, { claim }: Task, now: number): Promise<Whereabouts> {
      const validator = claim?.validator
      if (validator === undefined) return 'nowhere'
      const isHere = validator.daemon === daemon && validator.epoch === epoch
      if (!isHere && !(await isElsewhere(reader, validator, now))) return 'nowhere'
      const isSameStart = isHere || (await isDaemonUp(reader, validator.daemon, now, validator.epoch))
      // One that was started again has it in line again.
      return validator.begun && isSameStart ? 'under_way' : 'in_line'
    },
    /** It stands in line here from now on, unless it is seen to already, here or by another daemon that is up. */
    async take(tx: Tx, id: string, isAtIt: (task: Task) => boolean): Promise<Task | undefined> {
      const task = await lockTask(tx, id)
      if (task === undefined || !isOwed(task) || isAtIt(task)) return undefined
      const { validator } = task.claim!
      if (validator !== undefined && (await isElsewhere(tx, validator, tx.now))) return undefined
      const taken = takenHere(task, false)
      updateTask(tx, task, taken)
      return taken
    },
  }
}

export type Validators = ReturnType<typeof createValidators>

/** The service owes it a step. Reviewers are agents: they stand in no line. */
export function isOwed({ claim }: Task): boolean {
  return claim !== null && claim.review === undefined
}

function isSameStep(one: Claim | null, other: Claim | null): boolean {
  return one?.number === other?.number && one?.step === other?.step
}
