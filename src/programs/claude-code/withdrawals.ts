import { setTimeout as sleep } from 'node:timers/promises'
import type { Turn } from '../../runtimes/runtime.ts'
import { holdsTurn, messageIdsIn } from '../message-ids.ts'
import type { Pane } from '../program.ts'
import { inputBoxText } from './input-box.ts'
import type { Prompt, Transcript } from './transcript.ts'

/**
 * Escape before the model's first word takes a prompt back: Claude Code puts it into the input box and forgets that
 * it was ever sent, though a hook and the transcript have shown it. So that nothing is lost, it is given again.
 */
export interface Withdrawals {
  readonly turns: readonly Withdrawn[]
  readonly ids: ReadonlySet<string>
  /** Our prompt of this turn, until the transcript shows it. */
  readonly unrecorded: string | undefined
  /** Its hook shows a prompt; its transcript does so later. */
  submitted(prompt: string): void
  /** Its transcript shows a prompt. */
  recorded(prompt: string): void
  /** It is known how the turn ended: its prompt was not taken back. */
  turnEnded(): void
  /**
   * The turn ended, as far as is known without an answer to its prompt: notes it if it stands in the input box again.
   * Looks until that is known either way, for as long as the program `isStill` where it was.
   */
  look(transcript: Transcript, pane: Pane, isStill: () => boolean): Promise<void>
  /** A prompt that is no part of the conversation any more. */
  add(prompt: Submitted): void
  /**
   * Whether this record is of what was taken back, and so no part of the conversation: one that is read again after a restart
   * of the service, or one that comes late, which is then known as its record.
   */
  claims(prompt: Prompt): boolean
  /** The program shows a prompt: what was taken back may have been sent again by a person. */
  prompted(prompt: string): void
  /** What is to be given: the turn, with what was taken back after it. */
  joinedWith(turn: Turn | undefined): Turn | undefined
  /** Has it given again when nothing else is for a while, and nothing forbids it. */
  schedule(again: Again): void
  close(): void
}

export interface Withdrawn extends Turn {
  /** Of the transcript, by which it was put before the model. */
  readonly record?: string | undefined
}

type Submitted = Pick<Prompt, 'text'> & { readonly uuid?: string }

export interface Again {
  isIdle(): boolean
  isHeld(): boolean
  give(): Promise<unknown>
}

/** A short pane shows the end of it only. */
const OUR_TEXT = /\[(?:END )?ORCH(?:UB MESSAGE |ESTRATOR RESPONSE\])/
/** Long texts stand in the box like this. */
const FOLDED = /\[Pasted text #\d+/
const GIVE_AGAIN_MS = 2000
const SAID_WITHIN_MS = 250
/** The screen is drawn and the transcript written a little after the program says that it is idle, later under load. */
const KNOWN_WITHIN_MS = 4000
const LOOK_EVERY_MS = 50

export function createWithdrawals(
  kept: readonly Withdrawn[],
  changed: () => void,
  keptUnrecorded?: string,
): Withdrawals {
  let turns: Withdrawn[] = [...kept]
  let timer: NodeJS.Timeout | undefined
  let unrecorded = keptUnrecorded

  function expectRecordOf(prompt: string | undefined) {
    if (prompt === unrecorded) return
    unrecorded = prompt
    changed()
  }

  /** Of which it is not known what became of it. */
  function openPrompt(transcript: Transcript): Submitted | undefined {
    if (unrecorded !== undefined) return { text: unrecorded }
    const prompt = transcript.openPrompt
    return prompt?.canBeTakenBack && OUR_TEXT.test(prompt.text) ? prompt : undefined
  }

  function add({ text, uuid }: Submitted) {
    // What a person typed and took back is theirs.
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
    get unrecorded() {
      return unrecorded
    },
    submitted: (prompt) => expectRecordOf(OUR_TEXT.test(prompt) ? prompt : undefined),
    recorded(prompt) {
      if (unrecorded === undefined) return
      if (holdsTurn(prompt, { text: unrecorded, ids: messageIdsIn(unrecorded) })) expectRecordOf(undefined)
    },
    turnEnded: () => expectRecordOf(undefined),
    async look(transcript, pane, isStill) {
      const deadline = performance.now() + KNOWN_WITHIN_MS
      for (let isLate = false; !isLate; await sleep(LOOK_EVERY_MS)) {
        isLate = performance.now() >= deadline
        const open = openPrompt(transcript)
        if (open === undefined || !isStill()) return
        // A fold may be a person's: it counts once the transcript shows the prompt, or would have.
        if (!(await isPutBack(pane, open.uuid !== undefined || isLate))) continue
        // A prompt that was only interrupted is soon said to be, in the transcript.
        await sleep(SAID_WITHIN_MS)
        await transcript.settled()
        if (!isStill()) return
        if (openPrompt(transcript)?.uuid !== open.uuid) {
          isLate = false
          continue
        }
        transcript.takeBack(open)
        add(open)
        return expectRecordOf(undefined)
      }
      if (isStill()) expectRecordOf(undefined)
    },
    add,
    claims({ uuid, text, canBeTakenBack }) {
      if (turns.some(({ record }) => record === uuid)) return true
      // Its record comes later than we waited for it; what is sent again is shown by the hook first.
      const late = turns.find((turn) => turn.record === undefined && holdsTurn(text, turn))
      if (late === undefined || !canBeTakenBack) return false
      turns = turns.map((turn) => (turn === late ? { ...turn, record: uuid } : turn))
      changed()
      return true
    },
    prompted(prompt) {
      const left = turns.filter((turn) => !holdsTurn(prompt, turn))
      if (left.length === turns.length) return
      turns = left
      changed()
    },
    joinedWith(turn) {
      const given = new Set(turn?.ids)
      const others = turns.filter(({ ids }) => ids.length === 0 || !ids.every((id) => given.has(id)))
      const all = [...(turn === undefined ? [] : [turn]), ...others]
      if (all.length === 0) return undefined
      return { text: all.map(({ text }) => text).join('\n\n'), ids: all.flatMap(({ ids }) => ids) }
    },
    schedule(again) {
      clearTimeout(timer)
      if (turns.length === 0) return
      timer = setTimeout(() => {
        if (!again.isIdle() || turns.length === 0) return
        const tryAgain = () => this.schedule(again)
        if (again.isHeld()) tryAgain()
        else void again.give().then(tryAgain, tryAgain)
      }, GIVE_AGAIN_MS)
    },
    close: () => clearTimeout(timer),
  }
}

async function isPutBack(pane: Pane, isFoldOurs: boolean): Promise<boolean> {
  const screen = await pane.screen().catch(() => undefined)
  const box = screen && inputBoxText(screen)
  return box !== undefined && (OUR_TEXT.test(box) || (isFoldOurs && FOLDED.test(box)))
}
