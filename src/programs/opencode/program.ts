import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { AppError } from '../../base/errors.ts'
import { isRunning } from '../../base/process.ts'
import type { FollowerLog } from '../line-follower.ts'
import type { AgentProgram, Launch, Pane, ProgramFollowOptions, ProgramLaunchOptions } from '../program.ts'
import { executableOf, settingsProblems, sharedSettings } from '../settings.ts'
import { OpenCodeSavedState } from './conversations.ts'
import { connectServer, type OpenCodeServer, ServerError } from './server.ts'
import { openSession } from './session.ts'
import { viewOf } from './terminal-view.ts'

/** opencode compiles plugins and reads its database first, and several agents may start at once. */
const START_MS = 120_000
const LOOK_MS = 100
const LOST_CONVERSATION = 'If it was deleted, reset the agent to start a new one.'

/** opencode, controlled by its own HTTP API beside its terminal interface. */
export function createOpencode({ log }: { readonly log: FollowerLog }): AgentProgram {
  return {
    name: 'opencode',
    resumes: true,
    check: (settings) =>
      settingsProblems('opencode', OpencodeSettings, settings, ({ env }) =>
        Object.entries(RESERVED_VARIABLES)
          .filter(([name]) => name in env)
          .map(([name, hint]) => ({ path: ['env', name], message: 'Orchub sets this', hint })),
      ),
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
  options: ProgramFollowOptions,
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

const ROLE_FILE = 'opencode-role.md'
/** Neither in the store nor in argv: its holder can answer the agent's permission dialogs. */
const PASSWORD_FILE = 'opencode-password'
const USERNAME = 'orchub'
const INSTALLED = { program: 'opencode', install: 'npm install --global opencode-ai' }

/** Writes the role and the server's password into the agent's folder; the user's own files stay unchanged. */
async function prepareLaunch(options: ProgramLaunchOptions): Promise<Launch> {
  const settings = OpencodeSettings.parse(options.settings ?? {})
  const executable = await executableOf(settings, options, INSTALLED)
  const resumed = OpenCodeSavedState.safeParse(options.resume).data
  const conversation = resumed?.conversations.at(-1)?.id
  const port = await findFreePort()
  const password = randomBytes(24).toString('base64url')
  const roleFile = join(options.folder, ROLE_FILE)
  await mkdir(options.folder, { recursive: true, mode: 0o700 })
  await writeFile(roleFile, options.prompt)
  await writeFile(join(options.folder, PASSWORD_FILE), password, { mode: 0o600 })
  return {
    argv: [
      executable,
      ...['--hostname', '127.0.0.1', '--port', String(port)],
      ...(conversation === undefined ? [] : ['--session', conversation]),
      ...settings.args,
    ],
    env: {
      ...settings.env,
      OPENCODE_CONFIG_CONTENT: JSON.stringify(configOf(settings, options.url, roleFile)),
      OPENCODE_SERVER_USERNAME: USERNAME,
      OPENCODE_SERVER_PASSWORD: password,
    },
    savedState: { ...(resumed ?? { conversations: [] }), port } satisfies OpenCodeSavedState,
  }
}

/**
 * Merged over the user's and the project's own configuration; lists of instructions are joined. Instructions
 * are part of every request's system prompt, so that the role survives a compaction and a resume.
 */
function configOf({ model, agent }: OpencodeSettings, url: string, roleFile: string) {
  return {
    instructions: [roleFile],
    mcp: {
      orc: {
        type: 'remote',
        url: `${url}/mcp`,
        headers: { Authorization: 'Bearer {env:ORC_TOKEN}' },
        oauth: false,
      },
    },
    ...(model === undefined ? {} : { model }),
    ...(agent === undefined ? {} : { default_agent: agent }),
  }
}

async function readPassword(folder: string): Promise<string> {
  return (await readFile(join(folder, PASSWORD_FILE), 'utf8')).trim()
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

/** Settings that Orchub sets itself, and a team must not override. */
const RESERVED_VARIABLES: Readonly<Record<string, string>> = {
  OPENCODE_CONFIG_CONTENT: 'Put it in a file and set OPENCODE_CONFIG to that; opencode merges both.',
  OPENCODE_SERVER_PASSWORD: 'Orchub chooses a new one for every start.',
  OPENCODE_SERVER_USERNAME: 'Orchub creates a new login for every start.',
}

const OpencodeSettings = z.strictObject({
  ...sharedSettings('opencode'),
  model: z
    .string()
    .regex(/^[^/\s]+\/\S+$/, 'must be PROVIDER/MODEL, such as anthropic/claude-sonnet-5')
    .optional()
    .describe('PROVIDER/MODEL; overrides the model in its own settings.'),
  agent: z
    .string()
    .min(1)
    .optional()
    .describe("Which of opencode's own agents (`opencode agent list`) to use."),
})
type OpencodeSettings = z.output<typeof OpencodeSettings>
