import { join } from 'node:path'
import type { SessionPort, Whereabouts } from '../../runtimes/runtime.ts'
import { createExpectations } from '../expectation.ts'
import { createKeeping } from '../keeping.ts'
import type { FollowerLog } from '../line-follower.ts'
import { messageIdsIn } from '../message-ids.ts'
import { createNotices } from '../notices.ts'
import type { FollowOrder, Pane, ProgramSession } from '../program.ts'
import { locateIn, lookInPane } from '../whereabouts.ts'
import { followActivity } from './activity.ts'
import { createDialogs } from './dialogs.ts'
import { type EventOf, HookEvent } from './hook-event.ts'
import { readInputBox } from './input-box.ts'
import { createInterrupt } from './interrupt.ts'
import { Kept } from './kept.ts'
import type { TranscriptRecord } from './record.ts'
import { findStatusFile, followStatus, type StatusFile } from './status-file.ts'
import { followTranscript, searchTranscript, type Transcript } from './transcript.ts'
import { holdTurnEnd, type TurnEnd } from './turn-end.ts'
import { EVIDENCE_MS, openWayIn } from './way-in.ts'
import { createWithdrawals } from './withdrawals.ts'

/** How long the end of a turn waits for messages; the person sees it as that much longer a turn. */
const HOLD_MS = 250
/** The transcript lags behind a hook by far less. */
const TRANSCRIPT_LAG_MS = 1000
/** Claude Code ends a turn by force after eight answers of Stop hooks in a row. */
const MAX_HOOK_TURNS = 7
const PROMPT_WITHIN_MS = 2000
const EARLIER_TRANSCRIPTS = 20
const TAKEN_BACK: Whereabouts = { at: 'absent', evidence: 'it was taken back before the model saw it' }

/** One Claude Code in a pane: its hooks, its transcript and its status file brought together. */
export async function followSession(
  order: FollowOrder,
  pane: Pane,
  port: SessionPort,
  log: FollowerLog,
): Promise<ProgramSession> {
  let kept = Kept.parse(order.kept)
  let turnEnd: TurnEnd | undefined
  /** Turns begun by answers of Stop hooks, in a row. */
  let hookTurns = 0
  let transcript: Transcript | undefined
  let statusFile: StatusFile | undefined
  let closed = false
  /** Its input box, once we have given it anything. */
  let mayHoldOurs = order.found

  const keeping = createKeeping(port, log, () => {
    const position = transcript?.position() ?? kept.position
    const withdrawn = withdrawals.turns.map((turn) => ({ ...turn, ids: [...turn.ids] }))
    kept = { ...kept, ...(position && { position }), withdrawn, unrecorded: withdrawals.unrecorded }
    return kept
  })
  const notices = createNotices()
  const dialogs = createDialogs(port)
  const expectations = createExpectations()
  // The input box of a program that was started anew is empty.
  const unrecorded = order.found ? kept.unrecorded : undefined
  const withdrawals = createWithdrawals(kept.withdrawn, keeping.soon, unrecorded)
  const activity = followActivity({
    found: order.found,
    dialogs,
    changed(state, evidence) {
      if (!closed) port.changed(state, evidence)
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
        isHeld: port.isHeld,
        give: () => give(undefined),
      }),
  })
  const interrupt = createInterrupt({ pane, activity, withdrawals, keep: keeping.now })
  const give = openWayIn({
    ...{ activity, expectations, withdrawals, pane },
    turnEnd: () => turnEnd,
    emptyBox: interrupt.emptyBox,
  })

  async function openTranscript(file: string) {
    if (transcript?.file === file || closed) return
    const before = transcript
    if (kept.transcript !== file) {
      const earlier = kept.transcript === undefined ? kept.earlier : [...kept.earlier, kept.transcript]
      kept = { ...kept, transcript: file, position: undefined, earlier: earlier.slice(-EARLIER_TRANSCRIPTS) }
    }
    transcript = followTranscript({
      file,
      from: kept.position,
      since: kept.sessionId === kept.begun ? 0 : kept.since,
      port,
      log,
      model: () => kept.model,
      onProgress: keeping.soon,
      onRecord: heedRecord,
      isTakenBack: withdrawals.claims,
      onTakenBack: withdrawals.add,
    })
    keeping.soon()
    before?.release()
    await before?.close()
  }

  function heedRecord(record: TranscriptRecord) {
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
    if (ids.length > 0) port.arrived(ids, 'submitted', evidence)
    withdrawals.prompted(prompt)
    expectations.prompted(prompt, evidence)
  }

  function openStatus(file: string) {
    if (kept.statusFile === file && statusFile !== undefined) return
    statusFile?.close()
    kept = { ...kept, statusFile: file }
    statusFile = followStatus({ file, log, onStatus: (status) => void activity.heed(status) })
  }

  async function hook(received: unknown, gone: AbortSignal): Promise<unknown> {
    const parsed = HookEvent.safeParse(received)
    if (!parsed.success || closed) return {}
    const event = parsed.data
    if (event.agent_id === undefined) await meet(event)
    switch (event.hook_event_name) {
      case 'SessionStart':
        if (event.model !== undefined) kept = { ...kept, model: event.model }
        activity.started()
        return {}
      case 'UserPromptSubmit':
        activity.turnBegan('a prompt was submitted')
        mayHoldOurs = true
        withdrawals.submitted(event.prompt)
        prompted(event.prompt, 'its UserPromptSubmit hook showed the prompt')
        return {}
      case 'PermissionRequest':
        return await askPermission(event, gone)
      case 'PostToolUse':
      case 'PostToolUseFailure':
        dialogs.settle(event.tool_use_id)
        return event.agent_id === undefined ? notices.answerTo(event.hook_event_name) : {}
      case 'Stop':
        return await endTurn(event, gone)
      case 'StopFailure':
        transcript?.release()
        noteEnd(`the turn failed: ${event.last_assistant_message ?? event.error}`)
        return {}
      case 'SessionEnd':
        dialogs.settleAll()
        return {}
    }
  }

  /** Every hook names the conversation it belongs to: it may be another one since the last (clear, fork). */
  async function meet(event: HookEvent) {
    const { session_id, transcript_path } = event
    kept = { ...kept, sessionId: session_id }
    if (event.hook_event_name === 'SessionStart' && event.source === 'clear')
      kept = { ...kept, begun: session_id }
    if (transcript_path !== undefined) await openTranscript(transcript_path)
    if (activity.hasStatus) return
    const found = await findStatusFile(join(kept.configFolder, 'sessions'), session_id)
    if (found !== undefined) openStatus(found)
  }

  async function askPermission(event: EventOf<'PermissionRequest'>, gone: AbortSignal) {
    activity.dialogOpened(`it asks whether it may use ${event.tool_name}`)
    await transcript?.settled()
    const answer = await dialogs.ask(event, gone)
    if (answer === undefined) return {}
    activity.dialogAnswered('its question was answered')
    return answer
  }

  async function endTurn(event: EventOf<'Stop'>, gone: AbortSignal) {
    dialogs.settleAll()
    hookTurns = event.stop_hook_active ? hookTurns + 1 : 0
    await transcript?.reaches(event.last_assistant_message, TRANSCRIPT_LAG_MS)
    // What they announced is put before the agent now, or waits for it at its prompt.
    notices.clear()
    noteEnd('its turn ended')
    if (gone.aborted || closed || hookTurns >= MAX_HOOK_TURNS) return {}
    const hold = holdTurnEnd(HOLD_MS, gone)
    turnEnd = hold.end
    activity.turnEnded('its turn ended, and its Stop hook waits for an answer')
    const answer = await hold.answer
    turnEnd = undefined
    if (answer === undefined) activity.turnLeft()
    return answer ?? {}
  }

  async function locate(ids: readonly string[]): ReturnType<ProgramSession['locate']> {
    const withdrawn = withdrawals.ids
    const places = await locateIn(ids, pane, (some) => search(some, withdrawn), lookElsewhere)
    return places.map((place, index) => (withdrawn.has(ids[index]!) ? TAKEN_BACK : place))
  }

  async function search(ids: readonly string[], withdrawn: ReadonlySet<string>) {
    const missing = new Set(ids.filter((id) => !withdrawn.has(id)))
    const found = new Map<string, string>()
    for (const file of [...kept.earlier, kept.transcript]) {
      if (file === undefined || missing.size === 0) continue
      for (const [id, record] of await searchTranscript(file, missing)) {
        missing.delete(id)
        found.set(id, `record ${record} of the transcript holds it`)
      }
    }
    return found
  }

  async function lookElsewhere(): Promise<Whereabouts> {
    if (!(await activity.comesToPrompt(PROMPT_WITHIN_MS)))
      return { at: 'unknown', evidence: `the program is ${activity.state}` }
    return await lookInPane(pane, { state: () => activity.state, inputBox: readInputBox, lagMs: EVIDENCE_MS })
  }

  if (kept.transcript !== undefined) await openTranscript(kept.transcript)
  openStatus(kept.statusFile ?? join(kept.configFolder, 'sessions', `${pane.pid}.json`))
  await port.keep(kept)

  return {
    get state() {
      return activity.state
    },
    heardLate: true,
    deliver: give,
    locate,
    async notice(text) {
      if (activity.state === 'busy' || activity.state === 'waiting_input') notices.add(text)
    },
    interrupt: interrupt.end,
    hook,
    toolsGiven: activity.toolsGiven,
    exited() {
      activity.exited()
      dialogs.settleAll()
      turnEnd?.close()
      // Its last words may have been written just now.
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
      await keeping.close()
      closed = true
    },
  }
}
