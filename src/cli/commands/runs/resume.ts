import { existsSync } from 'node:fs'
import type { BodyOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Client } from '../../../client/client.ts'
import { isUnreachable } from '../../connection/stored-runs.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { isOpen, lookAtRun, untilReported } from './read-run.ts'
import type { RunShown } from './run-state.ts'

/** The run that is to go on, as it is when that is typed. */
export interface RunBefore {
  id: string
  at: number
  /** Undefined: only a service can tell. */
  run: RunShown | undefined
}

/** Before a service is started, which takes up an open run by itself and may have ended it when it is asked. */
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

/** Comes back to a run, or takes up one that has ended; tells which. */
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
 * That which was open when it was typed, else the next. Where a service took it up before it was seen, the run itself
 * says when it ended.
 */
async function meantRound(location: TeamLocation, seen: RunShown, typedAt: number): Promise<number> {
  if (!isOpen(seen)) return hasEndedSince(seen, typedAt) ? seen.round : seen.round + 1
  // Whoever has cancelled it does not mean to come back to that.
  if (seen.cancelled === undefined) return seen.round
  return isOpen(await untilReported(location, seen.id)) ? seen.round : seen.round + 1
}

/** By one clock only: that of a service elsewhere may be another, and such a one is not started by us. */
function hasEndedSince({ ended_at }: RunShown, at: number): boolean {
  return !process.env.ORC_URL && ended_at !== undefined && Date.parse(ended_at) >= at
}
