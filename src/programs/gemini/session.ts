import { withoutMentions } from '../../protocol/mentions.ts'
import type { DeliveryResult, MessageLocation, SessionPort, Turn } from '../../runtimes/runtime.ts'
import { createHookNotices } from '../hook-notices.ts'
import type { FollowerLog } from '../line-follower.ts'
import { createPromptAwaiter, locateIn, lookInPane, messageIdsIn } from '../message-evidence.ts'
import type { Pane, ProgramFollowOptions, ProgramSession } from '../program.ts'
import { createSessionState } from '../session-state.ts'
import { followConversation, GeminiSavedState } from './conversation.ts'
import { createDialogs, GeminiHookEvent, type GeminiHookEventOf } from './hooks.ts'
import { readInputBox } from './input-box.ts'
import { watchStartup } from './startup.ts'
import type { GeminiRecord } from './transcript.ts'

/** Gemini swallows an Enter within 40 ms after reading a paste, which takes longer the larger it is. */
const enterAfterMs = (text: string) => 200 + text.length / 100
/** Timeout for evidence: it comes from hooks, which are processes and slow under load. */
const EVIDENCE_MS = 8_000
const PATIENCE_MS = 5_000
const STOP_MS = 5_000

/**
 * An agent in Gemini CLI: its hooks and its transcript show its activity and its text; text goes in by a
 * guarded paste.
 */
export function openSession(
  options: ProgramFollowOptions,
  pane: Pane,
  port: SessionPort,
  log: FollowerLog,
): ProgramSession {
  const state = createSessionState(options.isReattached ? 'unknown' : 'initializing', (next, evidence) =>
    port.onStateChange(next, evidence),
  )
  const savedState = GeminiSavedState.parse(options.savedState)
  const expectations = createPromptAwaiter()
  const notices = createHookNotices()
  const dialogs = createDialogs({
    port,
    pane,
    refused: notices.add,
    warn: (text) => log.warn({ agent: options.name }, text),
  })
  /** Gemini aborted its own answer: the turn ends with a dialog, not with its prompt. */
  let isInLoop = false
  /** The turn was cancelled. Late hooks of its tools say nothing about its current activity. */
  let isCancelled = false
  let isInterrupting = false
  let closed = false
  const startup = watchStartup({
    pane,
    state,
    isFound: options.isReattached,
    isResumed: savedState.isPrompted,
  })
  const conversation = followConversation({ savedState, port, log, onRecord, onForgotten })

  // ── events from the program ───────────────────────────────────────────────────────────────────────────────

  async function hook(received: unknown): Promise<unknown> {
    const parsed = GeminiHookEvent.safeParse(received)
    if (!parsed.success || closed) return {}
    const event = parsed.data
    startup.called()
    conversation.noteConversation(event)
    switch (event.hook_event_name) {
      case 'SessionStart':
        startup.started()
        if (event.source === 'clear') state.become('idle', 'a new session started')
        return {}
      case 'BeforeAgent':
        return beginTurn(event)
      case 'BeforeTool':
      case 'AfterTool':
        dialogs.used(event)
        if (!dialogs.isOpen && !isCancelled) state.become('busy', `it uses ${event.tool_name}`)
        return event.hook_event_name === 'AfterTool' ? notices.responseTo('AfterTool') : {}
      case 'Notification':
        if (isCancelled) return {}
        dialogs.ask(event)
        state.become('waiting_input', `it asks for permission: ${event.message}`)
        return {}
      case 'AfterAgent':
        // The turn's text comes before its end.
        await conversation.settled()
        if (isInLoop) state.become('waiting_input', 'it suspects a loop and asks a person in a dialog')
        else endTurn('its turn ended')
        return {}
      case 'SessionEnd':
        dialogs.settleAll()
        return {}
    }
  }

  function onRecord(record: GeminiRecord) {
    if (closed) return
    switch (record.kind) {
      case 'prompt':
        isCancelled = false
        return prompted(record.text, `record ${record.id} of its transcript`)
      case 'loop':
        isInLoop = true
        return
      case 'answer':
        isInLoop = false
        return
      case 'resumed':
        return startup.loaded()
      case 'retried':
        isInLoop = false
        return state.become('busy', 'a person answered its loop dialog')
      case 'cancelled':
      case 'halted':
        isCancelled = true
        return endTurn(`record ${record.id} of its transcript reports that the request was ${record.kind}`)
    }
  }

  /**
   * A person may have meant the turn and not the message, which would otherwise be lost: deliver it again.
   */
  function onForgotten(ids: readonly string[]) {
    if (closed) return
    const by = isInterrupting ? 'the interrupt' : 'a person’s Escape'
    port.onEvidence(ids, 'queued', `${by} removed it from the conversation before it was answered`)
  }

  function beginTurn({ prompt }: GeminiHookEventOf<'BeforeAgent'>) {
    const evidence = 'its BeforeAgent hook reported the prompt'
    isInLoop = false
    isCancelled = false
    state.become('busy', evidence)
    const ids = messageIdsIn(prompt)
    if (ids.length > 0) port.onEvidence(ids, 'submitted', evidence)
    prompted(prompt, evidence)
    return notices.responseTo('BeforeAgent')
  }

  function prompted(prompt: string, evidence: string) {
    conversation.prompted()
    expectations.prompted(prompt, evidence)
  }

  function endTurn(evidence: string) {
    isInLoop = false
    dialogs.settleAll()
    state.become('idle', evidence)
  }

  // ── delivery ────────────────────────────────────────────────────────────────────────────────────

  async function deliver(turn: Turn, signal?: AbortSignal): Promise<DeliveryResult> {
    if (state.now !== 'idle') return { state: 'queued', evidence: `Gemini is ${state.now}` }
    const { result, cancel } = expectations.expect(turn)
    try {
      return await pane.paste(turn, {
        state: () => state.now,
        inputBox: readInputBox,
        enterAfterMs: enterAfterMs(turn.text),
        evidence: result,
        evidenceMs: EVIDENCE_MS,
        lagMs: EVIDENCE_MS,
        patienceMs: PATIENCE_MS,
        signal,
      })
    } finally {
      cancel()
    }
  }

  async function lookElsewhere(): Promise<MessageLocation> {
    if (state.now !== 'idle') return { at: 'unknown', evidence: `Gemini is ${state.now}` }
    return await lookInPane(pane, { state: () => state.now, inputBox: readInputBox, lagMs: EVIDENCE_MS })
  }

  /** Escape stops a request, and denies a dialog, which also ends the turn. */
  async function interrupt(): Promise<{ stopped: boolean; evidence: string }> {
    if (state.now === 'idle') return { stopped: true, evidence: 'it was idle' }
    if (state.now !== 'busy' && state.now !== 'waiting_input')
      return { stopped: false, evidence: `Gemini is ${state.now}` }
    isInterrupting = true
    await pane.press(['Escape'])
    const stopped = await state.idleWithin(STOP_MS)
    isInterrupting = false
    return { stopped, evidence: `Gemini was ${state.now} after Escape` }
  }

  return {
    get state() {
      return state.now
    },
    hasDelayedOutput: true,
    deliver: (turn, signal) => deliver({ ...turn, text: withoutMentions(turn.text, 'anywhere') }, signal),
    locate: (ids) => locateIn(ids, conversation.search, lookElsewhere, pane),
    interrupt,
    hook,
    async notice(text) {
      if (state.now === 'busy' || state.now === 'waiting_input') notices.add(text)
    },
    onExit(evidence) {
      dialogs.settleAll()
      state.become('exited', evidence)
      // The program may have written its last text just now.
      void conversation.settled()
    },
    async close() {
      startup.close()
      closed = true
      dialogs.settleAll()
      await conversation.close()
    },
  }
}
