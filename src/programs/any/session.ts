import { createReadStream, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { SessionState } from '../../base/agent.ts'
import { reasonOf } from '../../base/errors.ts'
import { withoutMentions } from '../../protocol/mentions.ts'
import type { DeliveryResult, MessageLocation, SessionPort, Turn } from '../../runtimes/runtime.ts'
import { locationsOf, lookInPane } from '../message-evidence.ts'
import type { FollowOptions, Pane, ProgramSession } from '../program.ts'
import { createScreenOutput, type ScreenOutput } from './agent-output.ts'
import { type LogReader, openLogReader, readLogPosition } from './log-reader.ts'
import {
  type AnySettings,
  compilePatterns,
  createFrameFilter,
  type EvidenceWatch,
  FRAME_END,
  type Patterns,
  watchEvidence,
} from './patterns.ts'
import { createPlainText, type PlainText } from './plain-text.ts'

/** Written at the launch, pasted as the first turn, then deleted. */
export const PROMPT_FILE = 'first-prompt.txt'

/** Number of lines that patterns look at. */
const TAIL_LINES = 20
const TAIL_LINE_LIMIT = 400
/** Read again to know the program's state when it is found running. */
const TAIL_BYTES = 1 << 14
const INTERRUPT_MS = 5000

/**
 * State of one followed program, read off its last lines by the configured patterns. `initializing` (until a pattern
 * matches; while `isPrompting`, until its role was pasted as the first turn) → `idle` (the idle pattern) ↔ `busy` (the busy
 * pattern, or output without a prompt) ↔ `waiting_input` (the dialog pattern). `error` (its output could not be
 * processed) and `exited` stay until it is started again. An interrupt waits INTERRUPT_MS for `idle`: programs without a
 * protocol confirm it only by showing their prompt.
 */
interface FollowedAgent {
  readonly folder: string
  readonly path: string
  readonly isFound: boolean
  readonly pane: Pane
  readonly port: SessionPort
  readonly needsBracketed: boolean
  readonly enterAfterMs: number
  readonly evidenceMs: number
  readonly patienceMs: number
  readonly patterns: Patterns
  readonly shown: PlainText
  readonly output: ScreenOutput
  readonly reader: LogReader
  readonly session: ProgramSession & { state: SessionState }
  /** The last complete lines. */
  readonly tail: string[]
  /** Called when its state changes. */
  waiting: (() => void)[]
  isBracketed: boolean
  watch: EvidenceWatch | undefined
  /** Accepted, and not answered yet: the prompt's return ends the answer. */
  unanswered: readonly string[]
  answeredAlready: EvidenceWatch | undefined
  /** State shown by its last lines; undefined after more output. */
  lastRead: { state: ReturnType<Patterns['state']> } | undefined
  /** True until the role was delivered. */
  isPrompting: boolean
  isGivingPrompt: boolean
}

export async function followAny(
  options: FollowOptions,
  run: string,
  settings: AnySettings,
  pane: Pane,
  port: SessionPort,
): Promise<ProgramSession> {
  const { folder, isReattached: isFound } = options
  const { bracketed_paste, enter_after_ms, evidence_ms, patience_ms, interrupt } = settings
  const patterns = compilePatterns(settings.patterns)
  const named = (turn: Turn) => ({ ...turn, text: withoutMentions(turn.text, settings.mentions) })
  const position = readLogPosition(folder)
  const from = position.saying.at(-1) ?? position.offset
  const path = await pane.log()
  const shown = createPlainText((line) => {
    agent.tail.push(line.slice(-TAIL_LINE_LIMIT))
    if (agent.tail.length > TAIL_LINES) agent.tail.shift()
    agent.watch?.line(line)
  })
  const output = createScreenOutput({
    ...{ folder, path, run, patterns, port, offset: position.offset, begun: from },
    released: position.released,
    isBracketed: () => agent.isBracketed,
    onFailure: (error) => become(agent, 'error', `its output could not be processed: ${String(error)}`),
  })
  const reader = openLogReader({
    path,
    from,
    onBytes(bytes) {
      agent.lastRead = undefined
      shown.push(bytes)
      output.push(bytes)
    },
    onEnd: () => look(agent),
  })
  const session: FollowedAgent['session'] = {
    state: 'initializing',
    deliver: (turn, signal) => give(agent, named(turn), signal),
    locate: (ids) => locate(agent, ids),
    // There is no channel for notices: the agent sees them with its next turn.
    async notice() {},
    async interrupt() {
      if (interrupt === undefined) return { stopped: false, evidence: 'no `interrupt` keys are set' }
      await pane.press(interrupt)
      const isStopped = await becomesIdle(agent)
      return {
        stopped: isStopped,
        evidence: isStopped ? 'its prompt is back' : 'its prompt did not come back',
      }
    },
    onExit(evidence) {
      // The last output may still be on its way into the log.
      reader.look()
      agent.watch?.give({ state: 'uncertain', evidence: `it ended: ${evidence}` })
      session.state = 'exited'
      output.rest()
    },
    async close() {
      // The text in progress may be the very command that ends us, so don't wait; repeating it is safe.
      reader.close()
      output.close()
    },
  }
  const agent: FollowedAgent = {
    folder,
    path,
    isFound,
    pane,
    port,
    needsBracketed: bracketed_paste,
    enterAfterMs: enter_after_ms,
    evidenceMs: evidence_ms,
    patienceMs: patience_ms,
    patterns,
    shown,
    output,
    reader,
    session,
    tail: [],
    waiting: [],
    isBracketed: position.isBracketed,
    watch: undefined,
    unanswered: [],
    answeredAlready: undefined,
    lastRead: undefined,
    isPrompting: existsSync(join(folder, PROMPT_FILE)),
    isGivingPrompt: false,
  }
  if (from > 0) shown.push(reader.read(Math.max(0, from - TAIL_BYTES), from))
  for (const [index, to] of position.saying.entries()) {
    const begin = position.saying[index - 1] ?? position.offset
    output.repeat(begin, to, reader.read(begin, to))
  }

  return session
}

function become(agent: FollowedAgent, next: SessionState, evidence: string) {
  if (next === agent.session.state || isOver(agent)) return
  agent.session.state = next
  agent.port.onStateChange(next, evidence)
  for (const wake of agent.waiting) wake()
}

/** Both stay until it is started again. */
function isOver({ session }: FollowedAgent): boolean {
  return session.state === 'exited' || session.state === 'error'
}

// ── what it shows ────────────────────────────────────────────────────────────────────────────────

function look(agent: FollowedAgent) {
  const { shown, output } = agent
  agent.isBracketed = shown.isBracketed() ?? agent.isBracketed
  agent.watch?.line(shown.line())
  const seen = stateShown(agent)
  if (seen === 'busy' || seen === 'idle') agent.watch?.state(seen)
  if (seen === 'idle' || agent.session.state === 'exited') output.cut()
  if (seen === 'idle') answered(agent)
  if (agent.isPrompting) {
    if (seen === 'idle' || isFoundWithDraft(agent)) void givePrompt(agent)
  } else if (seen !== undefined) become(agent, seen, `the pane shows its ${seen} pattern`)
  else if (isFoundWithDraft(agent)) become(agent, 'idle', 'its input line is not empty')
  else if (agent.session.state !== 'initializing' && !(agent.session.state === 'idle' && isDraft(agent)))
    become(agent, 'busy', 'the pane shows no prompt')
}

function answered(agent: FollowedAgent) {
  if (agent.watch?.isGiven) agent.answeredAlready = agent.watch
  if (agent.unanswered.length > 0) agent.port.onEvidence(agent.unanswered, 'read', 'its prompt came back')
  agent.unanswered = []
}

/** Text behind the prompt, typed or pasted by an earlier service, still waits for its turn. */
function isDraft(agent: FollowedAgent): boolean {
  return agent.patterns.hasPrompt(agent.shown.line()) || isUnsentShown(agent)
}

function isUnsentShown({ pane, shown }: FollowedAgent): boolean {
  const unsent = pane.pendingText?.()
  return unsent !== undefined && shown.line().trimEnd().endsWith(unsent)
}

/** Other lines of our pending text are not the program's output. */
function stateShown(agent: FollowedAgent) {
  if (isUnsentShown(agent)) return undefined
  // Once per output: every paste asks again, when time matters.
  agent.lastRead ??= { state: agent.patterns.state([...agent.tail, agent.shown.line()]) }
  return agent.lastRead.state
}

/** Right after the launch, such a line may be any of its first output. */
function isFoundWithDraft(agent: FollowedAgent): boolean {
  return agent.isFound && agent.session.state === 'initializing' && isDraft(agent)
}

function becomesIdle(agent: FollowedAgent): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (isIdle: boolean) => {
      clearTimeout(timer)
      agent.waiting = agent.waiting.filter((one) => one !== wake)
      resolve(isIdle)
    }
    const wake = () => {
      if (agent.session.state === 'idle') done(true)
    }
    const timer = setTimeout(() => done(agent.session.state === 'idle'), INTERRUPT_MS)
    agent.waiting.push(wake)
    wake()
  })
}

// ── what it is given ─────────────────────────────────────────────────────────────────────────────

/** Delivers its role before anything else: until then it is starting. Twice is better than never. */
async function givePrompt(agent: FollowedAgent) {
  if (agent.isGivingPrompt) return
  agent.isGivingPrompt = true
  const file = join(agent.folder, PROMPT_FILE)
  const { state: arrived } = await give(agent, { text: readFileSync(file, 'utf8'), ids: [] })
  agent.isGivingPrompt = false
  if (arrived !== 'queued') {
    rmSync(file, { force: true })
    agent.isPrompting = false
  }
  if (agent.session.state !== 'exited') agent.reader.look()
}

/**
 * For a paste: a prompt with text behind it, ours or a person's, matches no pattern, and the input box
 * decides.
 */
function stateForPaste(agent: FollowedAgent): SessionState {
  return isOver(agent) ? agent.session.state : (stateShown(agent) ?? 'idle')
}

async function give(agent: FollowedAgent, turn: Turn, signal?: AbortSignal): Promise<DeliveryResult> {
  const { patterns, pane, enterAfterMs, evidenceMs, patienceMs } = agent
  const watching = watchEvidence(turn, patterns)
  agent.watch = watching
  const result = await pane.paste(turn, {
    state: () => stateForPaste(agent),
    inputBox: patterns.inputBox,
    isPlain: true,
    isBracketed: () => agent.isBracketed || !agent.needsBracketed,
    evidence: watching.evidence,
    ...{ enterAfterMs, evidenceMs, patienceMs, signal },
  })
  if (agent.watch === watching) agent.watch = undefined
  if (result.state !== 'submitted') return result
  // A quick program is done before we are.
  if (agent.answeredAlready === watching)
    return { ...result, state: 'read', evidence: `${result.evidence}, and its prompt` }
  agent.unanswered = turn.ids
  return result
}

// ── where something is ───────────────────────────────────────────────────────────────────────────

async function locate(agent: FollowedAgent, ids: readonly string[]): ReturnType<ProgramSession['locate']> {
  const found = new Map<string, string>()
  const elsewhere = await lookFor(agent, ids, found).catch(
    (error: unknown): MessageLocation => ({
      at: 'unknown',
      evidence: `cannot read its log or its pane: ${reasonOf(error)}`,
    }),
  )
  return locationsOf(ids, found, elsewhere)
}

/** Location of messages that were not found. */
async function lookFor(
  agent: FollowedAgent,
  ids: readonly string[],
  found: Map<string, string>,
): Promise<MessageLocation> {
  const { patterns, pane, path, output } = agent
  // The pane first: text that has left its prompt by now is in the log when that is read.
  const state = () => stateForPaste(agent)
  const seen = await lookInPane(pane, { state, inputBox: patterns.inputBox })
  const expected = new Map(ids.map((id) => [id, patterns.submitted(id)]))
  const isByPattern = [...expected.values()].every((pattern) => pattern !== undefined)
  if (isByPattern && ids.length > 0) {
    const shown = await findInLog(path, output.released(), expected as Map<string, RegExp>)
    for (const id of shown) found.set(id, 'the pane showed that it accepted the message')
  }
  if (!isByPattern && seen.at === 'absent')
    return { at: 'unknown', evidence: 'no `submitted` pattern is set' }
  if (seen.at !== 'absent') return seen
  if (agent.session.state !== 'idle')
    return { at: 'unknown', evidence: 'the pane has not shown the message yet' }
  if (output.released() > 0)
    return { at: 'unknown', evidence: "the message is not in the part of the pane's log that is kept" }
  return {
    at: 'absent',
    evidence: 'its prompt is empty, and the pane never showed that it accepted the message',
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
