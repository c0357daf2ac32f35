import { isDaemonUp } from '../../store/daemons.ts'
import type { Reader, Store, Tx } from '../../store/store.ts'
import type { TaskEventType } from '../core/events-and-effects.ts'
import { lockTask, updateTask } from '../store.ts'
import type { Task, TaskClaim, Validator } from '../task.ts'

/** `orphaned`: the daemon that owned the claim is gone. */
type ValidationProgress = 'queued' | 'running' | 'orphaned'

/**
 * Stores with each claim which daemon validates it and whether that has begun, because any of several daemons on one
 * store may see the claim's timer fire.
 */
export function createClaimOwners({ daemon, epoch }: Pick<Store, 'daemon' | 'epoch'>) {
  function ownedHere(task: Task, begun: boolean): Task {
    return { ...task, claim: { ...task.claim!, validator: { daemon, epoch, begun } } }
  }

  async function isOwnedElsewhere(
    reader: Reader,
    { daemon: name }: Validator,
    now: number,
  ): Promise<boolean> {
    return name !== daemon && (await isDaemonUp(reader, name, now))
  }

  return {
    /** The daemon that moves a claim to a step owns that step. */
    assign(before: Task, event: TaskEventType, after: Task): Task {
      const begun = event === 'validation_began'
      if (!needsValidation(after) || (!begun && isSameStep(before.claim, after.claim))) return after
      return ownedHere(after, begun)
    },
    async progressOf(reader: Reader, { claim }: Task, now: number): Promise<ValidationProgress> {
      const validator = claim?.validator
      if (validator === undefined) return 'orphaned'
      const isHere = validator.daemon === daemon && validator.epoch === epoch
      if (!isHere && !(await isOwnedElsewhere(reader, validator, now))) return 'orphaned'
      const isSameStart = isHere || (await isDaemonUp(reader, validator.daemon, now, validator.epoch))
      // A restarted daemon queues its claims again.
      return validator.begun && isSameStart ? 'running' : 'queued'
    },
    /** Queues the claim here. Undefined if this or another running daemon already validates it. */
    async take(tx: Tx, id: string, isValidating: (task: Task) => boolean): Promise<Task | undefined> {
      const task = await lockTask(tx, id)
      if (task === undefined || !needsValidation(task) || isValidating(task)) return undefined
      const { validator } = task.claim!
      if (validator !== undefined && (await isOwnedElsewhere(tx, validator, tx.now))) return undefined
      const taken = ownedHere(task, false)
      updateTask(tx, task, taken)
      return taken
    },
  }
}

export type ClaimOwners = ReturnType<typeof createClaimOwners>

/** Whether the service must run checks or a model. A review by an agent needs no daemon. */
export function needsValidation({ claim }: Task): boolean {
  return claim !== null && claim.review === undefined
}

function isSameStep(one: TaskClaim | null, other: TaskClaim | null): boolean {
  return one?.number === other?.number && one?.step === other?.step
}
