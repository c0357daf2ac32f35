import { frameRole } from './role.ts'

const NOTICES_KEPT = 50

/** What goes in front of the next turn, since ACP has no other way to say it: the role, and notices. */
export interface Foreword {
  /** The role is to be given, again. */
  roleIsDue(occasion: Parameters<typeof frameRole>[1]): void
  add(notice: string): void
  /** The turn with all that is due before it; `given` once the agent has it, else it stays due. */
  before(turn: string): { text: string; given(): void }
}

export function createForeword(prompt: string): Foreword {
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
