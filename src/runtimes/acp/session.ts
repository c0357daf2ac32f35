import { methods, RequestError } from '@agentclientprotocol/sdk'
import { z } from 'zod'
import type { SessionState } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { withoutMentions } from '../../protocol/mentions.ts'
import { escapeMarkers } from '../../protocol/response.ts'
import { createOutputTail } from '../output-tail.ts'
import {
  type AgentCredentials,
  type AgentStart,
  cancelledResult,
  type DeliveryResult,
  type Session,
  type SessionPort,
  type Turn,
} from '../runtime.ts'
import {
  type AgentProcess,
  answered,
  brokenBy,
  connect,
  describeError,
  isRefusal,
  minuteIsOver,
  steer,
  wantsLogin,
} from './connection.ts'
import { type AcpUpdate, createHistory, createReplay, readUpdate, spentBy } from './history.ts'
import { openSession } from './open-session.ts'
import { createQuestions } from './permissions.ts'
import { type AcpLimits, type AcpSettings, type BuiltIn, FAILURE_MS_MAX } from './settings.ts'

/** Length of the output that is kept for `orc logs` and the control room. */
const SCREEN_LENGTH = 16 * 1024

interface AcpSessionOptions {
  readonly agent: AgentStart
  readonly port: SessionPort
  readonly process: AgentProcess
  readonly credentials: AgentCredentials
  readonly settings: AcpSettings
  readonly builtIn: BuiltIn | undefined
  /** The conversation to resume. */
  readonly savedState: AcpSavedConversation | undefined
  readonly mark: string
  /** Saves the conversation, so that it can be resumed. */
  save(conversation: AcpSavedConversation): Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly limits: AcpLimits
  readonly bin: string
  readonly version: string
}

interface AcpSavedConversation {
  readonly sessionId: string
  readonly begunAt: number
}

/**
 * An agent that speaks ACP on standard input and output. It ends with the service.
 * States: `initializing` (from the start until the session is open and its replay has ended) → `idle` →
 * `busy` (a turn runs: from `deliver` until session/prompt is answered) ↔ `waiting_input` (a permission
 * request is open) → `idle`. A failed turn enters `error`, and a retry timer with exponential backoff
 * (`failureMs`, at most FAILURE_MS_MAX) returns to `idle`, since the model's service may be down and instant
 * retries would fail one message after another. `ending` is set when we end the process (stopped, broken
 * connection, failed start); `exited` is final. `signMs` is long because models may think for minutes before
 * their first word.
 */
export function startSession(options: AcpSessionOptions): Session {
  const { agent, port, process, clock, limits, log, settings, builtIn } = options
  const mentions = settings.mentions ?? builtIn?.mentions
  const screen = createOutputTail(SCREEN_LENGTH)
  const history = createHistory(options.savedState === undefined ? 'nothing' : 'something')
  const replay = createReplay(options.savedState !== undefined, history, clock, limits.quietMs)
  const prefix = createTurnPrefix(agent.prompt)
  const output = createAcpOutput(port.onText, clock, (error) =>
    log.warn({ agent: agent.name, err: error }, "the agent's text could not be processed"),
  )
  let state: SessionState = 'initializing'
  let sessionId = options.savedState?.sessionId
  let canSteer = false
  /** The agent accepts no system prompt. */
  let isRoleInTurns = false
  let turn: OpenTurn | undefined
  let turnEnded: Promise<string> | undefined
  let turnNumber = 0
  let failures = 0
  let cancelRetry = () => {}
  /** Why we end it; undefined while it should run. */
  let ending: string | undefined
  let isOver = false

  function become(next: SessionState, evidence: string) {
    state = next
    port.onStateChange(next, evidence)
  }

  // ——— input from the agent ———

  function onUpdate(params: unknown) {
    const read = readUpdate(params)
    if (read === undefined || read.sessionId !== sessionId) return
    const { update } = read
    if (update.kind === 'usage') return reportUsage(update)
    if (replay.isOn) return replay.take(update)
    switch (update.kind) {
      case 'text':
        noteProgress('read', 'the agent began to answer')
        output.say(update.text, update.message)
        return screen.add(update.text)
      case 'work':
        return noteProgress('read', 'the agent began to work on it')
      case 'tool':
        noteProgress('read', 'the agent began to work on it')
        output.pause()
        return screen.add(`\n[${update.title}]\n`)
      case 'heard':
        if (turn?.ids.some((id) => update.text.includes(`[ORCHUB MESSAGE ${id}]`)) === true)
          noteProgress('submitted', 'the agent echoed it')
        return
      case 'compacted':
        if (isRoleInTurns) prefix.roleIsDue('compacted')
        return
      case 'remark':
        return screen.add(`\n[${update.text}]\n`)
    }
  }

  function reportUsage({ used, size, model }: AcpUpdate & { kind: 'usage' }) {
    port.onUsage({ contextTokens: used, contextWindow: size, ...(model === undefined ? {} : { model }) })
  }

  function noteProgress(progress: 'submitted' | 'read', evidence: string) {
    if (turn === undefined) return
    history.settle(turn.ids, true)
    turn.reach(progress, evidence)
  }

  const questions = createQuestions({
    asked: port.askPermission,
    opened(tool) {
      noteProgress('read', `the agent asks for permission to use ${tool}`)
      if (!isOver) become('waiting_input', `session/request_permission for ${tool}`)
    },
    closed(tool, verdict) {
      if (verdict?.allow === false && verdict.comment !== undefined) {
        // An ACP refusal carries no text.
        prefix.add(`A person denied your request to use ${tool}: ${escapeMarkers(verdict.comment)}`)
      }
      if (isOver || questions.isOpen || state !== 'waiting_input') return
      become(turn === undefined ? 'idle' : 'busy', `the request for ${tool} was answered`)
    },
  })

  const connection = connect({
    process,
    lineBytes: limits.lineBytes,
    onUpdate,
    onPromptWritten() {
      if (turn !== undefined) turn.isWritten = true
    },
    onGarbage: (what) => log.warn({ agent: agent.name, what }, 'the agent sent an invalid ACP message'),
    hold: () => output.hold(),
    ask: (request, id, signal) => questions.ask(request, `${options.mark}:${id}`, signal),
  })

  // ——— start and end ———

  function fail(reason: string) {
    if (isOver || ending !== undefined) return
    ending = reason
    become('error', reason)
    process.end(limits.graceMs).catch((error) => log.warn({ agent: agent.name, err: error }, 'left behind'))
  }

  async function begin() {
    const { savedState, builtIn } = options
    const { capabilities, conversation } = await openSession({
      ...options,
      sessionId: savedState?.sessionId,
      async beforeLoading() {
        if (savedState !== undefined && builtIn?.overwritesInFirstMinute)
          await minuteIsOver(clock, savedState.begunAt)
      },
      connection: connection.agent,
      within: (answer, what) => answered(clock, limits.answerMs, answer, what),
    })
    sessionId = conversation.sessionId
    await replay.over(conversation.how === 'loaded')
    canSteer = capabilities.steering && builtIn?.steers === true
    isRoleInTurns = !capabilities.systemPrompt
    if (isRoleInTurns) prefix.roleIsDue(conversation.how === 'new' ? 'start' : 'resumed')
    const begunAt = conversation.how === 'new' ? clock.now() : (savedState?.begunAt ?? clock.now())
    await options.save({ sessionId, begunAt })
    if (ending === undefined && !isOver) become('idle', `${capabilities.title}: ${conversation.note}`)
  }

  const begun = begin().catch(async (error) => {
    // The process's exit says why the connection broke.
    if (connection.signal.aborted) return void (await over)
    const login = wantsLogin(error) ? ` ${options.builtIn?.login ?? 'Log in to it first.'}` : ''
    fail(`could not be opened: ${describeError(error)}.${login}`)
    await over
  })

  connection.closed.then(() => {
    const broken = brokenBy(connection)
    if (broken !== undefined) fail(broken.message)
    // An agent that ends closes its output first. If it still runs after that, the connection is broken.
    else clock.after(limits.graceMs, () => fail('it closed its output'))
  })

  const over = process.ended.then(async (how) => {
    isOver = true
    cancelRetry()
    questions.cancel()
    connection.close()
    turn?.doubt(
      turn.isWritten ? 'uncertain' : 'queued',
      `the agent ended ${turn.isWritten ? 'without evidence of it' : 'before it was written'}`,
    )
    if (turn?.isWritten === false) history.settle(turn.ids, false)
    // Processes it started may still run.
    await process
      .end(limits.graceMs)
      .catch((error) => log.warn({ agent: agent.name, err: error }, 'left behind'))
    become('exited', ending === undefined ? how : `${ending} (${how})`)
    return how
  })

  async function end(evidence: string) {
    ending ??= evidence
    await process.end(limits.graceMs)
    await over
  }

  // ——— turns ———

  async function prompt(running: OpenTurn, text: string): Promise<string> {
    const number = ++turnNumber
    try {
      const request = { sessionId: sessionId!, prompt: [{ type: 'text' as const, text }] }
      const response: unknown = await connection.agent.request(methods.agent.session.prompt, request)
      const reason = StopReason.safeParse(response).data?.stopReason ?? 'no reason given'
      // A cancelled turn may never have reached the model.
      noteProgress(reason === 'cancelled' ? 'submitted' : 'read', `session/prompt was answered: ${reason}`)
      const usage = spentBy(response, `${options.mark}:${number}`)
      if (usage !== undefined) port.onUsage(usage)
      failures = 0
      finish('idle', `turn ${number} ended: ${reason}`)
      return reason
    } catch (error) {
      // A broken connection also ends the process, whose exit says why.
      if (!(error instanceof RequestError) || isOver) return await over
      const why = describeError(error)
      const isRefused = !running.isTaken && isRefusal(error)
      if (isRefused) history.settle(running.ids, false)
      running.doubt(isRefused ? 'queued' : 'uncertain', `session/prompt failed: ${why}`)
      const login = wantsLogin(error) ? ` ${options.builtIn?.login ?? ''}` : ''
      finish('error', `turn ${number} failed: ${why}.${login}`)
      retryLater()
      return why
    }
  }

  function finish(next: 'idle' | 'error', evidence: string) {
    questions.cancel()
    output.pause()
    turn = undefined
    if (!isOver && ending === undefined) become(next, evidence)
  }

  /** The model's service may be down: immediate retries would fail one message after another. */
  function retryLater() {
    const wait = Math.min(limits.failureMs * 2 ** failures, FAILURE_MS_MAX)
    failures += 1
    cancelRetry = clock.after(wait, () => {
      if (!isOver && ending === undefined && state === 'error') become('idle', 'ready to try again')
    })
  }

  return {
    get state() {
      return state
    },
    async deliver(next, signal) {
      if (signal?.aborted) return cancelledResult(signal)
      const isReady = state === 'idle' && turn === undefined && ending === undefined && !isOver
      if (!isReady) return { state: 'queued', evidence: `the agent is ${ending ?? state}` }
      const running = openTurn(next, port.onEvidence)
      const { text, markGiven } = prefix.before(withoutMentions(next.text, mentions))
      turn = running
      history.wrote(next.ids)
      become('busy', 'session/prompt was sent')
      turnEnded = prompt(running, text)
      const cancelDoubt = clock.after(limits.signMs, () =>
        running.doubt('uncertain', `no evidence of it within ${limits.signMs / 1000} s`),
      )
      const result = await running.result
      cancelDoubt()
      if (running.isTaken) markGiven()
      return result
    },
    async locate(ids) {
      await begun
      return ids.map(history.locate)
    },
    async notice(notice) {
      const text = withoutMentions(notice, mentions)
      if (canSteer && turn !== undefined && (await steer(connection.agent, sessionId!, text))) return
      prefix.add(text)
    },
    async interrupt() {
      if (turn === undefined) return { stopped: true, evidence: 'no turn is running' }
      const stopped = turnEnded!
      try {
        await connection.agent.notify(methods.agent.session.cancel, { sessionId: sessionId! })
        questions.cancel()
        const reason = await answered(clock, limits.cancelMs, stopped, 'session/cancel')
        return { stopped: true, evidence: `the turn ended: ${reason}` }
      } catch (error) {
        return { stopped: false, evidence: describeError(error) }
      }
    },
    async screen(lines) {
      const shown = screen.lines(lines)
      return (shown.length > 0 ? shown : process.errorLines(lines)).join('\n')
    },
    stop: () => end('was stopped'),
    leave: () => end('ended with the service; its conversation will be resumed'),
  }
}

/** Number of unprocessed pieces above which the agent is slowed down. */
const MAX_UNPROCESSED = 100
const MAX_HOLD_MS = 50

/** Passes the agent's text on, piece by piece. */
function createAcpOutput(onText: SessionPort['onText'], clock: Clock, onError: (error: unknown) => void) {
  let unprocessed = 0
  let lastMessage: string | undefined
  let hasSpoken = false
  let isPaused = false
  let release = () => {}

  return {
    /** `message`: the id of the agent's message, if it sends one. */
    say(text: string, message: string | undefined) {
      if (text === '') return
      const isAnother = message !== undefined && lastMessage !== undefined && message !== lastMessage
      const gap = hasSpoken && (isPaused || isAnother) ? '\n\n' : ''
      hasSpoken = true
      isPaused = false
      lastMessage = message
      unprocessed += 1
      onText({ text: gap + text, channel: 'api' })
        // Text that could not be processed must not block later text.
        .catch(onError)
        .finally(() => {
          unprocessed -= 1
          if (unprocessed < MAX_UNPROCESSED) release()
        })
    },
    /** Later text belongs to another message, and must not run into this one. */
    pause() {
      isPaused = true
    },
    /**
     * Pending while too much text is unprocessed, so that a flood waits in the agent's own pipe. Never for
     * long: the response to a command may wait for the end of the turn, which arrives through the same pipe.
     */
    hold(): Promise<void> | undefined {
      if (unprocessed < MAX_UNPROCESSED) return undefined
      return new Promise((resolve) => {
        const cancel = clock.after(MAX_HOLD_MS, resolve)
        release = () => {
          cancel()
          resolve()
        }
      })
    },
  }
}

const StopReason = z.object({ stopReason: z.string().max(64) })

const PROGRESS = ['none', 'submitted', 'read'] as const

type OpenTurn = ReturnType<typeof openTurn>

/** Progress of one turn. `deliver` returns once; later evidence goes to `onEvidence`. */
function openTurn(turn: Turn, arrived: SessionPort['onEvidence']) {
  const { promise, resolve } = Promise.withResolvers<DeliveryResult>()
  let progress: (typeof PROGRESS)[number] = 'none'
  let isAnswered = false

  function answer(result: DeliveryResult) {
    isAnswered = true
    resolve(result)
  }

  return {
    ids: turn.ids,
    result: promise,
    /** The pipe accepted all of it. */
    isWritten: false,
    /** The agent gave a sign that it has the turn. */
    get isTaken() {
      return progress !== 'none'
    },
    reach(state: 'submitted' | 'read', evidence: string) {
      if (PROGRESS.indexOf(state) <= PROGRESS.indexOf(progress)) return
      progress = state
      if (!isAnswered) answer({ state, evidence })
      else if (turn.ids.length > 0) arrived(turn.ids, state, evidence)
    },
    /** No evidence of arrival. Ignored once `deliver` has returned. */
    doubt(state: 'queued' | 'uncertain', evidence: string) {
      if (!isAnswered) answer({ state, evidence })
    },
  }
}

const MAX_NOTICES = 50

/** Text put before the next turn, since ACP has no other channel for it: the role, and notices. */
function createTurnPrefix(prompt: string) {
  let occasion: Parameters<typeof frameRole>[1] | undefined
  let notices: string[] = []
  return {
    /** Puts the role before the next turn. */
    roleIsDue(why: Parameters<typeof frameRole>[1]) {
      occasion = why
    },
    add(notice: string) {
      notices = [...notices, notice].slice(-MAX_NOTICES)
    },
    /**
     * Returns the turn with everything due before it; call `markGiven` once the agent has it, otherwise it
     * stays due.
     */
    before(turn: string): { text: string; markGiven(): void } {
      const role = occasion
      const added = notices
      const text = [...(role === undefined ? [] : [frameRole(prompt, role)]), ...added, turn].join('\n\n')
      return {
        text,
        markGiven() {
          if (occasion === role) occasion = undefined
          notices = notices.filter((notice) => !added.includes(notice))
        },
      }
    },
  }
}

/** The role inside a turn, in a frame that the scanner skips when an agent quotes it (C4). */
function frameRole(prompt: string, occasion: 'start' | 'resumed' | 'compacted'): string {
  return [
    '[ORCHUB MESSAGE role]',
    'From: orchestrator',
    `Title: ${TITLES[occasion]}`,
    '',
    prompt,
    '',
    '[END ORCHUB MESSAGE role]',
  ].join('\n')
}

const TITLES = {
  start: 'Your role, and how to work with the other agents. Do not reply.',
  resumed: 'Your role again, because this conversation was resumed. Do not reply.',
  compacted: 'Your role again, because your context was compacted. Do not reply.',
} as const
