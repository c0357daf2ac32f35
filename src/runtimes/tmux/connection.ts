/**
 * The connection to our tmux server: one control-mode client, which reconnects when lost.
 * States: `closed` (no client, no server known; `connect` enters `opening`), `opening` (a client is starting;
 * commands wait for it; a client that ends too early is replaced for START_RETRY_MS; success enters `open`,
 * failure returns to `closed`), `open` (`current` is set and commands are sent at once; losing the client
 * enters `reconnecting`), `reconnecting` (like `opening`, but attaches only and once: if the server is gone,
 * all its panes are reported as gone and the state is `closed` again), and `shut down` (`isClosed`, final).
 */

import { type ExecFileException, execFile } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { type Control, ControlLost, openControl, type TmuxCommand } from './control.ts'
import type { Block } from './control-reader.ts'

const SESSION = 'orchub'
/** Target that matches exactly this session. */
export const IN_SESSION = `=${SESSION}:`

const WIDTH = '220'
const HEIGHT = '50'
/** No output: we do not need every redraw of a hundred programs. */
const CLIENT_FLAGS = 'no-output,ignore-size'
/** Keeps the session alive without agents. Not a shell, so keys typed there do nothing. */
const IDLE_COMMAND = ['sleep', '2000000000']

/**
 * A server that was just killed still accepts clients and disconnects them. It ends within milliseconds, or
 * within a second on a machine under load.
 */
const START_RETRY_MS = 3000
const START_RETRY_EVERY_MS = 50
/**
 * A server that gets a `new-session` after `kill-server` never ends, and disconnects every client (seen with
 * 3.3a). All its panes are gone, except that of the new session. By this time it is not just slow to end.
 */
const STUCK_AFTER_MS = 1000
const DISCONNECTED = 'server exited unexpectedly'

/** Identifies the server: another one on the same socket has different panes with the same ids. */
export interface ServerIdentity {
  readonly pid: number
  readonly startedAt: string
}

export interface TmuxConnectionOptions {
  socket: string
  /** The executable: `tmux`, except in tests. */
  command: string
  /**
   * Environment of the server and thus of all panes. Contains no secrets and nothing from the person's shell.
   */
  env: Readonly<Record<string, string>>
  log: Log
  onNotification(name: string, rest: string): void
  /** Connected or reconnected. */
  onOpen(): void
  /** The server and all its panes are gone. */
  onGone(why: string): void
}

export class TmuxRefused extends Error {
  constructor(reason: string, commands: readonly TmuxCommand[]) {
    super(`tmux refused ${commands.map((words) => words[0]).join(' ; ')}: ${reason}`)
    this.name = 'TmuxRefused'
  }
}

export type TmuxConnection = ReturnType<typeof openTmuxConnection>

export function openTmuxConnection(options: TmuxConnectionOptions) {
  const { socket, command, env, log } = options
  let opening: Promise<Control> | undefined
  let returning: Promise<Control> | undefined
  /** Set once open, so that a command is sent before `run` returns. */
  let current: Control | undefined
  let identity: ServerIdentity | undefined
  let isClosed = false

  const argv = (...rest: string[]) => [command, '-u', '-L', socket, '-f', '/dev/null', '-C', ...rest]
  const startOrAttach = argv(
    ...['new-session', '-A', '-s', SESSION, '-n', SESSION, '-f', CLIENT_FLAGS],
    ...['-x', WIDTH, '-y', HEIGHT, ...IDLE_COMMAND],
  )
  const attach = argv('attach-session', '-t', IN_SESSION, '-f', CLIENT_FLAGS)

  async function open(line: readonly string[]): Promise<Control> {
    const { promise: attached, resolve: isAttached, reject: isLost } = Promise.withResolvers<void>()
    let isOpen = false
    const control = openControl({
      ...{ argv: line, env },
      onNotification(name, rest) {
        // Commands sent before this find no client (seen with tmux 3.3a).
        if (name === 'session-changed') isAttached()
        options.onNotification(name, rest)
      },
      onEnd(reason) {
        isLost(new ControlLost(reason))
        if (isOpen) reconnect(reason)
      },
    })
    await attached
    const blocks = await runAll(control, [
      ['display-message', '-p', '#{pid} #{start_time}'],
      ['set-option', '-t', IN_SESSION, 'default-size', `${WIDTH}x${HEIGHT}`],
      // Otherwise a person who attaches would bring their terminal's variables into every later pane.
      ['set-option', '-t', IN_SESSION, 'update-environment', ''],
      // Reports within a second. A hook would be faster but is not reliable (see createPaneWatch in server.ts).
      ['refresh-client', '-B', 'orc-dead:%*:#{pane_dead}'],
    ])
    const [pid, startedAt] = blocks[0]!.lines[0]!.split(' ')
    const found = { pid: Number(pid), startedAt: startedAt! }
    if (identity !== undefined && !isSameServer(identity, found))
      options.onGone('its tmux server was replaced')
    identity = found
    isOpen = true
    current = control
    options.onOpen()
    return control
  }

  async function start(): Promise<Control> {
    await requireTmux(command, env)
    const startedAt = performance.now()
    let isStuckEnded = false
    while (true) {
      try {
        return await open(startOrAttach)
      } catch (error) {
        const waited = performance.now() - startedAt
        if (!(error instanceof ControlLost) || isClosed || waited >= START_RETRY_MS) throw error
        log.warn({ reason: error.message }, 'tmux ended before it was ready; trying again')
        if (waited >= STUCK_AFTER_MS && !isStuckEnded && error.reason === DISCONNECTED) {
          isStuckEnded = true
          endStuckServer(socket, env, log)
        }
        await sleep(START_RETRY_EVERY_MS)
      }
    }
  }

  function reconnect(reason: string) {
    current = undefined
    if (isClosed) return
    log.warn({ reason }, 'lost the connection to tmux; reconnecting')
    opening = open(attach)
    returning = opening
    opening.catch((error: unknown) => {
      opening = undefined
      identity = undefined
      options.onGone(`the tmux server is gone (${error instanceof Error ? error.message : reason})`)
    })
  }

  async function connect(): Promise<ServerIdentity> {
    if (isClosed) throw new AppError('SERVICE_STOPPING', 'The tmux runtime is closed')
    opening ??= start()
    const mine = opening
    try {
      await mine
      return identity!
    } catch (error) {
      if (opening === mine) opening = undefined
      // This was the reconnect to a server that has gone; start a new one.
      if (mine === returning) return connect()
      if (!(error instanceof ControlLost)) throw error
      throw new AppError('RUNTIME_FAILED', `tmux did not start: ${error.message}`, {
        hint: `Run it manually: tmux -L ${socket} new-session`,
        cause: error,
      })
    }
  }

  return {
    /** Starts the server or attaches to it. Throws an AppError if tmux is missing. */
    connect,
    /**
     * Returns the output blocks of the commands. A failed command throws TmuxRefused; a lost connection rejects
     * with ControlLost.
     */
    async run(commands: readonly TmuxCommand[]): Promise<readonly Block[]> {
      if (current !== undefined) return runAll(current, commands)
      if (opening === undefined) throw new ControlLost('the tmux server is gone')
      return runAll(await opening, commands)
    },
    get identity() {
      return identity
    },
    async close(): Promise<void> {
      isClosed = true
      const control = await opening?.catch(() => undefined)
      if (control === undefined) return
      await endIfEmpty(control)
      await control.close()
    },
  }
}

export function isSameServer(one: ServerIdentity, other: ServerIdentity): boolean {
  return one.pid === other.pid && one.startedAt === other.startedAt
}

async function runAll(control: Control, commands: readonly TmuxCommand[]): Promise<readonly Block[]> {
  const blocks = await control.run(commands)
  const failed = blocks.find((block) => block.isError)
  if (failed !== undefined) throw new TmuxRefused(failed.lines.join('; '), commands)
  return blocks
}

/** Ends a server that has no agent's pane left. */
async function endIfEmpty(control: Control) {
  const blocks = await control.run([['list-windows', '-t', IN_SESSION]]).catch(() => [])
  // The first window is the idle one; a second may belong to an agent or a person.
  if (blocks[0]?.isError === false && blocks[0].lines.length === 1) {
    await control.run([['kill-session', '-t', IN_SESSION]]).catch(() => {})
  }
}

/** Finds the server by its socket, since it no longer accepts commands. Requires /proc. */
function endStuckServer(socket: string, env: Readonly<Record<string, string>>, log: Log): void {
  try {
    const path = join(realpathSync(env.TMUX_TMPDIR || '/tmp'), `tmux-${process.getuid!()}`, socket)
    const sockets = readFileSync('/proc/net/unix', 'utf8').split('\n')
    const inode = sockets.find((line) => line.endsWith(` ${path}`))?.split(/\s+/)[6]
    const pid = readdirSync('/proc').find(
      (name) => /^\d+$/.test(name) && isTmuxWith(name, `socket:[${inode}]`),
    )
    if (pid === undefined) return
    log.warn({ pid }, 'ending a tmux server that no longer accepts clients')
    process.kill(Number(pid), 'SIGTERM')
  } catch (error) {
    log.warn({ err: error }, 'could not end a tmux server that no longer accepts clients')
  }
}

function isTmuxWith(pid: string, openFile: string): boolean {
  try {
    if (!readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('tmux')) return false
    return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === openFile)
  } catch {
    // The process has ended or belongs to another user.
    return false
  }
}

/** The first version with subscriptions and clients without output. */
const OLDEST = [3, 2] as const

/** Throws an AppError if tmux is missing or too old. */
async function requireTmux(command: string, env: Readonly<Record<string, string>>): Promise<void> {
  const output = await new Promise<string>((resolve, reject) => {
    execFile(command, ['-V'], { env }, (error, stdout) => {
      if (error === null) resolve(stdout.trim())
      else reject(missing(command, error))
    })
  })
  const version = /(\d+)\.(\d+)/.exec(output)
  // A development version (`tmux master`) has no number and is recent.
  if (version === null || isAtLeast(Number(version[1]), Number(version[2]))) return
  throw new AppError(
    'RUNTIME_MISSING',
    `${output} is too old: agents in panes require tmux ${OLDEST.join('.')}`,
    {
      hint: 'Install a newer tmux, or run the agents with `runtime: acp`.',
    },
  )
}

function isAtLeast(major: number, minor: number): boolean {
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])
}

function missing(command: string, cause: ExecFileException): AppError {
  const why = cause.code === 'ENOENT' ? 'is not installed' : `does not run: ${cause.message}`
  return new AppError('RUNTIME_MISSING', `${command} ${why}`, {
    hint: 'Install tmux (`apt install tmux`, `brew install tmux`), or run the agents with `runtime: acp`.',
    cause,
  })
}
