import type { FollowerLog } from '../line-follower.ts'
import type { AgentProgram } from '../program.ts'
import { prepareLaunch } from './launch.ts'
import { followSession } from './session.ts'
import { checkSettings } from './settings.ts'

interface ClaudeCodeOptions {
  readonly log: FollowerLog
}

/** Claude Code in a terminal: its hooks and its transcript show its activity and its text. */
export function createClaudeCode({ log }: ClaudeCodeOptions): AgentProgram {
  return {
    name: 'claude-code',
    resumes: true,
    check: checkSettings,
    launch: prepareLaunch,
    follow: (options, pane, port) => followSession(options, pane, port, log),
  }
}
