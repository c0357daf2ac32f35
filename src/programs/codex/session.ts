import { randomUUID } from 'node:crypto'
import { realpath, rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import {
  cancelledResult,
  type DeliveryResult,
  type MessageLocation,
  type SessionPort,
} from '../../runtimes/runtime.ts'
import { createAgentOutput } from '../agent-output.ts'
import { locateIn } from '../message-evidence.ts'
import type { Pane, ProgramSession } from '../program.ts'
import { createSessionState } from '../session-state.ts'
import { type AppServer, AppServerRefused, openAppServer } from './app-server.ts'
import { createApprovals } from './approvals.ts'
import { type CodexNotifications, NOTICES, TurnStarted } from './records.ts'
import { type CodexSavedState, followThreads } from './thread-follower.ts'
import { createArrivals, createTurns, findMessages } from './turns.ts'

/** For a broken connection to a running server, and for one that is just starting. */
const RECONNECT_AFTER_MS = 100
/** Timeout for the record of a message in its thread: usually milliseconds, longer if the user's hooks run first. */
const EVIDENCE_MS = 30_000
const INTERRUPT_MS = 10_000
/** A message sent by an earlier connection may still be on its way into the thread. */
const SETTLE_MS = 1500

interface CodexSessionOptions {
  readonly savedState: CodexSavedState
  readonly port: SessionPort
  readonly pane?: Pick<Pane, 'watchOrphans'>
  warn(fields: Record<string, unknown>, text: string): void
}

/** Follows the conversation through the app-server, which reports every turn, including those that a person starts. */
export function openSession({ savedState: found, port, pane, warn }: CodexSessionOptions) {
  let saved = found
  const state = createSessionState('initializing', (next, evidence) => port.onStateChange(next, evidence))
  let server: AppServer | undefined
  let settled: Promise<unknown> = Promise.resolve()
  let isOver = false

  const turns = createTurns()
  const arrivals = createArrivals(port.onEvidence)
  const output = createAgentOutput<string>({
    onText: port.onText,
    onProcessed: (saidUpTo) => save({ ...saved, saidUpTo }),
    log: { warn },
  })
  const approvals = createApprovals({
    ask: port.askPermission,
    reply: (id, result) => server?.reply(id, result),
    remark({ comment }) {
      if (comment)
        notice(comment).catch((error: unknown) =>
          warn({ err: error }, 'a comment could not be sent to Codex'),
        )
    },
    warn,
  })
  const threads = followThreads({
    get savedState() {
      return saved
    },
    save,
    become: state.become,
    turns,
    arrivals,
    say: output.say,
    used: port.onUsage,
    warn,
  })

  function save(value: CodexSavedState): Promise<void> {
    saved = value
    return port.saveState(value)
  }

  function notified(method: string, params: unknown) {
    if (!(method in NOTICES)) return
    const name = method as keyof CodexNotifications
    const parsed = NOTICES[name].safeParse(params)
    if (!parsed.success) return warn({ method, err: parsed.error }, 'Codex sent an unexpected notification')
    if (name === 'serverRequest/resolved') {
      approvals.resolved((parsed.data as CodexNotifications['serverRequest/resolved']).requestId)
    } else threads.notified(name, parsed.data as never)
  }

  async function stayConnected() {
    while (!isOver) {
      try {
        server = await openAppServer(saved.socket, {
          notified,
          unexpected: (error) => warn({ err: error }, 'Codex sent an unexpected message'),
          asked(id, method, params) {
            const itemId = z.object({ itemId: z.string() }).safeParse(params).data?.itemId
            approvals.asked(id, method, params, itemId === undefined ? undefined : turns.item(itemId))
          },
        })
        if (isOver) return server.close()
        settled = sleep(SETTLE_MS, undefined, { ref: false })
        threads.connected(server)
        const reason = await server.closed
        if (isOver) return
        state.become('unknown', `lost the connection to Codex's app-server: ${reason}`)
      } catch {
        // Not started yet, or shutting down. The pane reports the program's end.
      }
      approvals.dropAll()
      threads.disconnected()
      server = undefined
      await sleep(RECONNECT_AFTER_MS)
    }
  }

  async function deliver(text: string, signal: AbortSignal | undefined): Promise<DeliveryResult> {
    if (signal?.aborted) return cancelledResult(signal)
    const thread = threads.current
    if (server === undefined || thread === undefined || state.now !== 'idle')
      return { state: 'queued', evidence: `Codex is ${state.now}` }
    const clientUserMessageId = `orchub-${randomUUID()}`
    const expected = arrivals.expect(clientUserMessageId)
    try {
      await server.request(
        'turn/start',
        { threadId: thread, clientUserMessageId, input: [textInput(text)] },
        TurnStarted,
      )
      const late = sleep(EVIDENCE_MS, 'late' as const, { ref: false })
      const first = await Promise.race([expected.taken, late, server.closed.then(() => 'lost' as const)])
      if (typeof first === 'object') return first
      const evidence = `Codex accepted the turn, but ${
        first === 'late' ? `did not record it within ${EVIDENCE_MS / 1000} s` : 'the connection was lost'
      }`
      return { state: 'uncertain', evidence }
    } catch (error) {
      const reason = (error as Error).message
      return {
        state: error instanceof AppServerRefused ? 'queued' : 'uncertain',
        evidence: `Codex: ${reason}`,
      }
    } finally {
      expected.forget()
    }
  }

  /** Shown to the model with its next step of the running turn. */
  async function notice(text: string): Promise<void> {
    const thread = threads.current
    const expectedTurnId = turns.active
    if (server === undefined || thread === undefined || expectedTurnId === undefined) return
    const params = { threadId: thread, expectedTurnId, input: [textInput(text)] }
    await server.request('turn/steer', params, z.unknown()).catch((error: unknown) => {
      // The turn ended just now, or is a compaction: no model is there to tell.
      if (!(error instanceof AppServerRefused)) throw error
    })
  }

  async function interrupt(): Promise<{ stopped: boolean; evidence: string }> {
    const on = server
    const threadId = threads.current
    const turnId = turns.active
    if (on === undefined || threadId === undefined)
      return { stopped: false, evidence: `Codex is ${state.now}` }
    if (turnId === undefined)
      return { stopped: state.now === 'idle', evidence: `Codex is ${state.now} and has no turn to stop` }
    const ended = turns.untilEnded(turnId)
    const terminals = turns.terminalsOf(turnId)
    const endOrphans = await pane?.watchOrphans?.()
    // Never answered if the turn ends by itself at this moment; only its end counts.
    on.request('turn/interrupt', { threadId, turnId }, z.unknown()).catch(() => {})
    const turn = await Promise.race([ended, sleep(INTERRUPT_MS, undefined, { ref: false })])
    if (turn === undefined)
      return { stopped: false, evidence: `turn ${turnId} had not ended after ${INTERRUPT_MS / 1000} s` }
    await endOrphans?.()
    // Codex leaves a command running in the background when its turn is stopped.
    const killed = await Promise.allSettled(
      [...terminals].map((processId) =>
        on.request('thread/backgroundTerminals/terminate', { threadId, processId }, z.unknown()),
      ),
    )
    const left = killed.filter(({ status }) => status === 'rejected').length
    const rest = left === 0 ? '' : `; ${left} of its commands may still run`
    return { stopped: true, evidence: `turn ${turnId} ended as ${turn.status}${rest}` }
  }

  async function search(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (server === undefined) throw new Error(`Codex is ${state.now}`)
    const found = new Map<string, string>()
    for (const thread of saved.threads.toReversed()) {
      const missing = new Set(ids.filter((id) => !found.has(id)))
      if (missing.size === 0) break
      for (const [id, item] of await findMessages(server, thread.id, missing))
        found.set(id, `it is user message ${item} of thread ${thread.id}`)
    }
    return found
  }

  async function lookElsewhere(): Promise<MessageLocation> {
    await settled
    // The running turn may be the message's own, which is not recorded yet.
    if (state.now !== 'idle')
      return { at: 'unknown', evidence: `there is no record of it, but Codex is ${state.now}` }
    const count = saved.threads.length
    return {
      at: 'absent',
      evidence: count === 0 ? 'Codex had no turn yet' : `it is in none of the agent's ${count} threads`,
    }
  }

  async function close(how: 'leave' | 'end') {
    isOver = true
    server?.close()
    output.close()
    if (how === 'leave') return
    approvals.dropAll()
    const target = await realpath(saved.socket).catch(() => undefined)
    for (const path of [saved.socket, target]) if (path) await rm(path, { force: true })
  }

  void stayConnected()
  const session: ProgramSession = {
    get state() {
      return state.now
    },
    deliver: ({ text }, signal) => deliver(text, signal),
    locate: (ids) => locateIn(ids, search, lookElsewhere),
    notice,
    interrupt,
    onExit(evidence) {
      isOver = true
      server?.close()
      approvals.dropAll()
      state.become('exited', evidence)
    },
    close,
  }
  /** `ready` resolves when the conversation in the pane is found. */
  return { session, ready: threads.found }
}

/** Lone surrogates would make the whole request unreadable; control characters could drive the pane (C2). */
function textInput(text: string) {
  const plain = text.toWellFormed().replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '')
  return { type: 'text', text: plain, text_elements: [] }
}
