import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { AppError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { findExecutable } from '../../programs/executable.ts'
import { environmentOf } from '../environment.ts'
import { endProcesses } from '../processes.ts'
import type { AgentStart, Runtime, Session, SessionPort } from '../runtime.ts'
import { type AcpLimits, AcpSettings, builtIn, checkSettings, LIMITS } from './settings.ts'

interface AcpOptions {
  readonly clock: Clock
  readonly log: Log
  /** Path of our own executable, which agents use for hooks and as an MCP server on stdio. */
  readonly bin: string
  /** Our own version, sent to agents. */
  readonly version?: string
  /** Source of the agents' environments. */
  readonly environment?: Readonly<NodeJS.ProcessEnv>
  readonly limits?: Partial<AcpLimits>
}

/** An ACP agent has no terminal. */
const TERM = 'dumb'

/** Saved state: the conversation, and the mark that identifies the processes if the service is killed. */
const AcpSavedState = z.object({
  program: z.string(),
  mark: z.string(),
  conversation: z.object({ sessionId: z.string(), begunAt: z.number() }).optional(),
})
type AcpSavedState = z.output<typeof AcpSavedState>

/** Agents without a terminal: processes that speak the Agent Client Protocol on standard input and output. */
export function createAcpRuntime(options: AcpOptions): Runtime {
  return {
    name: 'acp',
    check: checkSettings,
    start: (agent, port) => start(agent, port, options),
    async discard(savedState) {
      const earlier = AcpSavedState.safeParse(savedState).data
      if (earlier !== undefined) await endProcesses({ mark: earlier.mark }, options.limits?.graceMs)
    },
  }
}

async function start(agent: AgentStart, port: SessionPort, options: AcpOptions): Promise<Session> {
  const settings = AcpSettings.parse(agent.settings ?? {})
  const program = builtIn(agent.program)
  const limits = { ...LIMITS, ...options.limits }
  const from = options.environment ?? process.env
  const file = await executableOf(agent, settings, from.PATH)
  await requireFolder(agent)

  const name = agent.program ?? file
  const earlier = AcpSavedState.safeParse(agent.savedState).data
  // Two processes must never share a conversation. Identified by mark only: the pid may have been reused.
  if (earlier !== undefined) await endProcesses({ mark: earlier.mark }, limits.graceMs)
  const conversation = earlier?.program === name ? earlier.conversation : undefined

  const mark = randomUUID()
  const save = (savedState: AcpSavedState) => port.saveState(savedState)
  // Saved before the start: if the service is killed now, the next one finds the process.
  await save({ program: name, mark, conversation })
  const credentials = await agent.credentials({ isResumed: conversation !== undefined })
  const env = environmentOf({
    ...{ from, term: TERM, extra: settings.env ?? {} },
    ...{ agent: agent.name, mark, bin: options.bin, credentials },
  })
  const args = [...(program?.args ?? []), ...(settings.args ?? [])]
  // The protocol library is loaded with the first agent that needs it.
  const { startProcess } = await import('./connection.ts')
  const { startSession } = await import('./session.ts')
  agent.signal?.throwIfAborted()
  return startSession({
    agent,
    port,
    process: startProcess({ file, args, cwd: agent.cwd, env, mark }),
    credentials,
    settings,
    builtIn: program,
    savedState: conversation,
    mark,
    save: (current) => save({ program: name, mark, conversation: current }),
    clock: options.clock,
    log: options.log,
    limits,
    bin: options.bin,
    version: options.version ?? '0',
  })
}

async function executableOf(
  agent: AgentStart,
  settings: AcpSettings,
  path: string | undefined,
): Promise<string> {
  const program = builtIn(agent.program)
  const command = settings.command ?? program?.command
  if (command === undefined) {
    throw new AppError('CONFIG_INVALID', `The agent ${agent.name} has no command that speaks ACP`, {
      hint: 'Set with.command in orc.yaml.',
    })
  }
  return findExecutable({
    ...{ command, cwd: agent.cwd, path: settings.env?.PATH ?? path },
    ...(program === undefined ? {} : { program: agent.program, install: program.install }),
  })
}

async function requireFolder({ name, cwd }: AgentStart): Promise<void> {
  const isFolder = await stat(cwd).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (isFolder) return
  throw new AppError('RUNTIME_FAILED', `The folder of agent ${name} does not exist: ${cwd}`, {
    hint: 'Create it, or set another folder in orc.yaml.',
  })
}
