import type { FollowerLog } from '../line-follower.ts'
import type { AgentProgram } from '../program.ts'
import { prepareLaunch } from './launch.ts'
import { openSession } from './session.ts'
import { checkSettings } from './settings.ts'

interface GeminiOptions {
  readonly log: FollowerLog
}

/** Gemini CLI in a terminal: its hooks and its transcript show its activity and its text. */
export function createGemini({ log }: GeminiOptions): AgentProgram {
  return {
    name: 'gemini',
    resumes: true,
    check: checkSettings,
    launch: prepareLaunch,
    follow: async (options, pane, port) => openSession(options, pane, port, log),
  }
}
