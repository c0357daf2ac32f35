import type { FollowerLog } from '../line-follower.ts'
import type { Program } from '../program.ts'
import { prepareLaunch } from './launch.ts'
import { openSession } from './session.ts'
import { checkSettings } from './settings.ts'

export interface GeminiOptions {
  readonly log: FollowerLog
}

/** Gemini CLI in a terminal: its hooks and its transcript tell what it does and says. */
export function createGemini({ log }: GeminiOptions): Program {
  return {
    name: 'gemini',
    resumes: true,
    check: checkSettings,
    launch: prepareLaunch,
    follow: async (order, pane, port) => openSession(order, pane, port, log),
  }
}
