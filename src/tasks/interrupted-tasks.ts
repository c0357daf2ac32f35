/**
 * Tasks that were ended while their workers were at them: a report without an id may be a late one of these. Known until
 * the worker's next turn is over; of an agent that has no turns, until it has read of the end.
 */
export interface CutShort {
  add(agent: string, task: string): void
  turnBegan(agent: string): void
  turnEnded(agent: string): void
  /** The agent has read that this task has ended. */
  told(agent: string, task: string): void
  forget(agent: string): void
  /** The last of them. */
  of(agent: string): string | undefined
}

/** `hasTurns`: those of the agent are known. */
export function createCutShort(hasTurns: (agent: string) => boolean): CutShort {
  const cut = new Map<string, { tasks: Set<string>; isNextTurn: boolean }>()

  return {
    add(agent, task) {
      const tasks = cut.get(agent)?.tasks ?? new Set()
      cut.set(agent, { tasks: tasks.add(task), isNextTurn: false })
    },
    turnBegan(agent) {
      const known = cut.get(agent)
      if (known?.isNextTurn) cut.delete(agent)
      else if (known !== undefined) known.isNextTurn = true
    },
    turnEnded(agent) {
      if (cut.get(agent)?.isNextTurn) cut.delete(agent)
    },
    told(agent, task) {
      const known = cut.get(agent)
      if (known === undefined || hasTurns(agent)) return
      known.tasks.delete(task)
      if (known.tasks.size === 0) cut.delete(agent)
    },
    forget: (agent) => void cut.delete(agent),
    of: (agent) => [...(cut.get(agent)?.tasks ?? [])].at(-1),
  }
}
