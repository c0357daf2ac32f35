import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../base/errors.ts'
import { isRunning } from '../../base/process.ts'
import type { AgentProgram, FollowOptions, Pane } from '../program.ts'
import { prepareLaunch, readPassword, USERNAME } from './launch.ts'
import { OpenCodeSavedState } from './saved-state.ts'
import { connectServer, type OpenCodeServer, ServerError } from './server.ts'
import { openSession } from './session.ts'
import { checkSettings } from './settings.ts'
import { viewOf } from './terminal-view.ts'

/** opencode compiles plugins and reads its database first, and several agents may start at once. */
const START_MS = 120_000
const LOOK_MS = 100
const LOST_CONVERSATION = 'If it was deleted, reset the agent to start a new one.'

interface OpencodeOptions {
  readonly log: { warn(fields: Record<string, unknown>, text: string): void }
}

/** opencode, controlled by its own HTTP API beside its terminal interface. */
export function createOpencode({ log }: OpencodeOptions): AgentProgram {
  return {
    name: 'opencode',
    resumes: true,
    check: checkSettings,
    launch: prepareLaunch,
    async follow(options, pane, port) {
      const savedState = OpenCodeSavedState.parse(options.savedState)
      const password = await readPassword(options.folder)
      const server = connectServer({ port: savedState.port, username: USERNAME, password })
      // A program found running may be stopped or hang; don't wait for it.
      if (!options.isReattached) await untilReady(server, pane, options, savedState)
      return openSession({
        name: options.name,
        found: options.isReattached,
        savedState,
        server,
        port,
        view: async () => viewOf(await pane.screen()),
        warn: (fields, text) => log.warn({ agent: options.name, ...fields }, text),
      })
    },
  }
}

async function untilReady(
  server: OpenCodeServer,
  pane: Pane,
  options: FollowOptions,
  savedState: OpenCodeSavedState,
): Promise<void> {
  const wanted = savedState.conversations.at(-1)?.id
  const until = Date.now() + START_MS
  let last: unknown
  while (isRunning(pane.pid) && Date.now() < until) {
    options.signal?.throwIfAborted()
    try {
      await server.ready()
      if (wanted !== undefined) await server.conversation(wanted)
      return
    } catch (error) {
      last = error
      if (error instanceof ServerError && error.kind === 'answered') break
      await sleep(LOOK_MS)
    }
  }
  options.signal?.throwIfAborted()
  if (wanted !== undefined && last instanceof ServerError && last.status === 404) {
    throw new AppError('NOT_FOUND', `opencode has no conversation ${wanted} for ${options.name}`, {
      hint: LOST_CONVERSATION,
      data: { conversation: wanted },
    })
  }
  // Usually its server ends before it could report it: an unknown conversation ends it, without a message on
  // the screen.
  if (wanted !== undefined && !isRunning(pane.pid)) {
    throw new AppError('RUNTIME_FAILED', `opencode exited instead of resuming the conversation ${wanted}`, {
      hint: `Run \`opencode --session ${wanted}\` in ${options.cwd} to see why. ${LOST_CONVERSATION}`,
      data: { conversation: wanted },
      cause: last,
    })
  }
  throw new AppError('RUNTIME_FAILED', `opencode did not start for ${options.name}`, {
    hint: `Run \`opencode --port ${savedState.port}\` in ${options.cwd} to see why.`,
    data: { port: savedState.port, alive: isRunning(pane.pid) },
    cause: last,
  })
}
