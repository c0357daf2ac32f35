import type { FollowerLog } from '../line-follower.ts'
import type { Program } from '../program.ts'
import { prepareLaunch } from './launch.ts'
import { followSession } from './session.ts'
import { checkSettings } from './settings.ts'

export interface ClaudeCodeOptions {
  readonly log: FollowerLog
}

/** Claude Code in a terminal: its hooks and its transcript tell what it does and says. */
export function createClaudeCode({ log }: ClaudeCodeOptions): Program {
  return {
    name: 'claude-code',
    resumes: true,
    check: checkSettings,
    launch: prepareLaunch,
    follow: (order, pane, port) => followSession(order, pane, port, log),
  }
}
