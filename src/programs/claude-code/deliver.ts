import { setTimeout as sleep } from 'node:timers/promises'
import { withoutMentions } from '../../protocol/mentions.ts'
import type { DeliveryResult, Turn } from '../../runtimes/runtime.ts'
import { leadingPart, type PromptAwaiter } from '../message-evidence.ts'
import type { Pane } from '../program.ts'
import type { ClaudeActivity } from './activity.ts'
import { readInputBox } from './input-box.ts'
import type { Withdrawals } from './interrupt.ts'

interface ClaudeDeliverOptions {
  readonly activity: ClaudeActivity
  readonly expectations: PromptAwaiter
  readonly withdrawals: Withdrawals
  readonly pane: Pane
  /** The end of a turn that can still be answered. */
  turnEnd(): OpenTurnEnd | undefined
  /** Removes our text that an interrupt put back into the input box. */
  emptyBox(): Promise<void>
}

export const EVIDENCE_MS = 4000
const PATIENCE_MS = 5000
/** Time for the program to return to its prompt after a turn. */
export const PROMPT_WITHIN_MS = 2000

/**
 * Delivers a turn: by a paste at the prompt or, if a person's draft blocks that at the end of a turn, as the
 * response to the Stop hook. In this order, because the model sees such a response as a reminder of the
 * program, and a paste as user text.
 */
export function openDelivery(
  options: ClaudeDeliverOptions,
): (turn: Turn | undefined, signal?: AbortSignal) => Promise<DeliveryResult> {
  const { activity, expectations, withdrawals, pane } = options
  /** Serialized, because a withdrawn turn may be delivered again at any time. */
  let deliveries: Promise<unknown> = Promise.resolve()

  async function give(turn: Turn | undefined, signal: AbortSignal | undefined): Promise<DeliveryResult> {
    if (turn === undefined) return { state: 'queued', evidence: 'there is nothing to deliver' }
    if (activity.state !== 'idle') return { state: 'queued', evidence: `the program is ${activity.state}` }
    const answered = await answerTurnEnd(turn, signal)
    if (answered !== undefined) return answered
    const { result, cancel } = expectations.expect(turn)
    try {
      await activity.comesToPrompt(PROMPT_WITHIN_MS)
      return await pane.paste(turn, {
        state: () => (activity.state === 'idle' && !activity.isAtPrompt ? 'busy' : activity.state),
        inputBox: readInputBox,
        enterAfterMs: enterDelayOf(activity.version),
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

  /** With as much of the turn as fits. Undefined if nothing was given. */
  async function answerTurnEnd(
    turn: Turn,
    signal: AbortSignal | undefined,
  ): Promise<DeliveryResult | undefined> {
    const end = options.turnEnd()
    if (end === undefined || signal?.aborted) return undefined
    const part = leadingPart(turn, MAX_HOOK_RESPONSE_BYTES)
    // A snapshot can take longer than the hold.
    end.keep()
    try {
      const isInTheWay = readInputBox(await pane.screen()) === 'draft'
      if (!isInTheWay || signal?.aborted || part === undefined) return undefined
      // A withdrawn turn is delivered whole, or it would be unknown which part is still due.
      if (part !== turn && withdrawals.turns.length > 0) return undefined
      return await answerWith(end, turn, part)
    } finally {
      end.close()
    }
  }

  async function answerWith(end: OpenTurnEnd, turn: Turn, part: Turn): Promise<DeliveryResult | undefined> {
    const { result: delivered, cancel } = expectations.expect(part)
    try {
      if (!end.take(part.text)) return undefined
      activity.turnBegan('the answer to its Stop hook delivered a turn')
      const evidence = 'the answer to its Stop hook contained it, but its transcript does not show it'
      const late: DeliveryResult = { state: 'uncertain', evidence }
      const outcome = await Promise.race([delivered, sleep(EVIDENCE_MS, late, { ref: false })])
      return part === turn ? outcome : { ...outcome, ids: part.ids }
    } finally {
      cancel()
    }
  }

  return (turn, signal) => {
    const delivery = deliveries.then(async () => {
      await options.emptyBox()
      const joined = withdrawals.joinedWith(turn)
      return await give(joined && { ...joined, text: withoutFiles(joined.text) }, signal)
    })
    deliveries = delivery.catch(() => {})
    return delivery
  }
}

/**
 * The end of a path to a picture, quoted or with backslashes as a terminal writes it, before another path.
 */
const PICTURE =
  /(\.(?:\\?p\\?n\\?g|\\?j\\?p\\?e?\\?g|\\?g\\?i\\?f|\\?w\\?e\\?b\\?p)["']?\s*) (?=\/|[a-z]:\\)/gi

/**
 * Prevents a message from making the program read files for its sender. Claude Code treats a paste with adjacent paths as files dropped
 * onto the terminal (2.1.197) and shows pictures among them to the model; a tab between them prevents that.
 */
function withoutFiles(text: string): string {
  return withoutMentions(text, 'alone').replace(PICTURE, '$1\t')
}

/** Since this version Enter can come with a paste; 2.1.197 treats it as part of the paste. */
const ENTER_AT_ONCE_SINCE = '2.1.325'
const ENTER_DELAY_MS = 150

function enterDelayOf(version: string): number {
  return version.localeCompare(ENTER_AT_ONCE_SINCE, 'en', { numeric: true }) < 0 ? ENTER_DELAY_MS : 0
}

/** The program moves a longer response into a file, and shows the model only its beginning. */
export const MAX_HOOK_RESPONSE_BYTES = 9000

/** A turn has ended, and its Stop hook waits for our response. */
export type OpenTurnEnd = ReturnType<typeof holdTurnEnd>['end']

/** Holds the response to the Stop hook for a moment: text in it starts the next turn. */
export function holdTurnEnd(holdMs: number, signal: AbortSignal) {
  const { promise, resolve } = Promise.withResolvers<object | undefined>()
  let isOpen = !signal.aborted
  const timer = setTimeout(() => close(), holdMs)

  function settle(answer: object | undefined) {
    if (!isOpen) return
    isOpen = false
    clearTimeout(timer)
    signal.removeEventListener('abort', close)
    resolve(answer)
  }
  const close = () => settle(undefined)

  signal.addEventListener('abort', close)
  if (signal.aborted) resolve(undefined)
  return {
    end: {
      /** Keeps it open until it is taken or closed, which the caller is about to do. */
      keep: () => clearTimeout(timer),
      /** Responds with the text. False if it is too late, or too long. */
      take(text: string): boolean {
        if (!isOpen || Buffer.byteLength(text) > MAX_HOOK_RESPONSE_BYTES) return false
        // Not `decision: block`: the model would see its reason twice, as user text and as a hook error.
        settle({ hookSpecificOutput: { hookEventName: 'Stop', additionalContext: text } })
        return true
      },
      /** Responds with nothing, so that the program ends the turn. */
      close,
    },
    /** The response; undefined if no text was given in time. */
    answer: promise,
  }
}
