import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { SessionState } from '../../model/agent.ts'
import { reasonOf } from '../../model/errors.ts'
import type { SessionPort, Turn, Whereabouts } from '../../runtimes/runtime.ts'
import type { FollowOrder, Pane, ProgramSession } from '../program.ts'
import { lookInPane, whereaboutsOf } from '../whereabouts.ts'
import { type EvidenceWatch, watchEvidence } from './evidence.ts'
import { openLogReader } from './log-reader.ts'
import { findInLog } from './log-search.ts'
import { compilePatterns } from './patterns.ts'
import { readPlace } from './place.ts'
import { createPlainText } from './plain-text.ts'
import type { AnySettings } from './settings.ts'
import { createSpeech } from './speech.ts'

/** Written at the launch, pasted as the first turn, then gone. */
export const PROMPT_FILE = 'first-prompt.txt'

/** Patterns look at so many lines. */
const TAIL_LINES = 20
const TAIL_LINE_LIMIT = 400
/** What is read again to know what the program shows, when it is found again. */
const TAIL_BYTES = 1 << 14
const INTERRUPT_MS = 5000

export async function followAny(
  order: FollowOrder,
  run: string,
  settings: AnySettings,
  pane: Pane,
  port: SessionPort,
): Promise<ProgramSession> {
  const { folder, found: isFound } = order
  const { bracketed_paste, enter_after_ms, evidence_ms, patience_ms, interrupt } = settings
  const patterns = compilePatterns(settings.patterns)
  const place = readPlace(folder)
  const from = place.saying.at(-1) ?? place.offset
  const path = await pane.log()
  const tail: string[] = []
  let waiting: (() => void)[] = []
  let isBracketed = place.isBracketed
  let watch: EvidenceWatch | undefined
  /** Taken, and not answered yet: the prompt's return is the end of the answer. */
  let unanswered: readonly string[] = []
  let answeredAlready: EvidenceWatch | undefined
  /** What its last lines show; undefined when more was printed since. */
  let lastRead: { state: ReturnType<typeof patterns.state> } | undefined
  let isGivingPrompt = false
  let isPrompting = existsSync(join(folder, PROMPT_FILE))

  const shown = createPlainText((line) => {
    tail.push(line.slice(-TAIL_LINE_LIMIT))
    if (tail.length > TAIL_LINES) tail.shift()
    watch?.line(line)
  })
  const speech = createSpeech({
    ...{ folder, path, run, patterns, port, offset: place.offset, begun: from },
    released: place.released,
    isBracketed: () => isBracketed,
    onFailure: (error) => become('error', `what it said could not be carried out: ${String(error)}`),
  })

  function become(next: SessionState, evidence: string) {
    if (next === session.state || isOver()) return
    session.state = next
    port.changed(next, evidence)
    for (const wake of waiting) wake()
  }

  /** Both stay until it is started again. */
  function isOver(): boolean {
    return session.state === 'exited' || session.state === 'error'
  }

  function look() {
    isBracketed = shown.isBracketed() ?? isBracketed
    watch?.line(shown.line())
    const seen = stateShown()
    if (seen === 'busy' || seen === 'idle') watch?.state(seen)
    if (seen === 'idle' || session.state === 'exited') speech.cut()
    if (seen === 'idle') answered()
    if (isPrompting) {
      if (seen === 'idle' || isFoundWithDraft()) void givePrompt()
    } else if (seen !== undefined) become(seen, `the pane shows its ${seen} pattern`)
    else if (isFoundWithDraft()) become('idle', 'something stands behind its prompt')
    else if (session.state !== 'initializing' && !(session.state === 'idle' && isDraft()))
      become('busy', 'the pane shows no prompt')
  }

  function answered() {
    if (watch?.isGiven) answeredAlready = watch
    if (unanswered.length > 0) port.arrived(unanswered, 'read', 'its prompt came back')
    unanswered = []
  }

  /** Something was typed behind the prompt, or pasted by an earlier service: it still waits for its turn. */
  function isDraft(): boolean {
    return patterns.hasPrompt(shown.line()) || isUnsentShown()
  }

  function isUnsentShown(): boolean {
    const unsent = pane.unsent?.()
    return unsent !== undefined && shown.line().trimEnd().endsWith(unsent)
  }

  /** What else a text of ours that waits for its Enter holds is no pattern of the program's. */
  function stateShown() {
    if (isUnsentShown()) return undefined
    // Once for what was printed: it is asked again with every paste, when there is no time to lose.
    lastRead ??= { state: patterns.state([...tail, shown.line()]) }
    return lastRead.state
  }

  /** When it was launched just now, such a line may be any of its first words. */
  function isFoundWithDraft(): boolean {
    return isFound && session.state === 'initializing' && isDraft()
  }

  /** Its role, before anything else: until then it is starting. Twice is better than never. */
  async function givePrompt() {
    if (isGivingPrompt) return
    isGivingPrompt = true
    const file = join(folder, PROMPT_FILE)
    const { state: arrived } = await give({ text: readFileSync(file, 'utf8'), ids: [] })
    isGivingPrompt = false
    if (arrived !== 'queued') {
      rmSync(file, { force: true })
      isPrompting = false
    }
    if (session.state !== 'exited') reader.look()
  }

  /** For a paste: a prompt with text behind it, ours or a person's, shows no pattern, and the input box decides. */
  function stateForPaste(): SessionState {
    return isOver() ? session.state : (stateShown() ?? 'idle')
  }

  function give(turn: Turn, gone?: AbortSignal) {
    const watching = watchEvidence(turn, patterns)
    watch = watching
    return pane
      .paste(turn, {
        state: stateForPaste,
        inputBox: patterns.inputBox,
        isPlain: true,
        isBracketed: () => isBracketed || !bracketed_paste,
        enterAfterMs: enter_after_ms,
        evidence: watching.evidence,
        evidenceMs: evidence_ms,
        patienceMs: patience_ms,
        gone,
      })
      .then((arrival) => {
        if (watch === watching) watch = undefined
        if (arrival.state !== 'submitted') return arrival
        // A quick one is done before we are.
        if (answeredAlready === watching)
          return { ...arrival, state: 'read' as const, evidence: `${arrival.evidence}, and its prompt` }
        unanswered = turn.ids
        return arrival
      })
  }

  const reader = openLogReader({
    path,
    from,
    onBytes(bytes) {
      lastRead = undefined
      shown.push(bytes)
      speech.push(bytes)
    },
    onEnd: look,
  })
  if (from > 0) shown.push(reader.read(Math.max(0, from - TAIL_BYTES), from))
  for (const [index, to] of place.saying.entries()) {
    const begin = place.saying[index - 1] ?? place.offset
    speech.repeat(begin, to, reader.read(begin, to))
  }

  const session = {
    state: 'initializing' as SessionState,
    deliver: give,
    expect(turn: Turn) {
      pane.lookAhead?.({ isPlain: true })
      pane.prepare?.(turn)
    },
    locate,
    // There is no way to tell it something in passing: it hears of it with its next turn.
    async notice() {},
    async interrupt() {
      if (interrupt === undefined) return { stopped: false, evidence: 'no `interrupt` keys are set' }
      await pane.press(interrupt)
      const isStopped = await becomesIdle()
      return {
        stopped: isStopped,
        evidence: isStopped ? 'its prompt is back' : 'its prompt did not come back',
      }
    },
    exited(evidence: string) {
      // Its last words may still be on their way into the log.
      reader.look()
      watch?.give({ state: 'uncertain', evidence: `it ended: ${evidence}` })
      session.state = 'exited'
    },
    async close() {
      // What is being said may be the very order that ends us, so nothing is waited for; it is safe to say it again.
      reader.close()
      speech.close()
    },
  }
  return session

  async function locate(ids: readonly string[]): ReturnType<ProgramSession['locate']> {
    const found = new Map<string, string>()
    const elsewhere = await lookFor(ids, found).catch(
      (error: unknown): Whereabouts => ({
        at: 'unknown',
        evidence: `its log or its pane cannot be read: ${reasonOf(error)}`,
      }),
    )
    return whereaboutsOf(ids, found, elsewhere)
  }

  /** What is known of those that are not found. */
  async function lookFor(ids: readonly string[], found: Map<string, string>): Promise<Whereabouts> {
    // First the pane: what has left its prompt by now is in the log when that is read.
    const seen = await lookInPane(pane, { state: stateForPaste, inputBox: patterns.inputBox })
    const expected = new Map(ids.map((id) => [id, patterns.submitted(id)]))
    const isByPattern = [...expected.values()].every((pattern) => pattern !== undefined)
    if (isByPattern && ids.length > 0) {
      const shown = await findInLog(path, speech.released(), expected as Map<string, RegExp>)
      for (const id of shown) found.set(id, 'the pane has shown that it took it')
    }
    if (!isByPattern && seen.at === 'absent')
      return { at: 'unknown', evidence: 'no `submitted` pattern is set' }
    if (seen.at !== 'absent') return seen
    if (session.state !== 'idle') return { at: 'unknown', evidence: 'the pane has not shown it yet' }
    if (speech.released() > 0)
      return { at: 'unknown', evidence: 'what the pane has shown is only kept in part, and not in that' }
    return { at: 'absent', evidence: 'its prompt is empty and the pane never showed that it took it' }
  }

  function becomesIdle(): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isIdle: boolean) => {
        clearTimeout(timer)
        waiting = waiting.filter((one) => one !== wake)
        resolve(isIdle)
      }
      const wake = () => {
        if (session.state === 'idle') done(true)
      }
      const timer = setTimeout(() => done(session.state === 'idle'), INTERRUPT_MS)
      waiting.push(wake)
      wake()
    })
  }
}
