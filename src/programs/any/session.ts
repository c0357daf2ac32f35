import { createReadStream, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { SessionState } from '../../base/agent.ts'
import { reasonOf } from '../../base/errors.ts'
import { withoutMentions } from '../../protocol/mentions.ts'
import type { DeliveryResult, MessageLocation, SessionPort, Turn } from '../../runtimes/runtime.ts'
import { locationsOf, lookInPane } from '../message-evidence.ts'
import type { Pane, ProgramFollowOptions, ProgramSession } from '../program.ts'
import { createSessionState } from '../session-state.ts'
import { openPaneLog, readLogPosition } from './pane-log.ts'
import { createPaneOutput } from './pane-output.ts'
import {
  AnySettings,
  compilePatterns,
  createFrameFilter,
  type EvidenceWatch,
  FRAME_END,
  type Patterns,
  watchEvidence,
} from './patterns.ts'
import { createPlainText } from './plain-text.ts'

/** Identifies one launch. Every launch is a new conversation. */
const AnySavedState = z.object({ run: z.string() })
export type AnySavedState = z.output<typeof AnySavedState>

/** Written at the launch, pasted as the first turn, then deleted. */
export const PROMPT_FILE = 'first-prompt.txt'

/** Number of lines that patterns look at. */
const TAIL_LINES = 20
const TAIL_LINE_LIMIT = 400
/** Read again to know the program's state when it is found running. */
const TAIL_BYTES = 1 << 14
const INTERRUPT_MS = 5000

/**
 * Follows a program whose state is read off its last lines by the configured patterns. `initializing` (until a pattern
 * matches; while `isPrompting`, until its role was pasted as the first turn) → `idle` (the idle pattern) ↔ `busy` (the busy
 * pattern, or output without a prompt) ↔ `waiting_input` (the dialog pattern). `error` (its output could not be
 * processed) and `exited` stay until it is started again. An interrupt waits INTERRUPT_MS for `idle`: programs without a
 * protocol confirm it only by showing their prompt.
 */
export async function followAny(
  options: ProgramFollowOptions,
  pane: Pane,
  port: SessionPort,
): Promise<ProgramSession> {
  const { folder, isReattached } = options
  const { run } = AnySavedState.parse(options.savedState)
  const settings = AnySettings.parse(options.settings)
  const patterns = compilePatterns(settings.patterns)
  const position = readLogPosition(folder)
  const from = position.openTexts.at(-1) ?? position.offset
  const path = await pane.log()
  const promptFile = join(folder, PROMPT_FILE)
  const state = createSessionState('initializing', port.onStateChange)
  /** The last complete lines. */
  const tail: string[] = []
  let { isBracketed } = position
  /** The delivery in progress. */
  let watch: EvidenceWatch | undefined
  /** Messages that were accepted and not answered yet: the prompt's return ends the answer. */
  let unanswered: readonly string[] = []
  /** The delivery whose answer ended before its paste returned. */
  let answeredAlready: EvidenceWatch | undefined
  /** State shown by its last lines; undefined after more output. */
  let lastRead: { state: ReturnType<Patterns['state']> } | undefined
  /** True until the role was delivered. */
  let isPrompting = existsSync(promptFile)
  let isGivingPrompt = false

  const shown = createPlainText((line) => {
    tail.push(line.slice(-TAIL_LINE_LIMIT))
    if (tail.length > TAIL_LINES) tail.shift()
    watch?.line(line)
  })
  const output = createPaneOutput({
    ...{ folder, path, run, patterns, port, offset: position.offset, begun: from },
    released: position.released,
    isBracketed: () => isBracketed,
    onFailure: (error) => become('error', `its output could not be processed: ${reasonOf(error)}`),
  })
  const reader = openPaneLog({
    path,
    from,
    onBytes(bytes) {
      lastRead = undefined
      shown.push(bytes)
      output.push(bytes)
    },
    onEnd: look,
  })

  function become(next: SessionState, evidence: string) {
    if (state.now !== 'error') state.become(next, evidence)
  }

  function look() {
    isBracketed = shown.isBracketed() ?? isBracketed
    watch?.line(shown.line())
    const seen = stateShown()
    if (seen === 'busy' || seen === 'idle') watch?.state(seen)
    if (seen === 'idle' || state.now === 'exited') output.cut()
    if (seen === 'idle') answered()
    if (isPrompting) {
      if (seen === 'idle' || isFoundWithDraft()) void givePrompt()
    } else if (seen !== undefined) become(seen, `the pane shows its ${seen} pattern`)
    else if (isFoundWithDraft()) become('idle', 'its input line is not empty')
    else if (state.now !== 'initializing' && !(state.now === 'idle' && isDraft()))
      become('busy', 'the pane shows no prompt')
  }

  function answered() {
    if (watch?.isGiven) answeredAlready = watch
    if (unanswered.length > 0) port.onEvidence(unanswered, 'read', 'its prompt came back')
    unanswered = []
  }

  /** Text behind the prompt, typed or pasted by an earlier service, still waits for its turn. */
  const isDraft = () => patterns.hasPrompt(shown.line()) || isPendingTextShown()

  function isPendingTextShown(): boolean {
    const pending = pane.pendingText?.()
    return pending !== undefined && shown.line().trimEnd().endsWith(pending)
  }

  /** Our own pending text is not the program's output, so it shows no state. */
  function stateShown() {
    if (isPendingTextShown()) return undefined
    // Computed once per output, because every paste needs it.
    lastRead ??= { state: patterns.state([...tail, shown.line()]) }
    return lastRead.state
  }

  /** Only after a restart of the service: right after the launch, such a line may be part of its first output. */
  const isFoundWithDraft = () => isReattached && state.now === 'initializing' && isDraft()

  /** Delivers its role before anything else; it counts as starting until then. If in doubt, delivers it twice. */
  async function givePrompt() {
    if (isGivingPrompt) return
    isGivingPrompt = true
    const { state: arrived } = await give({ text: readFileSync(promptFile, 'utf8'), ids: [] })
    isGivingPrompt = false
    if (arrived !== 'queued') {
      rmSync(promptFile, { force: true })
      isPrompting = false
    }
    if (state.now !== 'exited') reader.look()
  }

  /**
   * For a paste: a prompt with text behind it, ours or a person's, matches no pattern, and the input box
   * decides.
   */
  function stateForPaste(): SessionState {
    const isOver = state.now === 'exited' || state.now === 'error'
    return isOver ? state.now : (stateShown() ?? 'idle')
  }

  async function give({ text, ids }: Turn, signal?: AbortSignal): Promise<DeliveryResult> {
    const turn = { text: withoutMentions(text, settings.mentions), ids }
    const watching = watchEvidence(turn, patterns)
    watch = watching
    const result = await pane.paste(turn, {
      state: stateForPaste,
      inputBox: patterns.inputBox,
      isPlain: true,
      isBracketed: () => isBracketed || !settings.bracketed_paste,
      enterAfterMs: settings.enter_after_ms,
      evidence: watching.evidence,
      evidenceMs: settings.evidence_ms,
      patienceMs: settings.patience_ms,
      signal,
    })
    if (watch === watching) watch = undefined
    if (result.state !== 'submitted') return result
    // A quick program has answered before the paste returned.
    if (answeredAlready === watching)
      return { ...result, state: 'read', evidence: `${result.evidence}, and its prompt` }
    unanswered = ids
    return result
  }

  /** Adds messages that it finds to `found`; returns the location of the others. */
  async function lookFor(ids: readonly string[], found: Map<string, string>): Promise<MessageLocation> {
    // The pane first: text that has left its prompt by now is in the log when that is read.
    const seen = await lookInPane(pane, { state: stateForPaste, inputBox: patterns.inputBox })
    const expected = new Map(ids.map((id) => [id, patterns.submitted(id)]))
    const isByPattern = [...expected.values()].every((pattern) => pattern !== undefined)
    if (isByPattern && ids.length > 0) {
      const accepted = await findInLog(path, output.released(), expected as Map<string, RegExp>)
      for (const id of accepted) found.set(id, 'the pane showed that it accepted the message')
    }
    if (!isByPattern && seen.at === 'absent')
      return { at: 'unknown', evidence: 'no `submitted` pattern is set' }
    if (seen.at !== 'absent') return seen
    if (state.now !== 'idle') return { at: 'unknown', evidence: 'the pane has not shown the message yet' }
    if (output.released() > 0)
      return { at: 'unknown', evidence: "the message is not in the part of the pane's log that is kept" }
    return {
      at: 'absent',
      evidence: 'its prompt is empty, and the pane never showed that it accepted the message',
    }
  }

  if (from > 0) shown.push(reader.read(Math.max(0, from - TAIL_BYTES), from))
  for (const [index, to] of position.openTexts.entries()) {
    const begin = position.openTexts[index - 1] ?? position.offset
    output.repeat(begin, to, reader.read(begin, to))
  }

  return {
    get state() {
      return state.now
    },
    deliver: give,
    async locate(ids) {
      const found = new Map<string, string>()
      const elsewhere = await lookFor(ids, found).catch(
        (error: unknown): MessageLocation => ({
          at: 'unknown',
          evidence: `cannot read its log or its pane: ${reasonOf(error)}`,
        }),
      )
      return locationsOf(ids, found, elsewhere)
    },
    // There is no channel for notices: the agent sees them with its next turn.
    async notice() {},
    async interrupt() {
      if (settings.interrupt === undefined) return { stopped: false, evidence: 'no `interrupt` keys are set' }
      await pane.press(settings.interrupt)
      const stopped = await state.idleWithin(INTERRUPT_MS)
      return { stopped, evidence: stopped ? 'its prompt is back' : 'its prompt did not come back' }
    },
    onExit(evidence) {
      // The last output may still be on its way into the log.
      reader.look()
      watch?.give({ state: 'uncertain', evidence: `it ended: ${evidence}` })
      state.become('exited', evidence)
    },
    async close() {
      // The text being processed may be the very command that ends us, so don't wait; repeating it is safe.
      reader.close()
      output.close()
    },
  }
}

/**
 * The messages for which a line of the program itself, not an echo of ours, matches the pattern. Rejects if
 * the log cannot be read.
 */
async function findInLog(
  path: string,
  from: number,
  patterns: ReadonlyMap<string, RegExp>,
): Promise<ReadonlySet<string>> {
  const isProgramsOwn = createFrameFilter()
  const shown = new Set<string>()
  let isInFrame = false

  function take(line: string) {
    // The remaining log began within a message.
    if (from > 0 && !isInFrame && FRAME_END.test(line)) shown.clear()
    isInFrame = !isProgramsOwn(line)
    if (isInFrame) return
    for (const [id, pattern] of patterns) if (pattern.test(line)) shown.add(id)
  }

  const text = createPlainText(take)
  for await (const bytes of createReadStream(path, { start: from })) text.push(bytes as Buffer)
  take(text.line())
  return shown
}
