/** Runs agents in panes of our own tmux server, which outlives the service. */
import { mkdir } from 'node:fs/promises'
import { z } from 'zod'
import { type Clock, unlessAborted, within } from '../../base/clock.ts'
import { AppError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { AgentProgram, Pane } from '../../programs/program.ts'
import { endProcesses } from '../processes.ts'
import type { AgentSettings, AgentStart, Runtime, Session, SessionPort } from '../runtime.ts'
import { IN_SESSION, isSameServer } from './connection.ts'
import { ControlLost } from './control.ts'
import { createLauncher } from './launcher.ts'
import { createPane } from './pane.ts'
import { readPendingInput } from './pending-input.ts'
import { cleanUpAgent, findRunningPane, readTmuxSavedState, type TmuxSavedState } from './saved-state.ts'
import { openTmuxServer, serverEnvironment } from './server.ts'
import { endAgent, startSession } from './session.ts'

export interface TmuxOptions {
  /** Name of the server's socket (`tmux -L`), unique to the team. */
  socket: string
  programs: readonly AgentProgram[]
  clock: Clock
  log: Log
  /** Path of our own executable, for hooks: ORC_BIN. */
  bin: string
  /** Panes per window, tiled. */
  panesPerWindow?: number
  /** Source of the agents' environments: the service's own, except in tests. */
  environment?: Readonly<NodeJS.ProcessEnv>
  tmux?: string
}

const PANES_PER_WINDOW = 4
const CANCEL_GRACE_MS = 3000

interface FollowRequest {
  agent: AgentStart
  program: AgentProgram
  port: SessionPort
  savedState: TmuxSavedState
  isFound: boolean
}

export function createTmuxRuntime(options: TmuxOptions): Runtime {
  const { socket, clock, log, bin, tmux = 'tmux', panesPerWindow = PANES_PER_WINDOW } = options
  const programs = new Map(options.programs.map((program) => [program.name, program]))
  const env = serverEnvironment(process.env)
  const server = openTmuxServer({ socket, command: tmux, env, clock, log })
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
      return await unlessAborted(starting, agent.signal)
    } catch (error) {
      // A cancelled start ends what it has started; don't wait for a tmux that hangs.
      const ended = starting.then((session) => session.stop()).catch(() => {})
      await within(clock, CANCEL_GRACE_MS, ended)
      throw toReadableError(error, program)
    }
  }

  async function discard(value: unknown) {
    const savedState = readTmuxSavedState(value)
    if (savedState === undefined) return
    await endProcesses({
      mark: savedState.mark,
      leader: 'process' in savedState ? savedState.process : undefined,
    })
    if (!('pane' in savedState) || !isSameServer(savedState.server, await server.connect())) return
    await server.run(['kill-pane', '-t', savedState.pane]).catch(() => {})
  }

  async function findOrLaunch(agent: AgentStart, program: AgentProgram, port: SessionPort): Promise<Session> {
    const { name, folder, signal } = agent
    const identity = await server.connect()
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const earlier = readTmuxSavedState(agent.savedState)
    const isSameProgram = earlier?.programName === program.name
    const found = isSameProgram ? await findRunningPane(server, identity, earlier) : undefined
    signal?.throwIfAborted()
    await cleanUpAgent(server, { name, folder, earlier, found })
    if (found !== undefined) {
      try {
        return await follow({ agent, program, port, savedState: found, isFound: true })
      } catch (error) {
        // tmux does not respond; the agent itself is unaffected.
        if (error instanceof ControlLost || signal?.aborted) throw error
        const reason = toReadableError(error, program).message
        log.warn({ agent: name, reason }, 'reattaching failed; starting the agent again')
        await cleanUpAgent(server, { name, folder, earlier, found: undefined })
      }
    }
    const resume = isSameProgram ? earlier.program : undefined
    const saved = await launch({ agent, program, identity, resume, save: port.saveState })
    return follow({ agent, program, port, savedState: saved, isFound: false })
  }

  async function find(agent: AgentStart, port: SessionPort): Promise<Session | undefined> {
    const program = programOf(agent)
    const earlier = readTmuxSavedState(agent.savedState)
    if (earlier?.programName !== program.name) return undefined
    const found = await findRunningPane(server, await server.connect(), earlier)
    return found === undefined
      ? undefined
      : await follow({ agent, program, port, savedState: found, isFound: true })
  }

  async function follow({ agent, program, port, savedState, isFound }: FollowRequest): Promise<Session> {
    const { name, folder, signal } = agent
    const { pane: id, process } = savedState
    const pendingInput = isFound ? await readPendingInput(server, clock, id) : undefined
    const pane = createPane({
      ...{ server, clock, log, id, pid: process.pid, folder, isFound, pendingInput },
      onBlocked: port.onObstacle,
    })
    const request = { ...agent, savedState: savedState.program, isReattached: isFound }
    const processes = { mark: savedState.mark, leader: process }
    try {
      return await startSession({
        ...{ server, clock, log, name, pane, processes, port, signal },
        view: ['tmux', '-L', socket, 'attach-session', '-t', await targetOf(id)],
        follow: (changed) => program.follow(request, pane, portOf(port, savedState, pane, changed)),
      })
    } catch (error) {
      // The caller decides whether to end an agent that was already running.
      if (!isFound || signal?.aborted) await endAgent(pane, processes)
      throw error
    }
  }

  function programOf({ program }: AgentSettings): AgentProgram {
    const found = programs.get(program ?? '')
    if (found !== undefined) return found
    throw new AppError('CONFIG_INVALID', `unknown program ${JSON.stringify(program)} for the runtime tmux`, {
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
      const message =
        agent.program === undefined ? '`program` is missing' : `unknown program: ${agent.program}`
      return [{ path: [], message, hint: `Programs that run in tmux: ${[...programs.keys()].join(', ')}.` }]
    },
    start,
    find,
    discard,
    close: () => server.close(),
  }
}

/** The program's port; it knows only its own saved state. */
function portOf(
  port: SessionPort,
  savedState: TmuxSavedState,
  pane: Pane,
  changed: SessionPort['onStateChange'],
): SessionPort {
  return {
    ...port,
    onStateChange: changed,
    onEvidence(ids, state, evidence) {
      if (state === 'submitted' || state === 'read') pane.markAccepted(ids)
      port.onEvidence(ids, state, evidence)
    },
    saveState: (value) => port.saveState({ ...savedState, program: value }),
  }
}

/** Shortens a schema's error to one line. */
function toReadableError(error: unknown, program: AgentProgram): Error {
  if (error instanceof z.ZodError) {
    const problems = error.issues.map(({ path, message }) => `${path.join('.') || '(root)'}: ${message}`)
    const message = `${program.name} got unexpected data (${problems.join('; ')})`
    return new AppError('RUNTIME_FAILED', message, { cause: error })
  }
  return error instanceof Error ? error : new Error(String(error))
}
