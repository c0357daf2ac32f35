/**
 * An agent in its pane: wraps the program's session and handles the end of the pane and of its processes.
 * States: `starting` (the program begins to follow its pane; success enters `running`, a cancelled or failed
 * start rejects, and the end of the process gives the program FOLLOW_AFTER_END_MS to report it), `running`
 * (calls go to the program), `ended` (`end` says how, final: the process died, the pane vanished or the
 * session was stopped; deliveries return `queued`) and `left` (the service ends; listening stops and the
 * agent keeps running).
 */
import type { SessionState } from '../../base/agent.ts'
import { type Clock, unlessAborted, within } from '../../base/clock.ts'
import { AppError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { ProgramSession } from '../../programs/program.ts'
import { type AgentProcesses, endProcesses } from '../processes.ts'
import type { Session, SessionPort } from '../runtime.ts'
import type { TmuxPane } from './pane.ts'
import type { TmuxServer } from './server.ts'

interface TmuxSessionOptions {
  server: TmuxServer
  clock: Clock
  log: Log
  name: string
  pane: TmuxPane
  processes: AgentProcesses
  view: readonly string[]
  port: SessionPort
  /** Starts following the pane. */
  follow(changed: SessionPort['onStateChange']): Promise<ProgramSession>
  signal?: AbortSignal | undefined
}

/** After the process ended, give the program this long to report it: it may wait for a response that never comes. */
const FOLLOW_AFTER_END_MS = 2000

export async function startSession(options: TmuxSessionOptions): Promise<Session> {
  const { server, clock, log, name, pane, processes, port } = options
  let program: ProgramSession | undefined
  let session: (Session & { state: SessionState }) | undefined
  let end: string | undefined
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  // Used only during the start: a promise that never settles would retain everything that waits for it.
  let reportEnd: ((how: string) => void) | undefined = resolve

  const stopListening = server.listen(pane.id, {
    died: (how) => void finish(how, true),
    vanished: (how) => void finish(how, false),
    changed: pane.wake,
  })

  async function finish(how: string, isPaneThere: boolean) {
    stopListening()
    pane.close()
    const shown = isPaneThere ? await pane.lastOutput().catch(readFailed) : ''
    end = shown === '' ? how : `${how}; its last lines were:\n${shown}`
    reportEnd?.(end)
    pane.wake()
    // Processes left behind are useless without it and would block the next start.
    endProcesses(processes).catch((error: unknown) =>
      log.error({ agent: name, err: error }, 'could not end all of its processes'),
    )
    if (program === undefined) return
    program.onExit(end)
    changed('exited', end)
  }

  function changed(state: SessionState, evidence: string) {
    if (session !== undefined) session.state = end === undefined ? state : 'exited'
    port.onStateChange(state, evidence)
  }

  function readFailed(error: unknown): string {
    log.warn({ agent: name, err: error }, 'could not read its last output')
    return ''
  }

  const following = options.follow(changed)
  following.catch(() => {})
  try {
    program = await unlessAborted(followedOrEnded(clock, following, ended), options.signal)
  } catch (error) {
    stopListening()
    // No caller is left to own it if it starts after all.
    following.then((late) => late.close('end')).catch(() => {})
    throw error
  } finally {
    reportEnd = undefined
  }
  if (end !== undefined) {
    program.onExit(end)
    port.onStateChange('exited', end)
  }
  const followed = program

  session = {
    state: end === undefined ? followed.state : 'exited',
    deliver: (turn, signal) =>
      end === undefined
        ? followed.deliver(turn, signal)
        : Promise.resolve({ state: 'queued', evidence: `not written: ${firstLine(end)}` }),
    locate: (ids) => followed.locate(ids),
    hasPendingInput: () => pane.pendingText?.() !== undefined,
    ...(followed.hasDelayedOutput === undefined ? {} : { hasDelayedOutput: followed.hasDelayedOutput }),
    notice: async (text) => {
      if (end === undefined) await followed.notice(text)
    },
    interrupt: async () =>
      end === undefined
        ? followed.interrupt()
        : { stopped: true, evidence: `it has ended: ${firstLine(end)}` },
    ...(followed.hook === undefined ? {} : { hook: followed.hook.bind(followed) }),
    ...(followed.onToolsListed === undefined ? {} : { onToolsListed: followed.onToolsListed }),
    setLabel: pane.show,
    viewCommand: options.view,
    screen: (lines) => pane.lastLines(lines),
    snapshot: pane.snapshot,
    takeOver: pane.takeOver,
    async stop() {
      stopListening()
      pane.close()
      await followed.close('end')
      await endAgent(pane, processes)
      if (end !== undefined) return
      end = 'it was stopped'
      followed.onExit(end)
      changed('exited', end)
    },
    async leave() {
      stopListening()
      pane.close()
      await followed.close('leave')
    },
  }
  return session
}

/** Ends the processes first: closing the pane would only send them a hangup. */
export async function endAgent(pane: TmuxPane, processes: AgentProcesses): Promise<void> {
  try {
    await endProcesses(processes)
  } finally {
    await pane.kill().catch(() => {})
  }
}

function followedOrEnded(clock: Clock, following: Promise<ProgramSession>, ended: Promise<string>) {
  return Promise.race([following, ended.then((why) => settleFollow(clock, following, why))])
}

async function settleFollow(clock: Clock, following: Promise<ProgramSession>, why: string) {
  const program = await within(clock, FOLLOW_AFTER_END_MS, following)
  if (program !== undefined) return program
  throw new AppError('RUNTIME_FAILED', `The program exited while it started: ${why}`)
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!
}
