import { existsSync } from 'node:fs'
import type { BodyOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Client } from '../../../client/client.ts'
import { isUnreachable } from '../../connection/stored-runs.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { isOpen, lookAtRun, untilReported } from './read-run.ts'
import type { RunShown } from './run-state.ts'

/** The run to continue, as it was when the command was typed. */
export interface RunBefore {
  id: string
  at: number
  /** Undefined: only a service knows. */
  run: RunShown | undefined
}

/** Call it before a service is started: that continues an open run by itself, and may end it soon. */
export async function seenBefore(location: TeamLocation, id: string): Promise<RunBefore> {
  const at = Date.now()
  const { configFile } = location
  if (!process.env.ORC_URL && configFile !== undefined && !existsSync(configFile)) {
    throw new AppError('NOT_FOUND', `There is no run ${id} here`, {
      hint: 'Say it in the folder of its plan, or name the team with --config FILE.',
    })
  }
  const seen = await lookAtRun(location, id).catch((error: unknown) => {
    if (!isUnreachable(error)) throw error
  })
  return { id, at, run: seen?.run }
}

/** Rejoins an open run or starts another round of an ended one. Returns a sentence that says which. */
export async function resumeRun(
  client: Client,
  location: TeamLocation,
  { id, at, run }: RunBefore,
  order: BodyOf<'resumeRun'>,
): Promise<string> {
  const seen = run ?? (await client.run(id))
  const { resumed, round } = await client.resumeRun(id, {
    ...order,
    round: await meantRound(location, seen, at),
  })
  if (resumed) return `${id} is taken up again, round ${round}.`
  if (round > seen.round) return `${id} was taken up by another, round ${round}.`
  return isOpen(seen) ? `${id} has not ended and goes on.` : `${id} has ended meanwhile.`
}

/**
 * The round that was open when the command was typed, or else the next. If a service continued the run before it was seen,
 * the run itself says when it ended.
 */
async function meantRound(location: TeamLocation, seen: RunShown, typedAt: number): Promise<number> {
  if (!isOpen(seen)) return hasEndedSince(seen, typedAt) ? seen.round : seen.round + 1
  // A cancelled round is not worth rejoining.
  if (seen.cancelled === undefined) return seen.round
  return isOpen(await untilReported(location, seen.id)) ? seen.round : seen.round + 1
}

/** Compares times of this machine only: a service elsewhere has another clock, and `orc run` does not start it. */
function hasEndedSince({ ended_at }: RunShown, at: number): boolean {
  return !process.env.ORC_URL && ended_at !== undefined && Date.parse(ended_at) >= at
}
