import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { SessionState } from '../../model/agent.ts'
import type { SessionPort, Turn } from '../../runtimes/runtime.ts'
import type { FollowOrder, Pane, ProgramSession } from '../program.ts'
import { type EvidenceWatch, watchEvidence } from './evidence.ts'
import { openLogReader } from './log-reader.ts'
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
  const { folder } = order
  const patterns = compilePatterns(settings.patterns)
  const place = readPlace(folder)
  const path = await pane.log()
  const tail: string[] = []
  const waiting = new Set<() => void>()
  let state: SessionState = 'initializing'
  let isBracketed = place.isBracketed
  let watch: EvidenceWatch | undefined
  /** Taken, and not answered yet: the prompt's return is the end of the answer. */
  let unanswered: readonly string[] = []
  let answeredAlready: EvidenceWatch | undefined
  let isGivingPrompt = false
  let isPrompting = existsSync(join(folder, PROMPT_FILE))

  const shown = createPlainText((line) => {
    tail.push(line.slice(-TAIL_LINE_LIMIT))
    if (tail.length > TAIL_LINES) tail.shift()
    watch?.line(line)
  })
  const speech = createSpeech({
    ...{ folder, path, run, patterns, port, offset: place.saying ?? place.offset },
    isBracketed: () => isBracketed,
    onFailure: (error) => become('error', `what it said could not be carried out: ${String(error)}`),
  })

  function become(next: SessionState, evidence: string) {
    // Both stay until it is started again.
    if (next === state || state === 'exited' || state === 'error') return
    state = next
    port.changed(next, evidence)
    for (const wake of [...waiting]) wake()
  }

  function look() {
    isBracketed = shown.isBracketed() ?? isBracketed
    watch?.line(shown.line())
    const seen = patterns.state([...tail, shown.line()])
    if (seen === 'busy' || seen === 'idle') watch?.state(seen)
    if (seen === 'idle' || state === 'exited') speech.cut()
    if (seen === 'idle') answered()
    if (isPrompting) {
      if (seen === 'idle') void givePrompt()
    } else if (seen !== undefined) become(seen, `the pane shows its ${seen} pattern`)
    else if (state !== 'initializing' && !isDraft()) become('busy', 'the pane shows no prompt')
  }

  function answered() {
    if (watch?.isGiven) answeredAlready = watch
    if (unanswered.length > 0) port.arrived(unanswered, 'read', 'its prompt came back')
    unanswered = []
  }

  /** Something was typed behind the prompt: it still waits for its turn. */
  function isDraft(): boolean {
    return state === 'idle' && patterns.hasPrompt(shown.line())
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
    if (state !== 'exited') reader.look()
  }

  /** For a paste: a prompt with text behind it, ours or a person's, shows no pattern, and the input box decides. */
  function stateForPaste(): SessionState {
    if (state === 'exited' || state === 'error') return state
    return patterns.state([...tail, shown.line()]) ?? 'idle'
  }

  function give(turn: Turn) {
    const watching = watchEvidence(turn, patterns)
    watch = watching
    return pane
      .paste(turn, {
        state: stateForPaste,
        inputBox: patterns.inputBox,
        isBracketed: () => isBracketed || !settings.bracketed_paste,
        enterAfterMs: settings.enter_after_ms,
        evidence: watching.evidence,
        evidenceMs: settings.evidence_ms,
        patienceMs: settings.patience_ms,
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

  const from = place.saying ?? place.offset
  const reader = openLogReader({
    path,
    from,
    onBytes(bytes) {
      shown.push(bytes)
      speech.push(bytes)
    },
    onEnd: look,
  })
  if (from > 0) shown.push(reader.read(Math.max(0, from - TAIL_BYTES), from))
  if (place.saying !== undefined) {
    speech.repeat(place.offset, place.saying, reader.read(place.offset, place.saying))
  }

  return {
    get state() {
      return state
    },
    deliver: give,
    async locate(id) {
      const pattern = patterns.submitted(id)
      if (pattern === undefined) return { at: 'unknown', evidence: 'no `submitted` pattern is set' }
      let isShown = false
      const all = createPlainText((line) => {
        isShown ||= pattern.test(line)
      })
      all.push(readFileSync(path))
      if (isShown || pattern.test(all.line()))
        return { at: 'submitted', evidence: 'the pane has shown that it took it' }
      if (state !== 'idle' || patterns.inputBox(await pane.screen()) !== 'empty') {
        return { at: 'unknown', evidence: 'the pane has not shown it yet' }
      }
      return { at: 'absent', evidence: 'its prompt is empty and the pane never showed that it took it' }
    },
    // There is no way to tell it something in passing: it hears of it with its next turn.
    async notice() {},
    async interrupt() {
      if (settings.interrupt === undefined) return { stopped: false, evidence: 'no `interrupt` keys are set' }
      await pane.press(settings.interrupt)
      const isStopped = await becomesIdle()
      return {
        stopped: isStopped,
        evidence: isStopped ? 'its prompt is back' : 'its prompt did not come back',
      }
    },
    exited(evidence) {
      // Its last words may still be on their way into the log.
      reader.look()
      watch?.give({ state: 'uncertain', evidence: `it ended: ${evidence}` })
      state = 'exited'
    },
    async close() {
      // What is being said may be the very order that ends us, so nothing is waited for; it is safe to say it again.
      reader.close()
    },
  }

  function becomesIdle(): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isIdle: boolean) => {
        clearTimeout(timer)
        waiting.delete(wake)
        resolve(isIdle)
      }
      const wake = () => {
        if (state === 'idle') done(true)
      }
      const timer = setTimeout(() => done(state === 'idle'), INTERRUPT_MS)
      waiting.add(wake)
      wake()
    })
  }
}
