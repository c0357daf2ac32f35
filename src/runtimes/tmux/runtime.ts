/** Agents in the panes of a tmux server of our own, which outlives the service. */
import { mkdir } from 'node:fs/promises'
import { z } from 'zod'
import { AppError } from '../../model/errors.ts'
import type { Pane, Program } from '../../programs/program.ts'
import { type Clock, unlessGone, within } from '../clock.ts'
import { endProcesses } from '../processes.ts'
import type { AgentSettings, AgentStart, Runtime, Session, SessionPort } from '../runtime.ts'
import { IN_SESSION, isSameServer } from './connection.ts'
import { ControlLost } from './control.ts'
import { serverEnvironment } from './environment.ts'
import { createLauncher } from './launcher.ts'
import { clearAway, findAgain } from './leftovers.ts'
import type { Log } from './log.ts'
import { createPane } from './pane.ts'
import { takeUpInput } from './pending-input.ts'
import { type Kept, readKept } from './saved-state.ts'
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
const CALLED_OFF_MS = 3000

interface Following {
  agent: AgentStart
  program: Program
  port: SessionPort
  kept: Kept
  isFound: boolean
}

export function createTmuxRuntime(options: TmuxOptions): Runtime {
  const { socket, clock, log, bin, tmux = 'tmux', panesPerWindow = PANES_PER_WINDOW } = options
  const programs = new Map(options.programs.map((program) => [program.name, program]))
  const env = serverEnvironment(process.env)
  const server = createServer({ socket, command: tmux, env, clock, log })
  const launch = createLauncher({
    server,
    panesPerWindow,
    bin,
    environment: options.environment ?? process.env,
  })

  async function start(agent: AgentStart, port: SessionPort): Promise<Session> {
    const program = programOf(agent)
    const starting = findOrLaunch(agent, program, port)
    try {
      return await unlessGone(starting, agent.gone)
    } catch (error) {
      // Called off, it ends what it has started; only a tmux that hangs is not waited for.
      const ended = starting.then((session) => session.stop()).catch(() => {})
      await within(clock, CALLED_OFF_MS, ended)
      throw asReadable(error, program)
    }
  }

  async function discard(value: unknown) {
    const kept = readKept(value)
    if (kept === undefined) return
    await endProcesses({ mark: kept.mark, leader: 'process' in kept ? kept.process : undefined })
    if (!('pane' in kept) || !isSameServer(kept.server, await server.connect())) return
    await server.run(['kill-pane', '-t', kept.pane]).catch(() => {})
  }

  async function findOrLaunch(agent: AgentStart, program: Program, port: SessionPort): Promise<Session> {
    const { name, folder, gone } = agent
    const identity = await server.connect()
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const earlier = readKept(agent.kept)
    const isSameProgram = earlier?.programName === program.name
    const found = isSameProgram ? await findAgain(server, identity, earlier) : undefined
    gone?.throwIfAborted()
    await clearAway(server, { name, folder, earlier, found })
    if (found !== undefined) {
      try {
        return await follow({ agent, program, port, kept: found, isFound: true })
      } catch (error) {
        // It is tmux that does not answer: the agent is as well as it was.
        if (error instanceof ControlLost || gone?.aborted) throw error
        const reason = asReadable(error, program).message
        log.warn({ agent: name, reason }, 'it was found again, but cannot be followed: it is started anew')
        await clearAway(server, { name, folder, earlier, found: undefined })
      }
    }
    const resume = isSameProgram ? earlier.program : undefined
    const kept = await launch({ agent, program, identity, resume, keep: port.keep })
    return follow({ agent, program, port, kept, isFound: false })
  }

  async function find(agent: AgentStart, port: SessionPort): Promise<Session | undefined> {
    const program = programOf(agent)
    const earlier = readKept(agent.kept)
    if (earlier?.programName !== program.name) return undefined
    const found = await findAgain(server, await server.connect(), earlier)
    return found === undefined
      ? undefined
      : await follow({ agent, program, port, kept: found, isFound: true })
  }

  async function follow({ agent, program, port, kept, isFound }: Following): Promise<Session> {
    const { name, settings, cwd, folder, nonce, gone } = agent
    const left = isFound ? await takeUpInput(server, clock, kept.pane) : undefined
    const pane = createPane({
      ...{ server, clock, log, id: kept.pane, pid: kept.process.pid, folder, isFound, left },
      onWaits: port.waits,
    })
    const order = { name, settings, cwd, folder, nonce, kept: kept.program, found: isFound, gone }
    const processes = { mark: kept.mark, leader: kept.process }
    try {
      return await startSession({
        ...{ server, clock, log, name, pane, processes, port, gone },
        view: ['tmux', '-L', socket, 'attach-session', '-t', await targetOf(kept.pane)],
        follow: (changed) => program.follow(order, pane, portOf(port, kept, pane, changed)),
      })
    } catch (error) {
      // One that was found is ended by who asked for it, if it is to be ended.
      if (!isFound || gone?.aborted) await endAgent(pane, processes)
      throw error
    }
  }

  function programOf({ program }: AgentSettings): Program {
    const found = programs.get(program ?? '')
    if (found !== undefined) return found
    throw new AppError('CONFIG_INVALID', `no program ${JSON.stringify(program)} runs in tmux`, {
      hint: `Programs: ${[...programs.keys()].join(', ')}.`,
    })
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
    find,
    discard,
    close: () => server.close(),
  }
}

/** For the program, which knows of nothing but what it keeps itself. */
function portOf(port: SessionPort, kept: Kept, pane: Pane, changed: SessionPort['changed']): SessionPort {
  return {
    ...port,
    changed,
    arrived(ids, state, evidence) {
      if (state === 'submitted' || state === 'read') pane.taken(ids)
      port.arrived(ids, state, evidence)
    },
    keep: (value) => port.keep({ ...kept, program: value }),
  }
}

/** A schema's own words are for us, and far too many. */
function asReadable(error: unknown, program: Program): Error {
  if (error instanceof z.ZodError) {
    const problems = error.issues.map(({ path, message }) => `${path.join('.') || 'all of it'}: ${message}`)
    const message = `${program.name} can make nothing of what it was given (${problems.join('; ')})`
    return new AppError('RUNTIME_FAILED', message, { cause: error })
  }
  return error instanceof Error ? error : new Error(String(error))
}
