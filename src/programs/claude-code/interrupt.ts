import { setTimeout as sleep } from 'node:timers/promises'
import type { Turn } from '../../runtimes/runtime.ts'
import { holdsTurn, messageIdsIn } from '../message-evidence.ts'
import type { Pane } from '../program.ts'
import type { ClaudeActivity } from './activity.ts'
import { inputBoxText, readInputBox } from './input-box.ts'
import type { ClaudeTranscript, Prompt } from './transcript.ts'

interface InterruptOptions {
  readonly pane: Pane
  readonly activity: ClaudeActivity
  readonly withdrawals: Withdrawals
  /** Whether the withdrawn prompt is saved. */
  keep(): Promise<boolean>
}

const MAX_ESCAPES = 3
const STOPPED_WITHIN_MS = 2000
const LOOK_EVERY_MS = 25
const CLEAR_ROUNDS = 10

export function createInterrupt({ pane, activity, withdrawals, keep }: InterruptOptions) {
  /** The box with our own text as the Escape left it. If it differs, a person has edited it. */
  let left: string | undefined
  let isClosed = false

  return {
    /** Ends the turn with Escape, and reports that only with the program's evidence. */
    async end(): Promise<{ stopped: boolean; evidence: string }> {
      left = undefined
      while (activity.isReturning) await sleep(LOOK_EVERY_MS)
      if (activity.state === 'idle') return { stopped: true, evidence: 'its turn had ended' }
      const held = withdrawals.turns.length
      for (let press = 0; press < MAX_ESCAPES && isWorking(activity) && !isClosed; press++) {
        await pane.press(['Escape'])
        const deadline = performance.now() + STOPPED_WITHIN_MS
        // Once it is at its prompt, another Escape would affect the input box.
        const isAwaited = () => activity.isReturning || performance.now() < deadline
        while (!activity.isAtPrompt && isAwaited()) await sleep(LOOK_EVERY_MS)
      }
      if (!activity.isAtPrompt)
        return { stopped: false, evidence: `it is still ${activity.state} after Escape` }
      // Put back by the Escape into an empty box: a prompt is not put back over a draft.
      if (withdrawals.turns.length > held) {
        if (await keep()) await clearBox(pane)
        else left = inputBoxText(await pane.screen())
      }
      return { stopped: true, evidence: 'it is back at its prompt after Escape' }
    },
    close() {
      isClosed = true
    },
    /**
     * Clears the prompt that an interrupt put back into the input box, once it is saved: until then the box is
     * the only copy.
     */
    async emptyBox(): Promise<void> {
      const ours = left
      if (ours === undefined || !(await keep())) return
      left = undefined
      if (inputBoxText(await pane.screen()) === ours) await clearBox(pane, ours)
    },
  }
}

/** An Escape too many would clear a person's draft, or open a menu. */
function isWorking({ state }: ClaudeActivity): boolean {
  return state === 'busy' || state === 'waiting_input'
}

/**
 * Control-U clears a line and does nothing in an empty box. Control-C would be half of an exit. `ours`: clear
 * only this text, or the rest of it.
 */
async function clearBox(pane: Pane, ours?: string) {
  for (let round = 0; round < CLEAR_ROUNDS; round++) {
    const screen = await pane.screen()
    if (readInputBox(screen) !== 'draft') return
    const text = inputBoxText(screen) ?? ''
    if (ours !== undefined && !ours.startsWith(text)) return
    const lines = text.split('\n').length
    await pane.press(Array.from({ length: lines * 2 }, () => 'C-u'))
    await sleep(LOOK_EVERY_MS * 4)
  }
}

interface Withdrawn extends Turn {
  /** Id of the transcript record that showed it to the model. */
  readonly record?: string | undefined
}

type Submitted = Pick<Prompt, 'text'> & { readonly uuid?: string }

interface Redelivery {
  isIdle(): boolean
  isHeld(): boolean
  give(): Promise<unknown>
}

/** Markers of our text; either suffices, since a short pane shows only the end of it. */
const OUR_TEXT = /\[(?:END )?ORCH(?:UB MESSAGE |ESTRATOR RESPONSE\])/
/** How the box shows long texts. */
const FOLDED = /\[Pasted text #\d+/
const REDELIVER_AFTER_MS = 2000
const RECORD_LAG_MS = 250
/** The screen and the transcript are written shortly after the program reports idle, later under load. */
const WITHDRAWAL_TIMEOUT_MS = 4000
const CHECK_EVERY_MS = 50

export type Withdrawals = ReturnType<typeof createWithdrawals>

/**
 * Escape before the model's first word withdraws a prompt: Claude Code puts it back into the input box and
 * treats it as never sent, though a hook and the transcript have shown it. It is delivered again, so that
 * nothing is lost.
 */
export function createWithdrawals(
  savedState: readonly Withdrawn[],
  changed: () => void,
  savedUnrecorded?: string,
) {
  let turns: Withdrawn[] = [...savedState]
  let timer: NodeJS.Timeout | undefined
  let unrecorded = savedUnrecorded

  function expectRecordOf(prompt: string | undefined) {
    if (prompt === unrecorded) return
    unrecorded = prompt
    changed()
  }

  /** Turns whose fate is unknown. */
  function openPrompt(transcript: ClaudeTranscript): Submitted | undefined {
    if (unrecorded !== undefined) return { text: unrecorded }
    const prompt = transcript.openPrompt
    return prompt?.canBeWithdrawn && OUR_TEXT.test(prompt.text) ? prompt : undefined
  }

  function add({ text, uuid }: Submitted) {
    // A prompt that a person typed and withdrew is theirs.
    if (!OUR_TEXT.test(text) || turns.some((turn) => holdsTurn(text, turn))) return
    turns = [...turns, { text, ids: messageIdsIn(text), record: uuid }]
    changed()
  }

  return {
    get turns() {
      return turns
    },
    get ids() {
      return new Set(turns.flatMap((turn) => turn.ids))
    },
    /** Our prompt of this turn, until the transcript shows it. */
    get unrecorded() {
      return unrecorded
    },
    /** A hook shows a prompt; the transcript follows later. */
    submitted: (prompt: string) => expectRecordOf(OUR_TEXT.test(prompt) ? prompt : undefined),
    /** The transcript shows a prompt. */
    recorded(prompt: string) {
      if (unrecorded === undefined) return
      if (holdsTurn(prompt, { text: unrecorded, ids: messageIdsIn(unrecorded) })) expectRecordOf(undefined)
    },
    /** The end of the turn is known: its prompt was not withdrawn. */
    turnEnded: () => expectRecordOf(undefined),
    /**
     * The turn ended, as far as known without an answer to its prompt: records it as withdrawn if it is in the
     * input box again. Checks until that is certain, as long as `isStill` holds.
     */
    async look(transcript: ClaudeTranscript, pane: Pane, isStill: () => boolean): Promise<void> {
      const deadline = performance.now() + WITHDRAWAL_TIMEOUT_MS
      for (let isLate = false; !isLate; await sleep(CHECK_EVERY_MS)) {
        isLate = performance.now() >= deadline
        const open = openPrompt(transcript)
        if (open === undefined || !isStill()) return
        // A folded paste may be a person's: it counts as ours once the transcript shows our prompt, or the wait is over.
        if (!(await isPutBack(pane, open.uuid !== undefined || isLate))) continue
        // The transcript soon reports a prompt that was only interrupted.
        await sleep(RECORD_LAG_MS)
        await transcript.settled()
        if (!isStill()) return
        if (openPrompt(transcript)?.uuid !== open.uuid) {
          isLate = false
          continue
        }
        transcript.withdraw(open)
        add(open)
        return expectRecordOf(undefined)
      }
      if (isStill()) expectRecordOf(undefined)
    },
    /** A prompt that is no longer part of the conversation. */
    add,
    /**
     * Whether this record belongs to a withdrawn turn, and so not to the conversation: one read again after a
     * restart of the service, or a late one, which then identifies it.
     */
    claims({ uuid, text, canBeWithdrawn }: Prompt): boolean {
      if (turns.some(({ record }) => record === uuid)) return true
      // The record comes later than we waited; a prompt sent again is shown by the hook first.
      const late = turns.find((turn) => turn.record === undefined && holdsTurn(text, turn))
      if (late === undefined || !canBeWithdrawn) return false
      turns = turns.map((turn) => (turn === late ? { ...turn, record: uuid } : turn))
      changed()
      return true
    },
    /** The program shows a prompt: a person may have sent the withdrawn one again. */
    prompted(prompt: string) {
      const left = turns.filter((turn) => !holdsTurn(prompt, turn))
      if (left.length === turns.length) return
      turns = left
      changed()
    },
    /** The text to deliver: the turn, followed by the withdrawn ones. */
    joinedWith(turn: Turn | undefined): Turn | undefined {
      const delivered = new Set(turn?.ids)
      const others = turns.filter(({ ids }) => ids.length === 0 || !ids.every((id) => delivered.has(id)))
      const all = [...(turn === undefined ? [] : [turn]), ...others]
      if (all.length === 0) return undefined
      return { text: all.map(({ text }) => text).join('\n\n'), ids: all.flatMap(({ ids }) => ids) }
    },
    /** Delivers it again once nothing else was delivered for a while, and nothing forbids it. */
    schedule(redelivery: Redelivery) {
      clearTimeout(timer)
      if (turns.length === 0) return
      timer = setTimeout(() => {
        if (!redelivery.isIdle() || turns.length === 0) return
        const tryAgain = () => this.schedule(redelivery)
        if (redelivery.isHeld()) tryAgain()
        else void redelivery.give().then(tryAgain, tryAgain)
      }, REDELIVER_AFTER_MS)
    },
    close: () => clearTimeout(timer),
  }
}

async function isPutBack(pane: Pane, isFoldOurs: boolean): Promise<boolean> {
  const screen = await pane.screen().catch(() => undefined)
  const box = screen && inputBoxText(screen)
  return box !== undefined && (OUR_TEXT.test(box) || (isFoldOurs && FOLDED.test(box)))
}
