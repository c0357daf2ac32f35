import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Launch, ProgramLaunchOptions } from '../program.ts'
import { conversationGone, executableOf } from '../settings.ts'
import { writeExtension } from './extension.ts'
import { GeminiSavedState } from './saved-state.ts'
import { GeminiSettings } from './settings.ts'

const INSTALLED = { program: 'Gemini CLI', install: 'npm install --global @google/gemini-cli' }

/** Writes the program's files into the agent's folder. The user's own files are linked, not changed. */
export async function prepareLaunch(options: ProgramLaunchOptions): Promise<Launch> {
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
    const place = join(to, name)
    // Keeps what the program itself put in place of a link, or before the user had the original.
    if ((await isThere(place)) && (await linkOf(place)) === undefined) continue
    if ((await linkOf(place)) === target) continue
    await rm(place, { force: true })
    await symlink(target, place)
  }
}

const linkOf = (path: string) => readlink(path).catch(() => undefined)

const isThere = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  )
