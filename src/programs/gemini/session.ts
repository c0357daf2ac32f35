import type { SessionState } from '../../model/agent.ts'
import type { Arrival, SessionPort, Turn } from '../../runtimes/runtime.ts'
import type { FollowerLog } from '../line-follower.ts'
import { holdsTurn, messageIdsIn } from '../message-ids.ts'
import type { FollowOrder, Pane, ProgramSession } from '../program.ts'
import { createDialogs } from './dialogs.ts'
import { type EventOf, HookEvent } from './hook-event.ts'
import { isWorking, readInputBox } from './input-box.ts'
import { Kept } from './kept.ts'
import type { TranscriptRecord } from './record.ts'
import { followTranscript, searchTranscripts, type Transcript } from './transcript.ts'

/** It swallows an Enter that comes within 30 ms of a paste. */
const ENTER_AFTER_MS = 200
/** Its hooks are processes; under load they take their time. */
const EVIDENCE_MS = 8_000
const PATIENCE_MS = 5_000
const STOP_MS = 5_000
/** Without a sign of its hooks. */
const START_MS = 120_000
const REMEMBERED_TRANSCRIPTS = 8

/** One agent in Gemini CLI: its hooks and its transcript tell what it does and says; text goes in by a guarded paste. */
export function openSession(
  order: FollowOrder,
  pane: Pane,
  port: SessionPort,
  log: FollowerLog,
): ProgramSession {
  let kept = Kept.parse(order.kept)
  let state: SessionState = order.found ? 'unknown' : 'initializing'
  let transcript: Transcript | undefined
  let notices: string[] = []
  let closed = false
  let keeping = false
  const expected = new Map<Turn, (arrival: Arrival) => void>()
  const watchers = new Set<() => void>()
  const dialogs = createDialogs({
    port,
    pane,
    refused: (what) => void notices.push(what),
    warn: (text) => log.warn({ agent: order.name }, text),
  })
  const late = setTimeout(isLate, START_MS).unref()

  function become(next: SessionState, evidence: string) {
    if (state === next || state === 'exited' || closed) return
    state = next
    port.changed(next, evidence)
    for (const watcher of [...watchers]) watcher()
  }

  function isLate() {
    if (state === 'initializing')
      become('error', 'none of its hooks has called: are hooks or extensions switched off in its settings?')
  }

  // ── what it says ───────────────────────────────────────────────────────────────────────────────

  function openTranscript(file: string) {
    if (transcript?.file === file || closed) return
    const isKnown = kept.transcript === file
    const earlier = [...kept.earlier, kept.transcript].filter((one) => one !== undefined && one !== file)
    kept = {
      ...kept,
      transcript: file,
      position: isKnown ? kept.position : undefined,
      earlier: [...new Set(earlier as string[])].slice(-REMEMBERED_TRANSCRIPTS),
    }
    void transcript?.close()
    const { since, position: from } = kept
    transcript = followTranscript({ file, from, since, port, log, onRecord, onProgress: keepSoon })
    keepSoon()
  }

  function onRecord(record: TranscriptRecord) {
    if (record.kind === 'prompt') prompted(record.text, `record ${record.id} of its transcript`)
    // No hook tells of a dialog that was answered with a no.
    if (record.kind === 'cancelled') turnEnds('its transcript says that the request was cancelled')
  }

  function prompted(prompt: string, evidence: string) {
    if (!kept.isPrompted) {
      kept = { ...kept, isPrompted: true }
      keepSoon()
    }
    for (const [turn, resolve] of expected) {
      if (holdsTurn(prompt, turn)) resolve({ state: 'submitted', evidence })
    }
  }

  /** Soon, and once for many changes: the position of a line counts when the line was dealt with. */
  function keepSoon() {
    if (keeping || closed) return
    keeping = true
    setImmediate(() => {
      keeping = false
      if (!closed) void keep()
    })
  }

  async function keep() {
    const position = transcript?.position() ?? kept.position
    kept = { ...kept, ...(position && { position }) }
    await port.keep(kept).catch((error: unknown) => log.warn({ err: error }, 'a place could not be kept'))
  }

  // ── what it does ───────────────────────────────────────────────────────────────────────────────

  async function hook(received: unknown): Promise<unknown> {
    const parsed = HookEvent.safeParse(received)
    if (!parsed.success || closed) return {}
    const event = parsed.data
    meet(event)
    switch (event.hook_event_name) {
      case 'SessionStart':
        // Another hook of a turn may have come before it.
        if (state === 'initializing' || event.source === 'clear') become('idle', 'its session started')
        return {}
      case 'BeforeAgent':
        return beginTurn(event)
      case 'BeforeTool':
      case 'AfterTool':
        dialogs.used(event)
        if (!dialogs.isOpen) become('busy', `it uses ${event.tool_name}`)
        return event.hook_event_name === 'AfterTool' ? passNotices('AfterTool') : {}
      case 'Notification':
        dialogs.ask(event)
        become('waiting_input', `it asks for leave: ${event.message}`)
        return {}
      case 'AfterAgent':
        // What was said in the turn comes before the end of it.
        await transcript?.settled()
        turnEnds('its turn ended')
        return {}
      case 'SessionEnd':
        dialogs.settleAll()
        return {}
    }
  }

  /** Every hook names the conversation; a person may have begun or opened another one in the pane. */
  function meet(event: HookEvent) {
    clearTimeout(late)
    if (event.hook_event_name === 'SessionEnd') return
    if (event.hook_event_name === 'SessionStart' && event.source === 'resume') return
    if (event.session_id !== kept.sessionId) {
      kept = { ...kept, sessionId: event.session_id, since: Date.now(), isPrompted: false }
      keepSoon()
    }
    openTranscript(event.transcript_path)
  }

  function beginTurn({ prompt }: EventOf<'BeforeAgent'>) {
    const evidence = 'its BeforeAgent hook showed the prompt'
    become('busy', evidence)
    const ids = messageIdsIn(prompt)
    if (ids.length > 0) port.arrived(ids, 'submitted', evidence)
    prompted(prompt, evidence)
    return passNotices('BeforeAgent')
  }

  function turnEnds(evidence: string) {
    dialogs.settleAll()
    become('idle', evidence)
  }

  function passNotices(hookEventName: string) {
    if (notices.length === 0) return {}
    const additionalContext = notices.join('\n')
    notices = []
    return { hookSpecificOutput: { hookEventName, additionalContext } }
  }

  /** Found again: hooks that called meanwhile found nobody. It works, or its input box is there: a dialog hides it. */
  async function look() {
    const screen = await pane.screen().catch(() => undefined)
    if (screen === undefined || state !== 'unknown') return
    if (isWorking(screen)) become('busy', 'it works, as its screen shows')
    else if (readInputBox(screen) !== 'unknown') become('idle', 'its input box is there, and nothing runs')
  }

  // ── ways in ────────────────────────────────────────────────────────────────────────────────────

  async function deliver(turn: Turn): Promise<Arrival> {
    if (state !== 'idle') return { state: 'queued', evidence: `Gemini is ${state}` }
    const { promise: evidence, resolve } = Promise.withResolvers<Arrival>()
    expected.set(turn, resolve)
    try {
      return await pane.paste(turn, {
        state: () => state,
        inputBox: readInputBox,
        enterAfterMs: ENTER_AFTER_MS,
        evidence,
        evidenceMs: EVIDENCE_MS,
        patienceMs: PATIENCE_MS,
      })
    } finally {
      expected.delete(turn)
    }
  }

  async function locate(id: string): ReturnType<ProgramSession['locate']> {
    await transcript?.settled()
    const files = [...kept.earlier, kept.transcript].filter((file) => file !== undefined)
    const found = await searchTranscripts(files, id)
    if (found !== undefined)
      return { at: 'submitted', evidence: `it is in record ${found} of its transcript` }
    if (state !== 'idle') return { at: 'unknown', evidence: `Gemini is ${state}` }
    const box = readInputBox(await pane.screen())
    return box === 'empty'
      ? { at: 'absent', evidence: 'it is idle, and neither its transcript nor its input box holds it' }
      : { at: 'unknown', evidence: 'something stands in its input box' }
  }

  /** Escape stops a request, and answers a dialog with a no, which ends the turn as well. */
  async function interrupt(): Promise<{ stopped: boolean; evidence: string }> {
    if (state === 'idle') return { stopped: true, evidence: 'it was idle' }
    if (state !== 'busy' && state !== 'waiting_input')
      return { stopped: false, evidence: `Gemini is ${state}` }
    const { promise, resolve } = Promise.withResolvers<void>()
    const watcher = () => isIdle() && resolve()
    const timer = setTimeout(resolve, STOP_MS)
    watchers.add(watcher)
    await pane.press(['Escape'])
    await promise
    watchers.delete(watcher)
    clearTimeout(timer)
    return { stopped: isIdle(), evidence: `Gemini was ${state} after Escape` }
  }

  const isIdle = () => state === 'idle'

  if (kept.transcript !== undefined) openTranscript(kept.transcript)
  if (order.found) void look()

  return {
    get state() {
      return state
    },
    deliver,
    locate,
    interrupt,
    hook,
    async notice(text) {
      if (state === 'busy' || state === 'waiting_input') notices.push(text)
    },
    exited(evidence) {
      dialogs.settleAll()
      become('exited', evidence)
      // Its last words may have been written just now.
      void transcript?.settled()
    },
    async close() {
      clearTimeout(late)
      dialogs.settleAll()
      await transcript?.close()
      if (!closed) await keep()
      closed = true
    },
  }
}
