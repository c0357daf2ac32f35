/** Starts an agent in its own pane, by a script that contains its token and deletes itself. */
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentProgram, Launch } from '../../programs/program.ts'
import { environmentOf } from '../environment.ts'
import { processStartedAt } from '../processes.ts'
import type { AgentStart, SessionPort } from '../runtime.ts'
import { IN_SESSION, type ServerIdentity, TmuxRefused } from './connection.ts'
import { writeLaunchFile } from './launch-file.ts'
import { LOG_FILE, pipeCommand } from './pane.ts'
import { AGENT_OPTION, MARK_OPTION, type TmuxSavedLaunch, type TmuxSavedState } from './saved-state.ts'
import { TERM, type TmuxServer } from './server.ts'

interface LauncherOptions {
  server: TmuxServer
  panesPerWindow: number
  bin: string
  /** Source of the agents' environments. */
  environment: Readonly<NodeJS.ProcessEnv>
}

interface LaunchRequest {
  agent: AgentStart
  program: AgentProgram
  identity: ServerIdentity
  /** Saved state of the conversation to resume. */
  resume: unknown
  save: SessionPort['saveState']
}

export function createLauncher({ server, panesPerWindow, bin, environment }: LauncherOptions) {
  let lastPlacement: Promise<unknown> = Promise.resolve()

  /** Launches run one at a time, because each looks for a window with room. */
  function placeNext(): Promise<string> {
    const placed = lastPlacement.then(() => placePane(server, panesPerWindow))
    lastPlacement = placed.catch(() => {})
    return placed
  }

  /** Starts and pipes in one command line, so that the log misses no output. */
  async function run(path: string, { name, folder }: AgentStart, launched: Launch, mark: string) {
    const pane = await placeNext()
    const set = (option: string, value: string) => ['set-option', '-p', '-t', pane, option, value]
    const pipe = ['pipe-pane', '-t', pane, pipeCommand(join(folder, LOG_FILE))]
    const blocks = await server.run(
      set('remain-on-exit', 'on'),
      set('@orc_title', name),
      set(AGENT_OPTION, name),
      set(MARK_OPTION, mark),
      ['respawn-pane', '-k', '-t', pane, '/bin/sh', path],
      ...(launched.isLogged ? [pipe] : []),
      ['display-message', '-p', '-t', pane, '#{pane_pid}'],
    )
    return { pane, pid: Number(blocks.at(-1)!.lines[0]) }
  }

  return async ({ agent, program, identity, resume, save }: LaunchRequest): Promise<TmuxSavedState> => {
    const { name, cwd, folder } = agent
    const credentials = await agent.credentials({ isResumed: program.resumes && resume !== undefined })
    const launched = await program.launch({ ...agent, ...credentials, resume })
    const mark = randomBytes(12).toString('hex')
    const env = environmentOf({
      ...{ from: environment, term: TERM, extra: launched.env },
      ...{ agent: name, mark, bin, credentials },
    })
    const before: TmuxSavedLaunch = { mark, programName: program.name, program: resume }
    await save(before)
    // From here on the session owns the process and ends it.
    agent.signal?.throwIfAborted()
    const path = await writeLaunchFile(folder, { argv: launched.argv, cwd, env })
    try {
      const { pane, pid } = await run(path, agent, launched, mark)
      const process = { pid, startedAt: (await processStartedAt(pid)) ?? 'gone' }
      const savedState = { ...before, program: launched.savedState, pane, server: identity, process }
      await save(savedState)
      return savedState
    } catch (error) {
      // The script deletes itself when run; if it never ran, delete it here.
      await rm(path, { force: true })
      throw error
    }
  }
}

/** Marks our windows; people may have their own in the session. */
const TEAM_OPTION = '@orc_team'
/** Holds the pane until the agent starts in it, so that options are set first and no output is missed. */
const PLACEHOLDER = ['sleep', '2000000000']

/** Returns the id of a new pane: a fixed number per window, tiled, with the agent's name above each. */
async function placePane(server: TmuxServer, panesPerWindow: number): Promise<string> {
  const windows = await server.run([
    ...['list-windows', '-t', IN_SESSION, '-F', `#{window_id} #{window_panes} #{${TEAM_OPTION}}`],
  ])
  for (const line of windows[0]!.lines) {
    const [window, panes, isOurs] = line.split(' ')
    if (isOurs !== '1' || Number(panes) >= panesPerWindow) continue
    const placed = await splitWindow(server, window!)
    if (placed !== undefined) return placed
  }
  return openWindow(server)
}

async function splitWindow(server: TmuxServer, window: string): Promise<string | undefined> {
  try {
    const blocks = await server.run(
      ['split-window', '-d', '-t', window, '-P', '-F', '#{pane_id}', ...PLACEHOLDER],
      ['select-layout', '-t', window, 'tiled'],
    )
    return blocks[0]!.lines[0]!
  } catch (error) {
    // A person's terminal is too small for one more pane.
    if (error instanceof TmuxRefused) return undefined
    throw error
  }
}

async function openWindow(server: TmuxServer): Promise<string> {
  const blocks = await server.run([
    ...['new-window', '-d', '-t', IN_SESSION, '-n', 'agents', '-P', '-F', '#{window_id} #{pane_id}'],
    ...PLACEHOLDER,
  ])
  const [window, pane] = blocks[0]!.lines[0]!.split(' ') as [string, string]
  const set = (name: string, value: string) => ['set-option', '-w', '-t', window, name, value]
  await server.run(
    set(TEAM_OPTION, '1'),
    set('pane-border-status', 'top'),
    // Programs may change a pane's own title; the agent's name must stay.
    set('pane-border-format', ' #{@orc_title} '),
    set('automatic-rename', 'off'),
    set('allow-rename', 'off'),
  )
  return pane
}
