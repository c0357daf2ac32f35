import { existsSync } from 'node:fs'
import type { BodyOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Client } from '../../../client/client.ts'
import { isUnreachable } from '../../connection/stored-runs.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { isOpen, readRun, untilReported } from './read-run.ts'
import type { RunShown } from './run-state.ts'

/** The state of a run at the moment the user asked to resume it. */
export interface RunBefore {
  id: string
  at: number
  /** Undefined if only a service can read it. */
  run: RunShown | undefined
}

/** Reads the run before starting a service, because a service continues open runs by itself and may end them at once. */
export async function readBeforeResume(location: TeamLocation, id: string): Promise<RunBefore> {
  const at = Date.now()
  const { configFile } = location
  if (!process.env.ORC_URL && configFile !== undefined && !existsSync(configFile)) {
    throw new AppError('NOT_FOUND', `There is no run ${id} here`, {
      hint: 'Run this in the folder of its plan, or name the team with --config FILE.',
    })
  }
  const seen = await readRun(location, id).catch((error: unknown) => {
    if (!isUnreachable(error)) throw error
  })
  return { id, at, run: seen?.run }
}

/** Reattaches to an open run or resumes one that has ended; returns a message that says which. */
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
  if (resumed) return `Resumed ${id}, round ${round}.`
  if (round > seen.round) return `Someone else has already resumed ${id}, round ${round}.`
  return isOpen(seen) ? `${id} is still running.` : `${id} has just ended.`
}

/**
 * The round that was open when the user typed the command, otherwise the next one. If the run ended before it could be
 * read, its end time decides.
 */
async function meantRound(location: TeamLocation, seen: RunShown, typedAt: number): Promise<number> {
  if (!isOpen(seen)) return hasEndedSince(seen, typedAt) ? seen.round : seen.round + 1
  // A cancelled round isn't worth waiting for; resuming it means starting the next.
  if (seen.cancelled === undefined) return seen.round
  return isOpen(await untilReported(location, seen.id)) ? seen.round : seen.round + 1
}

/** Compares with our own clock only: a service at ORC_URL may have another clock, and we didn't start it. */
function hasEndedSince({ ended_at }: RunShown, at: number): boolean {
  return !process.env.ORC_URL && ended_at !== undefined && Date.parse(ended_at) >= at
}
