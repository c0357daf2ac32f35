/** The way to our tmux server: one client in control mode, which comes back when it is lost. */
import { AppError } from '../../model/errors.ts'
import { type Command, type Control, ControlLost, openControl } from './control.ts'
import type { Block } from './control-lines.ts'
import type { Log } from './log.ts'
import { requireTmux } from './version.ts'

export const SESSION = 'orchub'
/** As a target: exactly that session, whatever else is there. */
export const IN_SESSION = `=${SESSION}:`

const WIDTH = '220'
const HEIGHT = '50'
/** No output: a hundred programs that redraw themselves are none of our business. */
const CLIENT_FLAGS = 'no-output,ignore-size'
/** Keeps the session there while it has no agents. No shell: nothing that is typed there does anything. */
const LOBBY = ['sleep', '2000000000']

/** Which server it is: another one on the same socket has other panes of the same names. */
export interface ServerIdentity {
  readonly pid: number
  readonly startedAt: string
}

export interface ConnectionOptions {
  socket: string
  /** The executable, `tmux` unless a test says otherwise. */
  command: string
  /** Of the server and so of all its panes. No secrets, and nothing of the person's shell. */
  env: Readonly<Record<string, string>>
  log: Log
  onNotification(name: string, rest: string): void
  /** Connected, for the first time or again. */
  onOpen(): void
  /** The server is gone, and all its panes. */
  onGone(why: string): void
}

export interface Connection {
  /** Starts the server or finds it. Throws an AppError when there is no tmux. */
  connect(): Promise<ServerIdentity>
  /** Blocks of the commands that ran. A failed one throws TmuxRefused; rejects with ControlLost when cut off. */
  run(commands: readonly Command[]): Promise<readonly Block[]>
  readonly identity: ServerIdentity | undefined
  close(): Promise<void>
}

export class TmuxRefused extends Error {
  constructor(reason: string, commands: readonly Command[]) {
    super(`tmux refused ${commands.map((words) => words[0]).join(' ; ')}: ${reason}`)
    this.name = 'TmuxRefused'
  }
}

export function createConnection(options: ConnectionOptions): Connection {
  const { socket, command, env, log } = options
  let opening: Promise<Control> | undefined
  let returning: Promise<Control> | undefined
  /** Once it is open, so that a command is on its way before `run` returns. */
  let current: Control | undefined
  let identity: ServerIdentity | undefined
  let isClosed = false

  const argv = (...rest: string[]) => [command, '-u', '-L', socket, '-f', '/dev/null', '-C', ...rest]
  const startOrAttach = argv(
    ...['new-session', '-A', '-s', SESSION, '-n', SESSION, '-f', CLIENT_FLAGS],
    ...['-x', WIDTH, '-y', HEIGHT, ...LOBBY],
  )
  const attach = argv('attach-session', '-t', IN_SESSION, '-f', CLIENT_FLAGS)

  async function open(line: readonly string[]): Promise<Control> {
    const { promise: attached, resolve: isAttached, reject: isLost } = Promise.withResolvers<void>()
    let isOpen = false
    const control = openControl({
      ...{ argv: line, env },
      onNotification(name, rest) {
        // A command that comes before it finds that there is no client (seen with 3.3a).
        if (name === 'session-changed') isAttached()
        options.onNotification(name, rest)
      },
      onEnd(reason) {
        isLost(new ControlLost(reason))
        if (isOpen) comeBack(reason)
      },
    })
    await attached
    const blocks = await runAll(control, [
      ['display-message', '-p', '#{pid} #{start_time}'],
      ['set-option', '-t', IN_SESSION, 'default-size', `${WIDTH}x${HEIGHT}`],
      // A person who attaches would otherwise bring variables of their terminal into every later pane.
      ['set-option', '-t', IN_SESSION, 'update-environment', ''],
      // Told within a second. A hook would tell it at once, but not every time (see pane-watch.ts).
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

  function comeBack(reason: string) {
    current = undefined
    if (isClosed) return
    log.warn({ reason }, 'the connection to tmux was lost; connecting again')
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
    opening ??= requireTmux(command, env).then(() => open(startOrAttach))
    const mine = opening
    try {
      await mine
      return identity!
    } catch (error) {
      if (opening === mine) opening = undefined
      // It was the way back to a server that has gone: there will be a new one.
      if (mine === returning) return connect()
      if (!(error instanceof ControlLost)) throw error
      throw new AppError('RUNTIME_FAILED', `tmux did not start: ${error.message}`, {
        hint: `Try it by hand: tmux -L ${socket} new-session`,
        cause: error,
      })
    }
  }

  return {
    connect,
    async run(commands) {
      if (current !== undefined) return runAll(current, commands)
      if (opening === undefined) throw new ControlLost('the tmux server is gone')
      return runAll(await opening, commands)
    },
    get identity() {
      return identity
    },
    async close() {
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

async function runAll(control: Control, commands: readonly Command[]): Promise<readonly Block[]> {
  const blocks = await control.run(commands)
  const failed = blocks.find((block) => block.isError)
  if (failed !== undefined) throw new TmuxRefused(failed.lines.join('; '), commands)
  return blocks
}

/** A server without an agent's pane is of no use to anybody. */
async function endIfEmpty(control: Control) {
  const blocks = await control.run([['list-windows', '-t', IN_SESSION]]).catch(() => [])
  // The lobby is the one; a second may be an agent's or a person's.
  if (blocks[0]?.isError === false && blocks[0].lines.length === 1) {
    await control.run([['kill-session', '-t', IN_SESSION]]).catch(() => {})
  }
}
