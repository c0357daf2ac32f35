/** Where things are in the folder of a run. No agent's name begins with `_` or holds a dot, so that nothing of ours meets theirs. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MESSAGES } from '../model/plan.ts'

/** Tried before it is taken for a fault. */
const MOST_PLACES = 10_000

/**
 * Makes the folder of a new run beside its plan: `runs/run_1`, and `runs/run_1.2` where another service, or one whose state is
 * gone, has left a run of that name. What lies there is not ours, and no agent may take it for its own.
 */
export function claimPlace(folder: string, id: string): string {
  mkdirSync(join(folder, 'runs'), { recursive: true })
  for (let number = 1; number <= MOST_PLACES; number++) {
    const place = join(folder, 'runs', number === 1 ? id : `${id}.${number}`)
    try {
      mkdirSync(place)
      return place
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  throw new Error(`${join(folder, 'runs')} has no place left for ${id}`)
}

export function workspaceOf(place: string, agent: string): string {
  return join(place, agent)
}

/** What an attempt printed. */
export function logOf(place: string, agent: string, attempt: number): string {
  return join(place, '_logs', `${agent}.${attempt}.log`)
}

/** With what exit code each command ended, a line from its own shell: for a service that was away meanwhile. */
export function exitsOf(place: string): string {
  return join(place, '_logs', 'exits')
}

/** Inputs that were put right, by their places in the inbox. */
export function correctionsOf(place: string, agent: string): string {
  return join(place, '_fixed', agent)
}

/** Where a fixer works. */
export function fixOf(place: string, agent: string, fix: number): string {
  return join(place, '_fixes', `${agent}.${fix}`)
}

/** The queue that the agents of a run share (S4.16). A plan that has one has no agent of that name. */
export function messagesOf(place: string): string {
  return join(place, MESSAGES)
}

export function outputsOf(place: string): string {
  return join(place, '_outputs')
}

export function reportOf(place: string, form: 'md' | 'html'): string {
  return join(place, `report.${form}`)
}
