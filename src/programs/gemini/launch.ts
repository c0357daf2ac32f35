import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Launch, LaunchOrder } from '../program.ts'
import { conversationGone, executableOf } from '../settings.ts'
import { writeExtension } from './extension.ts'
import { mirrorHome } from './home.ts'
import { Kept } from './kept.ts'
import { GeminiSettings } from './settings.ts'

const INSTALLED = { program: 'Gemini CLI', install: 'npm install --global @google/gemini-cli' }

/** Writes what the program needs into the agent's folder. The user's own files are linked there, not touched. */
export async function prepareLaunch(order: LaunchOrder): Promise<Launch> {
  const settings = GeminiSettings.parse(order.settings ?? {})
  const executable = await executableOf(settings, order, INSTALLED)
  const resumed = conversationOf(order)
  const kept: Kept = resumed ?? {
    sessionId: randomUUID(),
    // All of its transcript is this agent's, and not measured by a clock that may be set back.
    since: 0,
    earlier: [],
    unread: [],
    isPrompted: false,
  }
  const home = join(order.folder, 'gemini-home')
  await mirrorHome(join(homeOf(settings), '.gemini'), join(home, '.gemini'))
  await writeExtension(join(home, '.gemini'), { url: order.url, role: order.prompt })
  return {
    argv: [
      executable,
      ...(resumed === undefined ? ['--session-id', kept.sessionId] : ['--resume', kept.sessionId]),
      ...(settings.model === undefined ? [] : ['--model', settings.model]),
      ...settings.args,
    ],
    env: { ...settings.env, GEMINI_CLI_HOME: home },
    kept,
  }
}

/** The conversation to take up, if there is one: none can be taken up before its first prompt. */
function conversationOf({ name, resume }: LaunchOrder): Kept | undefined {
  const kept = Kept.safeParse(resume).data
  if (kept?.transcript === undefined || !kept.isPrompted) return undefined
  if (existsSync(kept.transcript)) return kept
  throw conversationGone(name, kept.sessionId, kept.transcript)
}

function homeOf({ env }: GeminiSettings): string {
  return env.GEMINI_CLI_HOME ?? process.env.GEMINI_CLI_HOME ?? env.HOME ?? process.env.HOME ?? homedir()
}
