import { join } from 'node:path'
import { z } from 'zod'
import type { MessageLocation, SessionPort } from '../../runtimes/runtime.ts'
import { createStateSaver } from '../agent-output.ts'
import { createHookNotices } from '../hook-notices.ts'
import type { FollowerLog } from '../line-follower.ts'
import { createPromptAwaiter, locateIn, lookInPane, messageIdsIn } from '../message-evidence.ts'
import type { Pane, ProgramFollowOptions, ProgramSession } from '../program.ts'
import { searchTranscripts, transcriptFields, withTranscript } from '../transcript-path.ts'
import { findStatusFile, followActivity, followStatus, type StatusFile } from './activity.ts'
import { EVIDENCE_MS, holdTurnEnd, type OpenTurnEnd, openDelivery, PROMPT_WITHIN_MS } from './deliver.ts'
import { ClaudeHookEvent, type ClaudeHookEventOf, createDialogs } from './hooks.ts'
import { readInputBox } from './input-box.ts'
import { createInterrupt, createWithdrawals } from './interrupt.ts'
import type { ClaudeRecord } from './record.ts'
import { type ClaudeTranscript, followTranscript, searchTranscript } from './transcript.ts'

/**
 * Saved state: needed to follow the program after a restart of the service, and to resume its conversation.
 */
export const ClaudeSavedState = z.object({
  sessionId: z.string(),
  /** Folder of `sessions/` and `projects/`: the user's own, only read. */
  configFolder: z.string(),
  /**
   * The session that this agent began, so all text in its transcript is its own. Its times are not compared:
   * after the clock is set back, everything would seem older than the agent.
   */
  begun: z.string().optional(),
  /** Milliseconds. In transcripts of other sessions, older records precede this agent. */
  since: z.number(),
  ...transcriptFields,
  /** The pid under which `sessions/` lists it: the program's own, or that of a wrapper's child. */
  statusFile: z.string().optional(),
  /** As the program named it at its start; `[1m]` means a larger window. */
  model: z.string().optional(),
  /** Turns withdrawn before the model saw them, to be delivered again. */
  withdrawn: z
    .array(z.object({ text: z.string(), ids: z.array(z.string()), record: z.string().optional() }))
    .default([]),
  /** A turn that its hook has shown but its transcript has not: it may still be withdrawn. */
  unrecorded: z.string().optional(),
})
export type ClaudeSavedState = z.output<typeof ClaudeSavedState>

/** How long the end of a turn is held for messages; the person sees the turn last that much longer. */
const HOLD_MS = 250
/** The transcript lags behind a hook by far less. */
const TRANSCRIPT_LAG_MS = 1000
/** Claude Code force-ends a turn after eight consecutive Stop hook responses. */
const MAX_HOOK_TURNS = 7
const WITHDRAWN: MessageLocation = { at: 'absent', evidence: 'it was withdrawn before the model saw it' }

/**
 * A Claude Code in a pane: combines its hooks, its transcript and its status file. The states are those of
 * activity.ts; this file adds `saved` (what a restart needs), the running transcript (replaced when the
 * conversation changes) and `hookTurns` (consecutive turns started by Stop hooks, below MAX_HOOK_TURNS).
 */
export async function followSession(
  options: ProgramFollowOptions,
  pane: Pane,
  port: SessionPort,
  log: FollowerLog,
): Promise<ProgramSession> {
  let savedState = ClaudeSavedState.parse(options.savedState)
  let turnEnd: OpenTurnEnd | undefined
  /** Consecutive turns started by responses to Stop hooks. */
  let hookTurns = 0
  let transcript: ClaudeTranscript | undefined
  let statusFile: StatusFile | undefined
  let closed = false
  /** Whether we have written into its input box. */
  let mayHoldOurs = options.isReattached

  const saved = createStateSaver(port, log, () => {
    const position = transcript?.position() ?? savedState.position
    const withdrawn = withdrawals.turns.map((turn) => ({ ...turn, ids: [...turn.ids] }))
    savedState = {
      ...savedState,
      ...(position && { position }),
      withdrawn,
      unrecorded: withdrawals.unrecorded,
    }
    return savedState
  })
  const notices = createHookNotices()
  const dialogs = createDialogs(port)
  const expectations = createPromptAwaiter()
  // The input box of a newly started program is empty.
  const unrecorded = options.isReattached ? savedState.unrecorded : undefined
  const withdrawals = createWithdrawals(savedState.withdrawn, saved.soon, unrecorded)
  const activity = followActivity({
    found: options.isReattached,
    dialogs,
    changed(state, evidence) {
      if (!closed) port.onStateChange(state, evidence)
    },
    readStatus: async () => await statusFile?.read(),
    settled: async () => await transcript?.settled(),
    async endedSilently(isStill) {
      transcript?.release()
      if (transcript !== undefined && mayHoldOurs) await withdrawals.look(transcript, pane, isStill)
    },
    atPrompt: () =>
      withdrawals.schedule({
        isIdle: () => activity.state === 'idle',
        isHeld: port.isPaused,
        give: () => give(undefined),
      }),
  })
  const interrupt = createInterrupt({ pane, activity, withdrawals, keep: saved.now })
  const give = openDelivery({
    ...{ activity, expectations, withdrawals, pane },
    turnEnd: () => turnEnd,
    emptyBox: interrupt.emptyBox,
  })

  async function openTranscript(file: string) {
    if (transcript?.file === file || closed) return
    const before = transcript
    savedState = withTranscript(savedState, file)
    transcript = followTranscript({
      file,
      from: savedState.position,
      since: savedState.sessionId === savedState.begun ? 0 : savedState.since,
      port,
      log,
      model: () => savedState.model,
      onProgress: saved.soon,
      onRecord: handleRecord,
      isWithdrawn: withdrawals.claims,
      onWithdrawn: withdrawals.add,
    })
    saved.soon()
    before?.release()
    await before?.close()
  }

  function handleRecord(record: ClaudeRecord) {
    if (record.kind === 'prompt') {
      withdrawals.recorded(record.text)
      prompted(record.text, `record ${record.uuid} of the transcript is the prompt`)
    }
    if (record.kind === 'answer') for (const use of record.toolUses) dialogs.noteToolUse(use)
    if (record.kind === 'results') for (const id of record.toolUseIds) dialogs.settle(id)
    if (record.kind === 'interrupted') noteEnd('it was interrupted')
  }

  function noteEnd(how: string) {
    withdrawals.turnEnded()
    activity.noteEnd(how)
  }

  function prompted(prompt: string, evidence: string) {
    const ids = messageIdsIn(prompt)
    if (ids.length > 0) port.onEvidence(ids, 'submitted', evidence)
    withdrawals.prompted(prompt)
    expectations.prompted(prompt, evidence)
  }

  function openStatus(file: string) {
    if (savedState.statusFile === file && statusFile !== undefined) return
    statusFile?.close()
    savedState = { ...savedState, statusFile: file }
    statusFile = followStatus({ file, log, onStatus: (status) => void activity.onStatus(status) })
  }

  async function hook(received: unknown, signal: AbortSignal): Promise<unknown> {
    const parsed = ClaudeHookEvent.safeParse(received)
    if (!parsed.success || closed) return {}
    const event = parsed.data
    if (event.agent_id === undefined) await noteConversation(event)
    switch (event.hook_event_name) {
      case 'SessionStart':
        if (event.model !== undefined) savedState = { ...savedState, model: event.model }
        activity.started()
        return {}
      case 'UserPromptSubmit':
        activity.turnBegan('a prompt was submitted')
        mayHoldOurs = true
        withdrawals.submitted(event.prompt)
        prompted(event.prompt, 'its UserPromptSubmit hook reported the prompt')
        return {}
      case 'PermissionRequest':
        return await askPermission(event, signal)
      case 'PostToolUse':
      case 'PostToolUseFailure':
        dialogs.settle(event.tool_use_id)
        return event.agent_id === undefined ? notices.responseTo(event.hook_event_name) : {}
      case 'Stop':
        return await endTurn(event, signal)
      case 'StopFailure':
        transcript?.release()
        noteEnd(`the turn failed: ${event.last_assistant_message ?? event.error}`)
        return {}
      case 'SessionEnd':
        dialogs.settleAll()
        return {}
    }
  }

  /** Every hook names its conversation, which may have changed (clear, fork). */
  async function noteConversation(event: ClaudeHookEvent) {
    const { session_id, transcript_path } = event
    savedState = { ...savedState, sessionId: session_id }
    if (event.hook_event_name === 'SessionStart' && event.source === 'clear')
      savedState = { ...savedState, begun: session_id }
    if (transcript_path !== undefined) await openTranscript(transcript_path)
    if (activity.hasStatus) return
    const found = await findStatusFile(join(savedState.configFolder, 'sessions'), session_id)
    if (found !== undefined) openStatus(found)
  }

  async function askPermission(event: ClaudeHookEventOf<'PermissionRequest'>, signal: AbortSignal) {
    activity.dialogOpened(`it asks for permission to use ${event.tool_name}`)
    await transcript?.settled()
    const answer = await dialogs.ask(event, signal)
    if (answer === undefined) return {}
    activity.dialogAnswered('its question was answered')
    return answer
  }

  async function endTurn(event: ClaudeHookEventOf<'Stop'>, signal: AbortSignal) {
    dialogs.settleAll()
    hookTurns = event.stop_hook_active ? hookTurns + 1 : 0
    await transcript?.reaches(event.last_assistant_message, TRANSCRIPT_LAG_MS)
    // The announced messages are delivered now, or wait at its prompt.
    notices.clear()
    noteEnd('its turn ended')
    if (signal.aborted || closed || hookTurns >= MAX_HOOK_TURNS) return {}
    const hold = holdTurnEnd(HOLD_MS, signal)
    turnEnd = hold.end
    activity.turnEnded('its turn ended, and its Stop hook is waiting for an answer')
    const answer = await hold.answer
    turnEnd = undefined
    if (answer === undefined) activity.turnLeft()
    return answer ?? {}
  }

  async function locate(ids: readonly string[]): ReturnType<ProgramSession['locate']> {
    const withdrawn = withdrawals.ids
    const search = (some: readonly string[]) => {
      const wanted = some.filter((id) => !withdrawn.has(id))
      return searchTranscripts(savedState, wanted, searchTranscript)
    }
    const locations = await locateIn(ids, search, lookElsewhere, pane)
    return locations.map((location, index) => (withdrawn.has(ids[index]!) ? WITHDRAWN : location))
  }

  async function lookElsewhere(): Promise<MessageLocation> {
    if (!(await activity.comesToPrompt(PROMPT_WITHIN_MS)))
      return { at: 'unknown', evidence: `the program is ${activity.state}` }
    return await lookInPane(pane, { state: () => activity.state, inputBox: readInputBox, lagMs: EVIDENCE_MS })
  }

  if (savedState.transcript !== undefined) await openTranscript(savedState.transcript)
  openStatus(savedState.statusFile ?? join(savedState.configFolder, 'sessions', `${pane.pid}.json`))
  await port.saveState(savedState)

  return {
    get state() {
      return activity.state
    },
    hasDelayedOutput: true,
    deliver: give,
    locate,
    async notice(text) {
      if (activity.state === 'busy' || activity.state === 'waiting_input') notices.add(text)
    },
    interrupt: interrupt.end,
    hook,
    onToolsListed: activity.toolsGiven,
    onExit() {
      activity.exited()
      dialogs.settleAll()
      turnEnd?.close()
      // The program may have written its last text just now.
      void transcript?.settled().then(() => transcript?.release())
    },
    async close() {
      interrupt.close()
      activity.close()
      withdrawals.close()
      turnEnd?.close()
      dialogs.settleAll()
      statusFile?.close()
      await transcript?.close()
      await saved.close()
      closed = true
    },
  }
}
