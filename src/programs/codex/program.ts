import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { AppError } from '../../base/errors.ts'
import { isRunning } from '../../base/process.ts'
import type { AgentProgram, FollowOptions, Pane } from '../program.ts'
import { type LaunchSurroundings, LOG, prepareLaunch } from './launch.ts'
import { CodexSavedState } from './saved-state.ts'
import { openSession } from './session.ts'
import { checkSettings } from './settings.ts'

/**
 * For its server, its screen and its conversation. A question it asks first (folder, login) may take a person
 * longer.
 */
const START_MS = 20_000
const LOOK_MS = 100

interface CodexOptions extends Partial<LaunchSurroundings> {
  readonly log: { warn(fields: Record<string, unknown>, text: string): void }
}

/** Codex, controlled through its own app-server beside its terminal interface. */
export function createCodex({ log, now = Date.now, environment = process.env }: CodexOptions): AgentProgram {
  return {
    name: 'codex',
    resumes: true,
    check: checkSettings,
    launch: (options) => prepareLaunch(options, { now, environment }),
    async follow(request, pane, port) {
      const savedState = CodexSavedState.parse(request.savedState)
      const warn = (fields: Record<string, unknown>, text: string) =>
        log.warn({ agent: request.name, ...fields }, text)
      const { session, ready } = openSession({ savedState, port, pane, now, warn })
      // A program found running may be stopped or hang; don't wait for it.
      if (request.isReattached) return session
      const began = await Promise.race([
        ready.then(() => 'ready' as const),
        watchStart(pane, ready, request.signal),
      ])
      if (began === 'called off' || began === 'ended') {
        await session.close('leave')
        throw began === 'ended' ? await failure(request, savedState) : request.signal!.reason
      }
      if (began === 'late')
        port.onStateChange('initializing', 'Codex has not opened a conversation yet; look at its pane')
      return session
    },
  }
}

async function watchStart(
  pane: Pane,
  ready: Promise<void>,
  signal: AbortSignal | undefined,
): Promise<'ended' | 'late' | 'called off'> {
  let isReady = false
  void ready.then(() => {
    isReady = true
  })
  for (let waited = 0; waited < START_MS && !isReady; waited += LOOK_MS) {
    await sleep(LOOK_MS)
    if (signal?.aborted) return 'called off'
    if (!isRunning(pane.pid)) return 'ended'
  }
  return 'late'
}

async function failure(options: FollowOptions, savedState: CodexSavedState): Promise<AppError> {
  const words = await lastWords(join(options.folder, LOG))
  const wanted = savedState.threads.at(-1)?.id
  if (
    wanted !== undefined &&
    words.some((line) => line.includes(`No saved session found with ID ${wanted}`))
  ) {
    return new AppError('NOT_FOUND', `Codex has no conversation ${wanted} for ${options.name}`, {
      hint: 'It was deleted or belongs to another user. Reset the agent to start a new conversation.',
      data: { conversation: wanted },
    })
  }
  return new AppError('PROGRAM_FAILED', `Codex exited while starting for ${options.name}`, {
    hint: `Its last output: ${words.slice(-6).join(' ') || 'none'}`,
    data: { log: words },
  })
}

/** Codex's error output without colours and backtraces. */
async function lastWords(log: string): Promise<string[]> {
  const text = await readFile(log, 'utf8').catch(() => '')
  return stripVTControlCharacters(text)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(?:Stack backtrace:|\d+: |at |WARNING: )/.test(line))
    .slice(-20)
}
