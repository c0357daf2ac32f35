import type { SessionState } from '../../base/agent.ts'
import { within } from '../../base/clock.ts'
import { reasonOf } from '../../base/errors.ts'
import { createOutputTail } from '../output-tail.ts'
import type { MessageLocation, Session } from '../runtime.ts'
import { readRecords } from './journal.ts'
import { createTurnLoop, type TurnLoopOptions, type TurnLoopResult } from './turn-loop.ts'

/** Length of the output that is kept for `orc logs` and the control room. */
const SCREEN_LENGTH = 16 * 1024

interface LlmSessionOptions extends TurnLoopOptions {
  readonly file: string
  /** How the conversation was found, for people. */
  readonly note: string
  /** The file of an earlier session is missing, so it is unknown what that session received. */
  readonly isMemoryLost: boolean
  readonly limits: LlmLimits
}

/**
 * An agent that consists of a model and its conversation.
 * States: `initializing` (until the caller has the session) → `idle` → `busy` (`running` works on the open
 * turn) → `idle`, or `error` (the model failed; `cancelRetry` holds the timer that continues the same turn,
 * with exponential backoff up to `maxFailureMs` or the provider's retry-after). `beginning` is the write of
 * a new turn; `isInterrupted` lasts until the turn has ended; `isLeft` is final. `interruptMs` covers a
 * command that is being executed, which cannot be aborted.
 */
export function startSession(options: LlmSessionOptions): Session {
  const { port, conversation, journal, clock, limits } = options
  const screen = createOutputTail(SCREEN_LENGTH)
  const work = createTurnLoop(options, screen.add)
  let state: SessionState = 'initializing'
  let beginning: Promise<void> | undefined
  let running: Promise<void> | undefined
  let abort = new AbortController()
  let isInterrupted = false
  let isLeft = false
  let failures = 0
  let cancelRetry: (() => void) | undefined

  const stops = {
    get signal() {
      return abort.signal
    },
    get isInterrupted() {
      return isInterrupted
    },
    get isLeft() {
      return isLeft
    },
  }

  function become(next: SessionState, evidence: string) {
    state = next
    port.onStateChange(next, evidence)
  }

  function run(why: string) {
    cancelRetry?.()
    abort = new AbortController()
    become('busy', why)
    running = work
      .resume(stops)
      .catch(
        (error: unknown): TurnLoopResult => ({
          is: 'waiting',
          why: `It cannot continue: ${reasonOf(error)}.`,
          minDelayMs: 0,
        }),
      )
      .then((rest) => {
        running = undefined
        if (!isLeft) settle(rest)
      })
  }

  function settle(rest: TurnLoopResult) {
    if (rest.is === 'waiting') return tryLater(rest.why, rest.minDelayMs)
    isInterrupted = false
    failures = 0
    become('idle', rest.is === 'ended' ? `the turn ended: ${rest.why}` : 'no turn is open')
  }

  function tryLater(why: string, minDelayMs: number) {
    const wait = Math.max(minDelayMs, Math.min(limits.failureMs * 2 ** failures, limits.maxFailureMs))
    failures += 1
    become('error', `${why} Retrying in ${Math.ceil(wait / 1000)} s.`)
    cancelRetry = clock.after(wait, () => run('retrying'))
  }

  // Runs after the caller has received the session.
  const cancelStart = clock.after(0, () => {
    work.repeatUnprocessed()
    if (conversation.open === undefined) become('idle', options.note)
    else run(`${options.note} and continues its last turn`)
  })

  async function end(evidence: string) {
    if (isLeft) return
    isLeft = true
    cancelStart()
    cancelRetry?.()
    abort.abort()
    await beginning?.catch(() => {})
    await running
    await journal.close()
    become('exited', evidence)
  }

  return {
    get state() {
      return state
    },
    async deliver(turn) {
      if (state !== 'idle' || isLeft) return { state: 'queued', evidence: `the agent is ${state}` }
      // Block other turns while this one is being written.
      state = 'busy'
      try {
        beginning = work.begin(turn)
        await beginning
      } catch (error) {
        state = 'idle'
        const evidence = `the conversation could not be written: ${reasonOf(error)}`
        return { state: journal.isMended ? 'queued' : 'uncertain', evidence }
      }
      if (!isLeft) run('the turn is in the conversation')
      return { state: 'submitted', evidence: `it is in the conversation, ${options.file}` }
    },
    async locate(ids) {
      const found = new Set<string>()
      await readRecords(options.file, (record) => {
        const had = record.type === 'user' ? record.ids : record.type === 'result' ? record.handedOut : []
        for (const id of had) if (ids.includes(id)) found.add(id)
      })
      const elsewhere: MessageLocation = options.isMemoryLost
        ? { at: 'unknown', evidence: 'the earlier conversation no longer exists' }
        : { at: 'absent', evidence: 'it is not in the conversation' }
      return ids.map((id) =>
        found.has(id) ? { at: 'submitted', evidence: 'it is in the conversation' } : elsewhere,
      )
    },
    async notice(text) {
      work.notice(text)
    },
    async interrupt() {
      await beginning?.catch(() => {})
      if (conversation.open === undefined || isLeft) return { stopped: true, evidence: 'no turn is running' }
      isInterrupted = true
      abort.abort()
      // While it waits for its model, no loop runs; start one that ends the turn.
      if (running === undefined) run('it is interrupted')
      const over = running!.then(() => true)
      return (await within(clock, limits.interruptMs, over)) === true && conversation.open === undefined
        ? { stopped: true, evidence: 'the conversation records the end of the turn' }
        : { stopped: false, evidence: 'a command of the turn is still being executed' }
    },
    screen: async (lines) => screen.lines(lines).join('\n'),
    stop: () => end('was stopped'),
    leave: () => end('ended with the service; its conversation will be resumed'),
  }
}

export const LIMITS = {
  /** Pause after a failed call, doubled with each failure in a row, up to `maxFailureMs`. */
  failureMs: 5_000,
  maxFailureMs: 300_000,
  /** Timeout for an interrupted turn to stop. */
  interruptMs: 10_000,
}
export type LlmLimits = Readonly<typeof LIMITS>
