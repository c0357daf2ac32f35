import { attempt, failed, type Outcome, type Problem } from './problem.ts'

/** Takes back what was made, and gives what of it stays, with why. */
export type TakeBack = () => Promise<readonly Problem[]>

/** For what is made step by step: each says how it is taken back, and all are if it does not come to its end. */
export async function allOrNone<T>(
  work: (made: TakeBack[]) => Promise<Outcome<T>>,
): Promise<Outcome<{ readonly value: T; readonly undo: TakeBack }>> {
  const made: TakeBack[] = []
  const undo = async () => {
    const left: Problem[] = []
    for (const takeBack of made.toReversed()) left.push(...(await takeBack()))
    return left
  }
  let outcome: Outcome<T> | undefined
  try {
    outcome = await work(made)
  } finally {
    if (outcome === undefined) await undo()
  }
  return outcome.ok
    ? { ok: true, value: { value: outcome.value, undo } }
    : failed(...outcome.problems, ...(await undo()))
}

export function takingBack(place: string, remove: () => void | Promise<void>): TakeBack {
  return async () => {
    const removed = await attempt(place, remove)
    return removed.ok ? [] : removed.problems
  }
}
