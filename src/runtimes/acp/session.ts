import { methods, RequestError } from '@agentclientprotocol/sdk'
import { z } from 'zod'
import type { SessionState } from '../../model/agent.ts'
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { withoutMentions } from '../../wire/mentions.ts'
import { escapeMarkers } from '../../wire/response.ts'
import {
  type AgentStart,
  type Credentials,
  noLongerWanted,
  type Session,
  type SessionPort,
} from '../runtime.ts'
import type { AgentProcess } from './agent-process.ts'
import { brokenBy, connect } from './connection.ts'
import { describeError, isRefusal, wantsLogin } from './failure.ts'
import { createForeword } from './foreword.ts'
import { createHistory } from './history.ts'
import { open } from './opening.ts'
import type { BuiltIn } from './programs.ts'
import { createQuestions } from './questions.ts'
import { createReplay } from './replay.ts'
import type { AcpSettings } from './settings.ts'
import { createSpeech } from './speech.ts'
import { spentBy } from './spending.ts'
import { steer } from './steering.ts'
import { answered, FAILURE_MS_MAX, type Limits, minuteIsOver } from './surroundings.ts'
import { createTail } from './tail.ts'
import { type OpenTurn, openTurn } from './turn.ts'
import { readUpdate, type Update } from './update.ts'

const SCREEN_KEPT = 16 * 1024

export interface SessionOrder {
  readonly agent: AgentStart
  readonly port: SessionPort
  readonly process: AgentProcess
  readonly credentials: Credentials
  readonly settings: AcpSettings
  readonly builtIn: BuiltIn | undefined
  /** The conversation to be taken up again. */
  readonly kept: KeptConversation | undefined
  readonly mark: string
  /** Notes the conversation, to be taken up again. */
  keep(conversation: KeptConversation): Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly limits: Limits
  readonly bin: string
  readonly version: string
}

export interface KeptConversation {
  readonly sessionId: string
  readonly begunAt: number
}

/** One agent that speaks ACP on its standard input and output. It cannot outlive them: it ends with the service. */
export function startSession(order: SessionOrder): Session {
  const { agent, port, process, clock, limits, log, settings, builtIn } = order
  const mentions = settings.mentions ?? builtIn?.mentions
  const screen = createTail(SCREEN_KEPT)
  const history = createHistory(order.kept === undefined ? 'nothing' : 'something')
  const replay = createReplay(order.kept !== undefined, history, clock, limits.quietMs)
  const foreword = createForeword(agent.prompt)
  const speech = createSpeech(port.said, clock, (error) =>
    log.warn({ agent: agent.name, err: error }, 'what the agent said could not be taken'),
  )
  let state: SessionState = 'initializing'
  let sessionId = order.kept?.sessionId
  let canSteer = false
  /** Where the agent takes no system prompt. */
  let isRoleInTurns = false
  let turn: OpenTurn | undefined
  let turnEnded: Promise<string> | undefined
  let turnNumber = 0
  let failures = 0
  let cancelRetry = () => {}
  /** Why it is ended by us; undefined as long as it is not. */
  let ending: string | undefined
  let isOver = false

  function become(next: SessionState, evidence: string) {
    state = next
    port.changed(next, evidence)
  }

  // ——— what comes from the agent ———

  function onUpdate(params: unknown) {
    const read = readUpdate(params)
    if (read === undefined || read.sessionId !== sessionId) return
    const { update } = read
    if (update.kind === 'usage') return tellUsage(update)
    if (replay.isOn) return replay.take(update)
    switch (update.kind) {
      case 'speech':
        took('read', 'the agent began to answer')
        speech.say(update.text, update.message)
        return screen.add(update.text)
      case 'work':
        return took('read', 'the agent began to work on it')
      case 'tool':
        took('read', 'the agent began to work on it')
        speech.pause()
        return screen.add(`\n[${update.title}]\n`)
      case 'heard':
        if (turn?.ids.some((id) => update.text.includes(`[ORCHUB MESSAGE ${id}]`)) === true)
          took('submitted', 'the agent repeated it as said to it')
        return
      case 'compacted':
        if (isRoleInTurns) foreword.roleIsDue('compacted')
        return
      case 'remark':
        return screen.add(`\n[${update.text}]\n`)
    }
  }

  function tellUsage({ used, size, model }: Update & { kind: 'usage' }) {
    port.used({ contextTokens: used, contextWindow: size, ...(model === undefined ? {} : { model }) })
  }

  function took(rung: 'submitted' | 'read', evidence: string) {
    if (turn === undefined) return
    history.settle(turn.ids, true)
    turn.reach(rung, evidence)
  }

  const questions = createQuestions({
    asked: port.asked,
    opened(tool) {
      took('read', `the agent asks for leave to use ${tool}`)
      if (!isOver) become('waiting_input', `session/request_permission for ${tool}`)
    },
    closed(tool, verdict) {
      if (verdict?.allow === false && verdict.comment !== undefined) {
        // ACP's no carries no words.
        foreword.add(`A person refused your request to use ${tool}: ${escapeMarkers(verdict.comment)}`)
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
    onGarbage: (what) => log.warn({ agent: agent.name, what }, 'the agent sent something that is no ACP'),
    hold: () => speech.hold(),
    ask: (request, id, gone) => questions.ask(request, `${order.mark}:${id}`, gone),
  })

  // ——— beginning and end ———

  function fail(reason: string) {
    if (isOver || ending !== undefined) return
    ending = reason
    become('error', reason)
    process.end(limits.graceMs).catch((error) => log.warn({ agent: agent.name, err: error }, 'left behind'))
  }

  async function begin() {
    const { kept, builtIn } = order
    const { capabilities, conversation } = await open({
      ...order,
      sessionId: kept?.sessionId,
      async beforeLoading() {
        if (kept !== undefined && builtIn?.losesItsFirstMinute) await minuteIsOver(clock, kept.begunAt)
      },
      connection: connection.agent,
      within: (answer, what) => answered(clock, limits.answerMs, answer, what),
    })
    sessionId = conversation.sessionId
    await replay.over(conversation.how === 'loaded')
    canSteer = capabilities.steering && builtIn?.steers === true
    isRoleInTurns = !capabilities.systemPrompt
    if (isRoleInTurns) foreword.roleIsDue(conversation.how === 'new' ? 'start' : 'resumed')
    const begunAt = conversation.how === 'new' ? clock.now() : (kept?.begunAt ?? clock.now())
    await order.keep({ sessionId, begunAt })
    if (ending === undefined && !isOver) become('idle', `${capabilities.title}: ${conversation.note}`)
  }

  const begun = begin().catch(async (error) => {
    // Why the connection broke is known better elsewhere.
    if (connection.signal.aborted) return void (await over)
    const login = wantsLogin(error) ? ` ${order.builtIn?.login ?? 'Log in to it first.'}` : ''
    fail(`could not be opened: ${describeError(error)}.${login}`)
    await over
  })

  connection.closed.then(() => {
    const broken = brokenBy(connection)
    if (broken !== undefined) fail(broken.message)
    // An agent that ends closes its output first: only one that goes on without is at fault.
    else clock.after(limits.graceMs, () => fail('it closed its output'))
  })

  const over = process.ended.then(async (how) => {
    isOver = true
    cancelRetry()
    questions.cancel()
    connection.close()
    turn?.doubt(
      turn.isWritten ? 'uncertain' : 'queued',
      `the agent ended ${turn.isWritten ? 'without a sign of it' : 'before it was written'}`,
    )
    if (turn?.isWritten === false) history.settle(turn.ids, false)
    // What it started may still run.
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
      // A cancelled turn may never have come before the model.
      took(reason === 'cancelled' ? 'submitted' : 'read', `session/prompt was answered: ${reason}`)
      const usage = spentBy(response, `${order.mark}:${number}`)
      if (usage !== undefined) port.used(usage)
      failures = 0
      finish('idle', `turn ${number} ended: ${reason}`)
      return reason
    } catch (error) {
      // Whatever broke the connection ends the process too, and tells more.
      if (!(error instanceof RequestError) || isOver) return await over
      const why = describeError(error)
      const isRefused = !running.isTaken && isRefusal(error)
      if (isRefused) history.settle(running.ids, false)
      running.doubt(isRefused ? 'queued' : 'uncertain', `session/prompt failed: ${why}`)
      const login = wantsLogin(error) ? ` ${order.builtIn?.login ?? ''}` : ''
      finish('error', `turn ${number} failed: ${why}.${login}`)
      retryLater()
      return why
    }
  }

  function finish(next: 'idle' | 'error', evidence: string) {
    questions.cancel()
    speech.pause()
    turn = undefined
    if (!isOver && ending === undefined) become(next, evidence)
  }

  /** It may be the model's service that is away: trying at once, over and over, would spoil message after message. */
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
    async deliver(next, gone) {
      if (gone?.aborted) return noLongerWanted(gone)
      const isReady = state === 'idle' && turn === undefined && ending === undefined && !isOver
      if (!isReady) return { state: 'queued', evidence: `the agent is ${ending ?? state}` }
      const running = openTurn(next, port.arrived)
      const { text, given } = foreword.before(withoutMentions(next.text, mentions))
      turn = running
      history.wrote(next.ids)
      become('busy', 'session/prompt is on its way')
      turnEnded = prompt(running, text)
      const cancelDoubt = clock.after(limits.signMs, () =>
        running.doubt('uncertain', `no sign of it within ${limits.signMs / 1000} s`),
      )
      const arrival = await running.arrival
      cancelDoubt()
      if (running.isTaken) given()
      return arrival
    },
    async locate(ids) {
      await begun
      return ids.map(history.locate)
    },
    async notice(notice) {
      const text = withoutMentions(notice, mentions)
      if (canSteer && turn !== undefined && (await steer(connection.agent, sessionId!, text))) return
      foreword.add(text)
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
      return (shown.length > 0 ? shown : process.complaints(lines)).join('\n')
    },
    stop: () => end('was stopped'),
    leave: () => end('ended with the service; its conversation will be taken up again'),
  }
}

const StopReason = z.object({ stopReason: z.string().max(64) })
