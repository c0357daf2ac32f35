import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { z } from 'zod'
import { AppError } from '../../base/errors.ts'
import { isRunning } from '../../base/process.ts'
import type { FollowerLog } from '../line-follower.ts'
import type { AgentProgram, Launch, Pane, ProgramFollowOptions, ProgramLaunchOptions } from '../program.ts'
import { conversationGone, executableOf, settingsProblems, sharedSettings } from '../settings.ts'
import { openSession } from './session.ts'
import { CodexSavedState, type CodexSavedThread } from './thread-follower.ts'

/**
 * For its server, its screen and its conversation. A question it asks first (folder, login) may take a person
 * longer.
 */
const START_MS = 20_000
const LOOK_MS = 100

/** Codex, controlled through its own app-server beside its terminal interface. */
export function createCodex({ log }: { readonly log: FollowerLog }): AgentProgram {
  return {
    name: 'codex',
    resumes: true,
    check: (settings) =>
      settingsProblems('codex', CodexSettings, settings, ({ args }) =>
        args.flatMap((argument, index) => {
          const hint = RESERVED_ARGUMENTS[argument.split('=')[0]!]
          return hint === undefined ? [] : [{ path: ['args', index], message: 'Orchub sets this', hint }]
        }),
      ),
    launch: prepareLaunch,
    async follow(request, pane, port) {
      const savedState = CodexSavedState.parse(request.savedState)
      const warn: FollowerLog['warn'] = (fields, text) => log.warn({ agent: request.name, ...fields }, text)
      const { session, ready } = openSession({ savedState, port, pane, warn })
      // A program found running may be stopped or hang; don't wait for it.
      if (request.isReattached) return session
      const began = await Promise.race([
        ready.then(() => 'ready' as const),
        watchStart(pane, ready, request.signal),
      ])
      if (began === 'cancelled' || began === 'ended') {
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
): Promise<'ended' | 'late' | 'cancelled'> {
  let isReady = false
  void ready.then(() => {
    isReady = true
  })
  for (let waited = 0; waited < START_MS && !isReady; waited += LOOK_MS) {
    await sleep(LOOK_MS)
    if (signal?.aborted) return 'cancelled'
    if (!isRunning(pane.pid)) return 'ended'
  }
  return 'late'
}

async function failure(options: ProgramFollowOptions, savedState: CodexSavedState): Promise<AppError> {
  const lines = await lastErrorOutput(join(options.folder, LOG))
  const wanted = savedState.threads.at(-1)?.id
  if (
    wanted !== undefined &&
    lines.some((line) => line.includes(`No saved session found with ID ${wanted}`))
  ) {
    return new AppError('NOT_FOUND', `Codex has no conversation ${wanted} for ${options.name}`, {
      hint: 'It was deleted or belongs to another user. Reset the agent to start a new conversation.',
      data: { conversation: wanted },
    })
  }
  return new AppError('PROGRAM_FAILED', `Codex exited while starting for ${options.name}`, {
    hint: `Its last output: ${lines.slice(-6).join(' ') || 'none'}`,
    data: { log: lines },
  })
}

/** Codex's error output without colours and backtraces. */
async function lastErrorOutput(log: string): Promise<string[]> {
  const text = await readFile(log, 'utf8').catch(() => '')
  return stripVTControlCharacters(text)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(?:Stack backtrace:|\d+: |at |WARNING: )/.test(line))
    .slice(-20)
}

const SCRIPT = 'codex.sh'
const SOCKET = 'codex.sock'
/** Error output of both its processes. */
const LOG = 'codex.log'

const INSTALLED = { program: 'Codex', install: 'npm install --global @openai/codex' }

/** Writes the pane's script into the agent's folder; the user's own files stay unchanged. */
async function prepareLaunch(options: ProgramLaunchOptions): Promise<Launch> {
  const settings = CodexSettings.parse(options.settings ?? {})
  const executable = await executableOf(settings, options, INSTALLED)
  const resumed = CodexSavedState.safeParse(options.resume).data
  const thread = resumed?.threads.at(-1)
  if (thread !== undefined) assertStillThere(thread, options.name)

  const socket = join(options.folder, SOCKET)
  await mkdir(options.folder, { recursive: true, mode: 0o700 })
  // Left by an earlier start: the script waits for a new socket.
  for (const old of [socket, join(options.folder, LOG)]) await rm(old, { force: true })
  const script = join(options.folder, SCRIPT)
  const server = ['app-server', '--listen', `unix://${socket}`, ...serverOptions(options, settings)]
  const tui = [
    ...(thread === undefined ? [] : ['resume', thread.id]),
    ...['--remote', `unix://${socket}`, '--cd', options.cwd],
    ...tuiOptions(settings),
  ]
  await writeFile(script, renderScript({ executable, server, tui, socket, log: join(options.folder, LOG) }), {
    mode: 0o700,
  })
  return {
    argv: ['/bin/sh', script],
    env: settings.env,
    savedState: { ...(resumed ?? { threads: [] }), socket, launchedAt: Date.now() } satisfies CodexSavedState,
  }
}

/**
 * Codex would report it too, but on a screen that vanishes at once. It compresses and archives files as it
 * likes.
 */
function assertStillThere({ id, rollout }: CodexSavedThread, agent: string): void {
  if (rollout === undefined) return
  const home = rollout.slice(0, rollout.lastIndexOf('/sessions/'))
  const files = [rollout, `${rollout}.zst`, join(home, 'archived_sessions', basename(rollout))]
  if (!files.some((file) => existsSync(file))) throw conversationGone(agent, id, rollout)
}

/**
 * The server owns the conversation's configuration. Developer instructions are repeated to the model after a
 * resume and a compaction, so that the role survives both.
 */
function serverOptions(request: ProgramLaunchOptions, settings: CodexSettings): string[] {
  const options = {
    developer_instructions: toml(request.prompt),
    'mcp_servers.orc.url': toml(`${request.url}/mcp`),
    'mcp_servers.orc.bearer_token_env_var': toml('ORC_TOKEN'),
    // The team's rules, not a dialog per message, decide what an agent may ask of the team.
    'mcp_servers.orc.default_tools_approval_mode': toml('approve'),
    // As a table: a dotted path would be split at the dots of the folder's name.
    ...(settings.trust_folder ? { projects: `{${toml(request.cwd)}={trust_level="trusted"}}` } : {}),
  }
  const ours = Object.entries(options).flatMap(([key, value]) => ['-c', `${key}=${value}`])
  return [...configArguments(settings.args), ...ours]
}

/** The pane's program passes it to the server with each thread. */
function tuiOptions({ args, model, sandbox, approval_policy }: CodexSettings): string[] {
  return [
    ...(model === undefined ? [] : ['--model', model]),
    ...(sandbox === undefined ? [] : ['--sandbox', sandbox]),
    ...(approval_policy === undefined ? [] : ['--ask-for-approval', approval_policy]),
    ...args,
  ]
}

/** The user's arguments that the server needs too: the pane's program does not pass them on. */
function configArguments(args: readonly string[]): string[] {
  const passed: string[] = []
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index]!
    if (/^(-c|--config|--enable|--disable)$/.test(argument)) {
      passed.push(argument, ...args.slice(index + 1, index + 2))
      index += 1
    } else if (/^(-c.|--config=|--enable=|--disable=)/.test(argument)) passed.push(argument)
  }
  return passed
}

/** JSON strings are TOML strings, except for DEL and lone surrogates. */
function toml(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll('\u007F', '\\u007F')
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

interface WrapperScript {
  executable: string
  server: readonly string[]
  tui: readonly string[]
  socket: string
  log: string
}

/**
 * Two processes in the pane's process group that live and die together. The app-server would finish its turn
 * before it obeys the first signal, and two servers must never write one conversation: so it is signalled
 * twice, then killed.
 */
function renderScript({ executable, server, tui, socket, log }: WrapperScript): string {
  const command = (args: readonly string[]) => [executable, ...args].map(shellWord).join(' ')
  return `#!/bin/sh
# Rewritten at each start of this agent.
socket=${shellWord(socket)}
log=${shellWord(log)}
trap : HUP INT QUIT TERM
(
  trap : HUP INT QUIT TERM
  ${command(server)} </dev/null >>"$log" 2>&1
  kill -TERM 0
) &
server=$!
until [ -S "$socket" ]; do
  kill -0 "$server" 2>/dev/null || { tail -n 20 "$log"; exit 1; }
  sleep 0.05
done
${command(tui)} 2>>"$log"
code=$?
[ "$code" = 0 ] || { echo; tail -n 5 "$log"; }
for pause in 0.2 0.2 1; do
  kill -0 "$server" 2>/dev/null || exit "$code"
  kill -TERM 0
  sleep "$pause"
done
kill -0 "$server" 2>/dev/null && kill -KILL 0
exit "$code"
`
}

const CodexSettings = z.strictObject({
  ...sharedSettings('codex'),
  args: z
    .array(z.string())
    .default([])
    .describe('Additional arguments, such as --search, or -c with KEY=VALUE of its config.toml.'),
  model: z.string().min(1).optional().describe('Overrides the model in its config.toml.'),
  sandbox: z
    .enum(['read-only', 'workspace-write', 'danger-full-access'])
    .optional()
    .describe('What its commands may do without asking; overrides its config.toml.'),
  approval_policy: z
    .enum(['on-request', 'never'])
    .optional()
    .describe('When it asks a person for permission; overrides its config.toml.'),
  trust_folder: z
    .boolean()
    .default(false)
    .describe(
      "Trusts its working folder, including everything that the folder's settings may run, without asking in the pane.",
    ),
})
type CodexSettings = z.output<typeof CodexSettings>

/** Arguments that would take the conversation out of our control. */
const RESERVED_ARGUMENTS: Readonly<Record<string, string>> = {
  '--remote': 'Orchub connects Codex to its own app-server to deliver messages; remove the argument.',
  '--cd': 'Set the working folder with `cwd:`.',
  '-C': 'Set the working folder with `cwd:`.',
}
