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

/** It compiles plugins and reads its database first; several agents may start at once. */
const START_MS = 120_000
const LOOK_MS = 100
const LOST_CONVERSATION = 'If it was deleted, reset the agent to begin a new one.'

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
    async follow(order, pane, port) {
      const kept = OpenCodeSavedState.parse(order.savedState)
      const password = await readPassword(order.folder)
      const server = connectServer({ port: kept.port, username: USERNAME, password })
      // A program found running may be stopped or hang; don't wait for it.
      if (!order.isReattached) await untilReady(server, pane, order, kept)
      return openSession({
        name: order.name,
        found: order.isReattached,
        kept,
        server,
        port,
        view: async () => viewOf(await pane.screen()),
        warn: (fields, text) => log.warn({ agent: order.name, ...fields }, text),
      })
    },
  }
}

async function untilReady(
  server: OpenCodeServer,
  pane: Pane,
  order: FollowOptions,
  kept: OpenCodeSavedState,
): Promise<void> {
  const wanted = kept.conversations.at(-1)?.id
  const until = Date.now() + START_MS
  let last: unknown
  while (isRunning(pane.pid) && Date.now() < until) {
    order.signal?.throwIfAborted()
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
  order.signal?.throwIfAborted()
  if (wanted !== undefined && last instanceof ServerError && last.status === 404) {
    throw new AppError('NOT_FOUND', `opencode has no conversation ${wanted} for ${order.name}`, {
      hint: LOST_CONVERSATION,
      data: { conversation: wanted },
    })
  }
  // Usually its server ends before it could report it: an unknown conversation ends it, without a message on
  // the screen.
  if (wanted !== undefined && !isRunning(pane.pid)) {
    throw new AppError('RUNTIME_FAILED', `opencode ended when it was to take up the conversation ${wanted}`, {
      hint: `\`opencode --session ${wanted}\` in ${order.cwd} says why. ${LOST_CONVERSATION}`,
      data: { conversation: wanted },
      cause: last,
    })
  }
  throw new AppError('RUNTIME_FAILED', `opencode did not start for ${order.name}`, {
    hint: `\`opencode --port ${kept.port}\` in ${order.cwd} says why.`,
    data: { port: kept.port, alive: isRunning(pane.pid) },
    cause: last,
  })
}
