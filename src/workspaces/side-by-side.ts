import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { allOrNone, type TakeBack, takingBack } from './all-or-none.ts'
import { makeWithParents, removeFolder } from './folder.ts'
import { copyOutbox } from './keep-outputs.ts'
import type { Limits } from './limits.ts'
import { attempt, type Outcome, type Problem } from './problem.ts'

export interface AgentFolder {
  readonly name: string
  readonly workspace: string
}

export interface SideBySide {
  /** For each agent, what was left out and why. */
  readonly leftOut: readonly (readonly Problem[])[]
  /** For whoever cannot use it after all. */
  readonly undo: TakeBack
}

/** Copies the outputs of some agents to new folders `{to}/{agent}`: of all, or of none. What was there before stays as it is. */
export async function copySideBySide(
  agents: readonly AgentFolder[],
  to: string,
  options: { readonly limits: Limits; readonly signal?: AbortSignal },
): Promise<Outcome<SideBySide>> {
  const copied = await allOrNone((made) => copyAll(agents, to, options, made))
  if (!copied.ok) return copied
  const { value: leftOut, undo } = copied.value
  return { ok: true, value: { leftOut, undo } }
}

async function copyAll(
  agents: readonly AgentFolder[],
  to: string,
  options: { readonly limits: Limits; readonly signal?: AbortSignal },
  made: TakeBack[],
): Promise<Outcome<readonly (readonly Problem[])[]>> {
  const above = await attempt(to, () => makeWithParents(to))
  if (!above.ok) return above
  const first = above.value
  if (first !== undefined) made.push(takingBack(first, () => removeFolder(first)))
  // Before anything is copied: one that is there holds what is not ours to mix with, or to take away again.
  for (const { name } of agents) {
    const target = join(to, name)
    const begun = await attempt(target, () => mkdirSync(target))
    if (!begun.ok) return begun
    made.push(takingBack(target, () => removeFolder(target)))
  }
  const leftOut: (readonly Problem[])[] = []
  for (const { name, workspace } of agents) {
    const copied = await copyOutbox(workspace, join(to, name), options)
    if (!copied.ok) return copied
    leftOut.push(copied.value)
  }
  return { ok: true, value: leftOut }
}
