/** Agents in the panes of a tmux server of our own, which outlives the service. */
import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../model/errors.ts'
import type { Launch, Program } from '../../programs/program.ts'
import type { Clock } from '../clock.ts'
import { environmentOf } from '../environment.ts'
import { startOf } from '../process-table.ts'
import { endProcesses } from '../processes.ts'
import type { AgentSettings, AgentStart, Runtime, SessionPort } from '../runtime.ts'
import { IN_SESSION, isSameServer, type ServerIdentity } from './connection.ts'
import { serverEnvironment, TERM } from './environment.ts'
import { type Kept, readKept } from './kept.ts'
import { writeLaunchFile } from './launch-file.ts'
import type { Log } from './log.ts'
import { createPane, LOG_FILE, pipeCommand } from './pane.ts'
import { placePane } from './placement.ts'
import { createServer } from './server.ts'
import { endAgent, startSession } from './session.ts'

export interface TmuxOptions {
  /** The name of the server's socket (`tmux -L`): one per team, and nobody else's. */
  socket: string
  programs: readonly Program[]
  clock: Clock
  log: Log
  /** Our own executable, for hooks that are commands: ORC_BIN. */
  bin: string
  /** Panes of one window, tiled. */
  panesPerWindow?: number
  /** What agents' environments are drawn from: the service's own, unless a test says otherwise. */
  environment?: Readonly<NodeJS.ProcessEnv>
  tmux?: string
}

const PANES_PER_WINDOW = 4

export function createTmuxRuntime(options: TmuxOptions): Runtime {
  const { socket, clock, log, bin, tmux = 'tmux', panesPerWindow = PANES_PER_WINDOW } = options
  const programs = new Map(options.programs.map((program) => [program.name, program]))
  const env = serverEnvironment(process.env)
  const server = createServer({ socket, command: tmux, env, clock, log })
  let placing: Promise<unknown> = Promise.resolve()

  /** One after the other: each looks for a window with room. */
  function place() {
    const placed = placing.then(() => placePane(server, panesPerWindow))
    placing = placed.catch(() => {})
    return placed
  }

  async function start(agent: AgentStart, port: SessionPort) {
    const program = programOf(agent)
    const identity = await server.connect()
    await mkdir(agent.folder, { recursive: true, mode: 0o700 })
    const earlier = readKept(agent.kept)
    const found = earlier !== undefined && (await isStillThere(earlier, identity)) ? earlier : undefined
    if (earlier !== undefined && found === undefined) await clearAway(earlier, identity)
    const kept = found ?? (await launch(agent, program, identity, earlier))
    if (found === undefined) await port.keep(kept)
    else await server.run(['select-pane', '-e', '-t', found.pane])

    const pane = createPane({
      ...{ server, clock, id: kept.pane, pid: kept.process.pid, folder: agent.folder },
      isFound: found !== undefined,
    })
    const { name, settings, cwd, folder, nonce } = agent
    const order = { name, settings, cwd, folder, nonce, kept: kept.program, found: found !== undefined }
    const processes = { mark: kept.mark, leader: kept.process }
    const session = startSession({
      ...{ server, clock, log, name, pane, processes, port },
      view: ['tmux', '-L', socket, 'attach-session', '-t', await targetOf(kept.pane)],
      follow: () =>
        program.follow(order, pane, { ...port, keep: (value) => port.keep({ ...kept, program: value }) }),
    })
    return session.catch(async (error: unknown) => {
      // One that was found again is not ours to end because we cannot follow it.
      if (found === undefined) await endAgent(pane, processes)
      throw error
    })
  }

  function programOf({ program }: AgentSettings): Program {
    const found = programs.get(program ?? '')
    if (found !== undefined) return found
    throw new AppError('CONFIG_INVALID', `no program ${JSON.stringify(program)} runs in tmux`, {
      hint: `Programs: ${[...programs.keys()].join(', ')}.`,
    })
  }

  /** The very process in the very pane. */
  async function isStillThere(kept: Kept, identity: ServerIdentity): Promise<boolean> {
    if (!isSameServer(kept.server, identity)) return false
    const panes = await server.run([
      ...['list-panes', '-s', '-t', IN_SESSION, '-F', '#{pane_id} #{pane_dead} #{pane_pid}'],
    ])
    const isListed = panes[0]!.lines.includes(`${kept.pane} 0 ${kept.process.pid}`)
    return isListed && (await startOf(kept.process.pid)) === kept.process.startedAt
  }

  /** What an earlier launch left: a dead pane that still shows its end, processes that outlived their terminal. */
  async function clearAway(kept: Kept, identity: ServerIdentity) {
    await endProcesses({ mark: kept.mark, leader: kept.process })
    if (isSameServer(kept.server, identity)) await server.run(['kill-pane', '-t', kept.pane]).catch(() => {})
  }

  async function launch(
    agent: AgentStart,
    program: Program,
    identity: ServerIdentity,
    earlier: Kept | undefined,
  ): Promise<Kept> {
    const { name, prompt, settings, cwd, folder, nonce } = agent
    const credentials = await agent.credentials()
    const order = { name, prompt, settings, cwd, folder, nonce, ...credentials, resume: earlier?.program }
    const launched = await program.launch(order)
    const mark = randomBytes(12).toString('hex')
    const env = environmentOf({
      ...{ from: options.environment ?? process.env, term: TERM, further: launched.env },
      ...{ agent: name, mark, bin, credentials },
    })
    const path = await writeLaunchFile(folder, { argv: launched.argv, cwd, env })
    const { pane, pid } = await run(path, agent, launched)
    const startedAt = (await startOf(pid)) ?? 'gone'
    return { pane, server: identity, process: { pid, startedAt }, mark, program: launched.kept }
  }

  /** Started and piped in one go, so that the log has its first word. */
  async function run(path: string, { name, folder }: AgentStart, launched: Launch) {
    const { pane } = await place()
    const set = (option: string, value: string) => ['set-option', '-p', '-t', pane, option, value]
    const pipe = ['pipe-pane', '-t', pane, pipeCommand(join(folder, LOG_FILE))]
    const blocks = await server.run(
      set('remain-on-exit', 'on'),
      set('@orc_title', name),
      ['respawn-pane', '-k', '-t', pane, '/bin/sh', path],
      ...(launched.isLogged ? [pipe] : []),
      ['display-message', '-p', '-t', pane, '#{pane_pid}'],
    )
    return { pane, pid: Number(blocks.at(-1)!.lines[0]) }
  }

  async function targetOf(pane: string): Promise<string> {
    const [where] = await server.run(['display-message', '-p', '-t', pane, '#{window_id}'])
    return `${IN_SESSION}${where!.lines[0]}.${pane}`
  }

  return {
    name: 'tmux',
    check(agent) {
      const program = programs.get(agent.program ?? '')
      if (program !== undefined) return program.check(agent.settings)
      const hint = `Programs that run in tmux: ${[...programs.keys()].join(', ')}.`
      return [{ path: [], message: `no such program: ${agent.program ?? 'none is named'}`, hint }]
    },
    start,
    close: () => server.close(),
  }
}
