import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, mkdir, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { FollowerLog } from '../line-follower.ts'
import type { AgentProgram, Launch, ProgramLaunchOptions } from '../program.ts'
import { conversationGone, executableOf, settingsProblems, sharedSettings } from '../settings.ts'
import { GeminiSavedState } from './conversation.ts'
import { openSession } from './session.ts'

/** Gemini CLI in a terminal: its hooks and its transcript show its activity and its text. */
export function createGemini({ log }: { readonly log: FollowerLog }): AgentProgram {
  return {
    name: 'gemini',
    resumes: true,
    check: (settings) =>
      settingsProblems('gemini', GeminiSettings, settings, ({ args }) =>
        args.flatMap((argument, index) =>
          NAMES_EXTENSIONS.test(argument) ? [{ path: ['args', index], ...NEEDS_EXTENSION }] : [],
        ),
      ),
    launch: prepareLaunch,
    follow: async (options, pane, port) => openSession(options, pane, port, log),
  }
}

const INSTALLED = { program: 'Gemini CLI', install: 'npm install --global @google/gemini-cli' }

/** Writes the program's files into the agent's folder. The user's own files are linked, not changed. */
async function prepareLaunch(options: ProgramLaunchOptions): Promise<Launch> {
  const settings = GeminiSettings.parse(options.settings ?? {})
  const executable = await executableOf(settings, options, INSTALLED)
  const resumed = conversationOf(options)
  const savedState: GeminiSavedState = resumed ?? {
    sessionId: randomUUID(),
    // All of its transcript is this agent's, whatever the clock says.
    since: 0,
    earlier: [],
    unread: [],
    isPrompted: false,
  }
  const home = join(options.folder, 'gemini-home')
  await mirrorHome(join(homeOf(settings), '.gemini'), join(home, '.gemini'))
  await writeExtension(join(home, '.gemini'), { url: options.url, role: options.prompt })
  return {
    argv: [
      executable,
      ...(resumed === undefined
        ? ['--session-id', savedState.sessionId]
        : ['--resume', savedState.sessionId]),
      ...(settings.model === undefined ? [] : ['--model', settings.model]),
      ...settings.args,
    ],
    env: { ...settings.env, GEMINI_CLI_HOME: home },
    savedState,
  }
}

/** The conversation to resume, if any: none exists before its first prompt. */
function conversationOf({ name, resume }: ProgramLaunchOptions): GeminiSavedState | undefined {
  const savedState = GeminiSavedState.safeParse(resume).data
  if (savedState?.transcript === undefined || !savedState.isPrompted) return undefined
  if (existsSync(savedState.transcript)) return savedState
  throw conversationGone(name, savedState.sessionId, savedState.transcript)
}

function homeOf({ env }: GeminiSettings): string {
  return env.GEMINI_CLI_HOME ?? process.env.GEMINI_CLI_HOME ?? env.HOME ?? process.env.HOME ?? homedir()
}

/** Folders of the user to which we add entries. */
const SHARED_FOLDERS = ['extensions', 'policies'] as const

/**
 * The agent's own. When another Gemini starts in the same project, it deletes conversations that have not
 * begun, including resumed ones.
 */
const PRIVATE = ['tmp', 'history', 'projects.json', 'state.json']

/**
 * A home for Gemini CLI that links to the user's own login, settings and memory. Its system settings would
 * suffice for our additions, but it reads them only if root owns them.
 */
async function mirrorHome(user: string, mirror: string): Promise<void> {
  await mkdir(mirror, { recursive: true, mode: 0o700 })
  await mirrorEntries(user, mirror, [...SHARED_FOLDERS, ...PRIVATE])
  for (const folder of SHARED_FOLDERS) {
    await mkdir(join(mirror, folder), { recursive: true })
    await mirrorEntries(join(user, folder), join(mirror, folder), [])
  }
}

async function mirrorEntries(from: string, to: string, except: readonly string[]): Promise<void> {
  const wanted = (await readdir(from).catch(() => [])).filter((name) => !except.includes(name))
  for (const name of await readdir(to)) {
    if (!wanted.includes(name) && (await linkOf(join(to, name))) !== undefined) await rm(join(to, name))
  }
  for (const name of wanted) {
    const target = join(from, name)
    const link = join(to, name)
    // Keep a file that the program wrote itself instead of a link.
    if ((await isThere(link)) && (await linkOf(link)) === undefined) continue
    if ((await linkOf(link)) === target) continue
    await rm(link, { force: true })
    await symlink(target, link)
  }
}

const linkOf = (path: string) => readlink(path).catch(() => undefined)

const isThere = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  )

const GeminiSettings = z.strictObject({
  ...sharedSettings('gemini'),
  model: z.string().min(1).optional().describe('Overrides the model in its own settings.'),
})
type GeminiSettings = z.output<typeof GeminiSettings>

/** Only the extensions named there are loaded, including ours. */
const NAMES_EXTENSIONS = /^(?:-e|--extensions)(?:=|$)/
const NEEDS_EXTENSION = {
  message: 'would disable the extension that Orchub needs',
  hint: 'Disable single extensions with `gemini extensions disable NAME` instead.',
}

const NAME = 'orchub'
const ROLE_FILE = 'role.md'

/** Under load, the program notices the end of a hook seconds late. */
const HOOK_MS = 60_000

const HOOKS = [
  'SessionStart',
  'SessionEnd',
  'BeforeAgent',
  'AfterAgent',
  'BeforeTool',
  'AfterTool',
  'Notification',
]

/**
 * The program's own extension mechanism: role, command server and hooks in one folder. The role is part of
 * the context of every request, also after a compression or a resume.
 */
async function writeExtension(home: string, { url, role }: { url: string; role: string }): Promise<void> {
  const folder = join(home, 'extensions', NAME)
  const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`
  await mkdir(join(folder, 'hooks'), { recursive: true })
  await writeFile(join(folder, ROLE_FILE), withoutImports(role))
  await writeFile(join(folder, 'gemini-extension.json'), json(manifestOf(url)))
  await writeFile(join(folder, 'hooks', 'hooks.json'), json(hooksOf()))
  await writeFile(join(home, 'policies', `${NAME}.toml`), POLICY)
}

function manifestOf(url: string) {
  return {
    name: NAME,
    version: '1.0.0',
    description: "The agent's team.",
    contextFileName: ROLE_FILE,
    mcpServers: { orc: { httpUrl: `${url}/mcp`, headers: { Authorization: 'Bearer $ORC_TOKEN' } } },
  }
}

function hooksOf() {
  const hook = { type: 'command', name: NAME, command: '"$ORC_BIN" hook', timeout: HOOK_MS }
  return { hooks: Object.fromEntries(HOOKS.map((event) => [event, [{ hooks: [hook] }]])) }
}

/** The team's rules, not a dialog, decide what an agent may send to the service. */
const POLICY = `\
[[rule]]
mcpName = "orc"
toolName = "*"
decision = "allow"
priority = 100
`

/** In a context file, `@name` is replaced by that file; an invisible joiner after the sign prevents it. */
function withoutImports(text: string): string {
  return text.replace(/(^|\s)@(?=\S)/g, '$1@\u2060')
}
