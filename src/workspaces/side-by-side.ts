import { join } from 'node:path'
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
  /** Takes away what was made, for whoever cannot use it after all. */
  undo(): Promise<void>
}

/** Copies the outputs of some agents to `{to}/{agent}/…`: of all, or of none. What was there before stays. */
export async function copySideBySide(
  agents: readonly AgentFolder[],
  to: string,
  options: { readonly limits: Limits; readonly signal?: AbortSignal },
): Promise<Outcome<SideBySide>> {
  const made: string[] = []
  const leftOut: (readonly Problem[])[] = []
  const undo = async () => {
    for (const folder of made.reverse()) await removeFolder(folder)
  }
  let isWhole = false
  try {
    for (const { name, workspace } of agents) {
      const target = join(to, name)
      const first = await attempt(target, () => makeWithParents(target))
      if (!first.ok) return first
      if (first.value !== undefined) made.push(first.value)
      const copied = await copyOutbox(workspace, target, options)
      if (!copied.ok) return copied
      leftOut.push(copied.value)
    }
    isWhole = true
    return { ok: true, value: { leftOut, undo } }
  } finally {
    if (!isWhole) await undo()
  }
}
