import type { SessionState } from '../../model/agent.ts'
import { within } from '../../model/clock.ts'
import { reasonOf } from '../../model/errors.ts'
import type { Session, Whereabouts } from '../runtime.ts'
import { readRecords } from './journal.ts'
import type { Limits } from './limits.ts'
import { createScreen } from './screen.ts'
import { createWork, type Rest, type WorkOrder } from './work.ts'

export interface SessionOrder extends WorkOrder {
  readonly file: string
  /** For people: how the conversation was found. */
  readonly note: string
  /** The file of an earlier session is gone, and with it the knowledge of what it was given. */
  readonly isMemoryLost: boolean
  readonly limits: Limits
}

/** An agent that is a model and its conversation. */
export function startSession(order: SessionOrder): Session {
  const { port, conversation, journal, clock, limits } = order
  const screen = createScreen()
  const work = createWork(order, screen.add)
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
    port.changed(next, evidence)
  }

  function run(why: string) {
    cancelRetry?.()
    abort = new AbortController()
    become('busy', why)
    running = work
      .goOn(stops)
      .catch(
        (error: unknown): Rest => ({
          is: 'waiting',
          why: `It cannot go on: ${reasonOf(error)}.`,
          leastMs: 0,
        }),
      )
      .then((rest) => {
        running = undefined
        if (!isLeft) settle(rest)
      })
  }

  function settle(rest: Rest) {
    if (rest.is === 'waiting') return tryLater(rest.why, rest.leastMs)
    isInterrupted = false
    failures = 0
    become('idle', rest.is === 'ended' ? `the turn ended: ${rest.why}` : 'no turn is open')
  }

  function tryLater(why: string, leastMs: number) {
    const wait = Math.max(leastMs, Math.min(limits.failureMs * 2 ** failures, limits.failureMostMs))
    failures += 1
    become('error', `${why} Tried again in ${Math.ceil(wait / 1000)} s.`)
    cancelRetry = clock.after(wait, () => run('it is tried again'))
  }

  // After the caller has received the session.
  const cancelStart = clock.after(0, () => {
    work.sayAgain()
    if (conversation.open === undefined) become('idle', order.note)
    else run(`${order.note}, and its last turn is gone on with`)
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
      // Nothing else may begin while it is being written.
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
      return { state: 'submitted', evidence: `it is in the conversation, ${order.file}` }
    },
    async locate(ids) {
      const found = new Set<string>()
      await readRecords(order.file, (record) => {
        const had = record.type === 'user' ? record.ids : record.type === 'result' ? record.handedOut : []
        for (const id of had) if (ids.includes(id)) found.add(id)
      })
      const elsewhere: Whereabouts = order.isMemoryLost
        ? { at: 'unknown', evidence: 'the earlier conversation is gone' }
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
      // While it waits for its model nothing runs that could notice.
      if (running === undefined) run('it is interrupted')
      const over = running!.then(() => true)
      return (await within(clock, limits.interruptMs, over)) === true && conversation.open === undefined
        ? { stopped: true, evidence: 'the turn was ended in the conversation' }
        : { stopped: false, evidence: 'a command of the turn is still being carried out' }
    },
    screen: async (lines) => screen.lines(lines).join('\n'),
    stop: () => end('was stopped'),
    leave: () => end('ended with the service; its conversation will be taken up again'),
  }
}
