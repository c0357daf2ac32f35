const NOTICES_KEPT = 50

/** Text put before the next turn, since ACP has no other channel for it: the role, and notices. */
interface TurnPrefix {
  /** Puts the role before the next turn. */
  roleIsDue(occasion: Parameters<typeof frameRole>[1]): void
  add(notice: string): void
  /**
   * Returns the turn with everything due before it; call `given` once the agent has it, otherwise it stays
   * due.
   */
  before(turn: string): { text: string; given(): void }
}

export function createTurnPrefix(prompt: string): TurnPrefix {
  let occasion: Parameters<typeof frameRole>[1] | undefined
  let notices: string[] = []
  return {
    roleIsDue(why) {
      occasion = why
    },
    add(notice) {
      notices = [...notices, notice].slice(-NOTICES_KEPT)
    },
    before(turn) {
      const role = occasion
      const told = notices
      const text = [...(role === undefined ? [] : [frameRole(prompt, role)]), ...told, turn].join('\n\n')
      return {
        text,
        given() {
          if (occasion === role) occasion = undefined
          notices = notices.filter((notice) => !told.includes(notice))
        },
      }
    },
  }
}

/** The role inside a turn, in a frame that the scanner skips when an agent quotes it (C4). */
function frameRole(prompt: string, occasion: 'start' | 'resumed' | 'compacted'): string {
  return [
    '[ORCHUB MESSAGE role]',
    'From: orchestrator',
    `Title: ${TITLES[occasion]}`,
    '',
    prompt,
    '',
    '[END ORCHUB MESSAGE role]',
  ].join('\n')
}

const TITLES = {
  start: 'Your role, and how to work with the other agents. Do not reply.',
  resumed: 'Your role again, because this conversation was resumed. Do not reply.',
  compacted: 'Your role again, because your context was compacted. Do not reply.',
} as const
