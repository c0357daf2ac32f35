/** Where things are in the folder of a run. No agent's name begins with `_` or holds a dot, so that nothing of ours meets theirs. */
import { join } from 'node:path'

/** Of a run in the folder of its plan. */
export function placeOfRun(folder: string, id: string): string {
  return join(folder, 'runs', id)
}

export function workspaceOf(place: string, agent: string): string {
  return join(place, agent)
}

/** What an attempt printed. */
export function logOf(place: string, agent: string, attempt: number): string {
  return join(place, '_logs', `${agent}.${attempt}.log`)
}

/** With what exit code a command ended, written by its own shell: for a service that was away meanwhile. */
export function exitFileOf(place: string, agent: string, attempt: number): string {
  return join(place, '_logs', `${agent}.${attempt}.exit`)
}

/** Inputs that were put right, by their places in the inbox. */
export function correctionsOf(place: string, agent: string): string {
  return join(place, '_fixed', agent)
}

/** Where a fixer works. */
export function fixOf(place: string, agent: string, fix: number): string {
  return join(place, '_fixes', `${agent}.${fix}`)
}

export function outputsOf(place: string): string {
  return join(place, '_outputs')
}

export function reportOf(place: string, form: 'md' | 'html'): string {
  return join(place, `report.${form}`)
}
