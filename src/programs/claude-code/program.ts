import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { FollowerLog } from '../line-follower.ts'
import type { AgentProgram, Launch, ProgramLaunchOptions } from '../program.ts'
import { conversationGone, executableOf, settingsProblems, sharedSettings } from '../settings.ts'
import { ClaudeSavedState, followSession } from './session.ts'

/** Claude Code in a terminal: its hooks and its transcript show its activity and its text. */
export function createClaudeCode({ log }: { readonly log: FollowerLog }): AgentProgram {
  return {
    name: 'claude-code',
    resumes: true,
    check: (settings) =>
      settingsProblems('claude-code', ClaudeCodeSettings, settings, ({ args }) =>
        args.flatMap((arg, index) =>
          RESERVED_FLAGS.includes(arg.split('=', 1)[0]!)
            ? [{ path: ['args', index], message: `Orchub sets ${arg}`, hint: 'Remove it.' }]
            : [],
        ),
      ),
    launch: prepareLaunch,
    follow: (options, pane, port) => followSession(options, pane, port, log),
  }
}

const ROLE_FILE = 'claude-role.md'
const SETTINGS_FILE = 'claude-settings.json'
const MCP_FILE = 'claude-mcp.json'

const INSTALLED = { program: 'Claude Code', install: 'npm install --global @anthropic-ai/claude-code' }

/**
 * An approval may take days (C9); after its default timeout of ten minutes the program would continue without
 * us.
 */
const DIALOG_SECONDS = 14 * 24 * 3600
const HOOK_SECONDS = 60

/** Over HTTP, so that no process is started for them. */
const HTTP_HOOKS: Readonly<Record<string, number>> = {
  UserPromptSubmit: HOOK_SECONDS,
  PermissionRequest: DIALOG_SECONDS,
  PostToolUse: HOOK_SECONDS,
  PostToolUseFailure: HOOK_SECONDS,
  Stop: HOOK_SECONDS,
  StopFailure: HOOK_SECONDS,
  SessionEnd: HOOK_SECONDS,
}

/**
 * Writes the program's files into the agent's folder. The user's own settings, hooks and servers stay in
 * force.
 */
async function prepareLaunch(options: ProgramLaunchOptions): Promise<Launch> {
  const settings = ClaudeCodeSettings.parse(options.settings ?? {})
  const executable = await executableOf(settings, options, INSTALLED)
  const resumed = conversationOf(options)
  const sessionId = randomUUID()
  const savedState: ClaudeSavedState = resumed ?? {
    sessionId,
    begun: sessionId,
    configFolder: configFolderOf(settings),
    since: Date.now(),
    earlier: [],
    withdrawn: [],
  }
  const file = (name: string) => join(options.folder, name)
  await mkdir(options.folder, { recursive: true, mode: 0o700 })
  await writeFile(file(ROLE_FILE), options.prompt)
  await writeFile(file(SETTINGS_FILE), `${JSON.stringify(settingsOf(options.url), null, 2)}\n`)
  await writeFile(file(MCP_FILE), `${JSON.stringify(serversOf(options.url), null, 2)}\n`)
  return {
    argv: [
      executable,
      ...(resumed === undefined
        ? ['--session-id', savedState.sessionId]
        : ['--resume', savedState.sessionId]),
      ...['--permission-mode', settings.permission_mode],
      ...(settings.model === undefined ? [] : ['--model', settings.model]),
      // Part of every request's system prompt, so that the role survives a compaction and a resume.
      ...['--append-system-prompt-file', file(ROLE_FILE)],
      ...['--settings', file(SETTINGS_FILE)],
      ...settings.args,
      // Last, because it takes all arguments up to the next flag.
      ...['--mcp-config', file(MCP_FILE)],
    ],
    env: {
      // A suggested prompt in the input box looks like a draft, and costs a model call.
      CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: 'false',
      ...settings.env,
    },
    savedState,
  }
}

/** The conversation to resume, if any: the program stores none before its first prompt. */
function conversationOf({ name, resume }: ProgramLaunchOptions): ClaudeSavedState | undefined {
  const savedState = ClaudeSavedState.safeParse(resume).data
  if (savedState?.transcript === undefined) return undefined
  if (existsSync(savedState.transcript)) return { ...savedState, statusFile: undefined }
  if (savedState.position === undefined) return undefined
  throw conversationGone(name, savedState.sessionId, savedState.transcript)
}

function configFolderOf({ env }: ClaudeCodeSettings): string {
  const home = env.HOME ?? process.env.HOME ?? homedir()
  return env.CLAUDE_CONFIG_DIR ?? process.env.CLAUDE_CONFIG_DIR ?? join(home, '.claude')
}

/** Merged with the user's and the project's own settings; lists of hooks and permissions are joined. */
function settingsOf(url: string) {
  const post = (timeout: number) => ({
    type: 'http',
    url: `${url}/hooks`,
    headers: { Authorization: 'Bearer $ORC_TOKEN' },
    // Without this, Claude Code does not expand the variable above.
    allowedEnvVars: ['ORC_TOKEN'],
    timeout,
  })
  const http = Object.entries(HTTP_HOOKS).map(([event, timeout]) => [event, [{ hooks: [post(timeout)] }]])
  return {
    hooks: {
      // Claude Code sends no SessionStart over HTTP.
      SessionStart: [{ hooks: [{ type: 'command', command: '"$ORC_BIN" hook', timeout: HOOK_SECONDS }] }],
      ...Object.fromEntries(http),
    },
    // The team's rules, not a dialog, decide what an agent may send to the service.
    permissions: { allow: ['mcp__orc'] },
  }
}

function serversOf(url: string) {
  return {
    mcpServers: {
      orc: {
        type: 'http',
        url: `${url}/mcp`,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the program puts the variable in
        headers: { Authorization: 'Bearer ${ORC_TOKEN}' },
        // Otherwise newer versions hide tools behind a search.
        alwaysLoad: true,
      },
    },
  }
}

const PERMISSION_MODES = ['default', 'acceptEdits', 'plan', 'auto', 'dontAsk', 'bypassPermissions'] as const

/** Flags that Orchub sets itself: given twice, the last one would win and cut the agent off. */
const RESERVED_FLAGS = [
  '--settings',
  '--session-id',
  '--resume',
  '-r',
  '--continue',
  '-c',
  '--fork-session',
  '--append-system-prompt-file',
  '--permission-mode',
  '--print',
  '-p',
  '--bare',
  '--safe-mode',
]

const ClaudeCodeSettings = z.strictObject({
  ...sharedSettings('claude'),
  model: z.string().min(1).optional().describe('The model, such as opus or claude-sonnet-5.'),
  permission_mode: z
    .enum(PERMISSION_MODES)
    .default('default')
    .describe('What it may do without asking; its permission requests go to people.'),
})
type ClaudeCodeSettings = z.output<typeof ClaudeCodeSettings>
