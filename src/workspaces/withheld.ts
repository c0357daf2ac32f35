import { type BigIntStats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { problem, refuse, type WorkspaceProblem } from './problem.ts'

/** Something of the orchestrator's own that may lie below a folder of the user's. */
export interface Withheld {
  readonly path: string
  /** For messages: `is the store of the service`. */
  readonly what: string
  /** Never given to agents, even if a plan names it. */
  readonly isSecret: boolean
}

export interface WithheldSeen {
  /** Why it is not taken; undefined: it is. */
  whyNot(stat: BigIntStats, shown: string): WorkspaceProblem | undefined
  /** Throws where a path leads into a secret. */
  refuseWithin(path: string, shown: string): void
}

/** Compares by device and inode, because several names may lead to one folder. */
export function lookForWithheld(withheld: readonly Withheld[]): WithheldSeen {
  const known = new Map<string, Withheld>()
  for (const one of withheld) {
    const stat = statSync(one.path, { bigint: true, throwIfNoEntry: false })
    if (stat !== undefined) known.set(identity(stat), one)
  }
  return {
    whyNot(stat, shown) {
      const what = known.get(identity(stat))?.what
      return what === undefined ? undefined : problem('withheld', shown, what)
    },
    refuseWithin(path, shown) {
      for (const id of known.size === 0 ? [] : identitiesAbove(path)) {
        const one = known.get(id)
        if (one?.isSecret) refuse('withheld', shown, `cannot be an input: ${one.path} ${one.what}`)
      }
    },
  }
}

/** True if a path without links is that folder, or is below it. */
export function isWithin(path: string, folder: string): boolean {
  const stat = statSync(folder, { bigint: true, throwIfNoEntry: false })
  return stat !== undefined && identitiesAbove(path).includes(identity(stat))
}

/** The identities of the path itself and of all folders above it. */
function identitiesAbove(path: string): string[] {
  const above = dirname(path)
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  const own = stat === undefined ? [] : [identity(stat)]
  return above === path ? own : [...own, ...identitiesAbove(above)]
}

function identity({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`
}
