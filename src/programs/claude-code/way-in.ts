import type { Arrival, Turn } from '../../runtimes/runtime.ts'
import { withoutMentions } from '../../wire/mentions.ts'
import type { Expectations } from '../expectation.ts'
import { leadingPart } from '../message-ids.ts'
import type { Pane } from '../program.ts'
import type { Activity } from './activity.ts'
import { enterDelayOf } from './enter-delay.ts'
import { readInputBox } from './input-box.ts'
import { LONGEST_ANSWER, type TurnEnd } from './turn-end.ts'
import type { Withdrawals } from './withdrawals.ts'

export interface WayInOptions {
  readonly activity: Activity
  readonly expectations: Expectations
  readonly withdrawals: Withdrawals
  readonly pane: Pane
  /** The end of a turn that can still be answered. */
  turnEnd(): TurnEnd | undefined
  /** Of what an interrupt has left there of ours. */
  emptyBox(): Promise<void>
}

export const EVIDENCE_MS = 4000
const PATIENCE_MS = 5000
const PROMPT_WITHIN_MS = 2000

/**
 * Gives a turn to the program: by a paste at its prompt, or, when a person's draft stands in the way at the end of a
 * turn, as the answer of its Stop hook. Not the other way round: such an answer is before the model as a reminder of
 * the program's, a paste as the words of the user.
 */
export function openWayIn(
  options: WayInOptions,
): (turn: Turn | undefined, gone?: AbortSignal) => Promise<Arrival> {
  const { activity, expectations, withdrawals, pane } = options
  /** One after the other: what was taken back may be given again at any time. */
  let deliveries: Promise<unknown> = Promise.resolve()

  async function give(turn: Turn | undefined, gone: AbortSignal | undefined): Promise<Arrival> {
    if (turn === undefined) return { state: 'queued', evidence: 'there is nothing to give' }
    if (activity.state !== 'idle') return { state: 'queued', evidence: `the program is ${activity.state}` }
    const answered = await answerTurnEnd(turn, gone)
    if (answered !== undefined) return answered
    const { arrival, cancel } = expectations.expect(turn)
    try {
      await activity.comesToPrompt(PROMPT_WITHIN_MS)
      return await pane.paste(turn, {
        state: () => (activity.state === 'idle' && !activity.isAtPrompt ? 'busy' : activity.state),
        inputBox: readInputBox,
        enterAfterMs: enterDelayOf(activity.version),
        evidence: arrival,
        evidenceMs: EVIDENCE_MS,
        lagMs: EVIDENCE_MS,
        patienceMs: PATIENCE_MS,
        gone,
      })
    } finally {
      cancel()
    }
  }

  /** With as much of the turn as fits. Undefined when nothing was given. */
  async function answerTurnEnd(turn: Turn, gone: AbortSignal | undefined): Promise<Arrival | undefined> {
    const end = options.turnEnd()
    if (end === undefined || gone?.aborted) return undefined
    const part = leadingPart(turn, LONGEST_ANSWER)
    // A look at the screen of a busy machine takes its time.
    end.keep()
    try {
      const isInTheWay = readInputBox(await pane.screen()) === 'draft'
      if (!isInTheWay || gone?.aborted || part === undefined) return undefined
      // What was taken back is given as a whole, or it would not be known which part of it is still to be given.
      if (part !== turn && withdrawals.turns.length > 0) return undefined
      return await answerWith(end, turn, part)
    } finally {
      end.close()
    }
  }

  async function answerWith(end: TurnEnd, turn: Turn, part: Turn): Promise<Arrival | undefined> {
    const { arrival, cancel } = expectations.expect(part)
    try {
      if (!end.take(part.text)) return undefined
      activity.turnBegan('a turn was given as the answer of its Stop hook')
      const outcome = await inTime(arrival)
      return part === turn ? outcome : { ...outcome, ids: part.ids }
    } finally {
      cancel()
    }
  }

  return (turn, gone) => {
    const delivery = deliveries.then(async () => {
      await options.emptyBox()
      const joined = withdrawals.joinedWith(turn)
      return await give(joined && { ...joined, text: withoutFiles(joined.text) }, gone)
    })
    deliveries = delivery.catch(() => {})
    return delivery
  }
}

/** The end of a path to a picture, in quotes or with backslashes as a terminal gives it, before another path. */
const PICTURE =
  /(\.(?:\\?p\\?n\\?g|\\?j\\?p\\?e?\\?g|\\?g\\?i\\?f|\\?w\\?e\\?b\\?p)["']?\s*) (?=\/|[a-z]:\\)/gi

/**
 * What a message names is not read for its sender. A paste in which paths stand side by side is taken for files that were
 * dropped onto the terminal (2.1.197), and the pictures among them are put before the model; with a tab between them it is not.
 */
export function withoutFiles(text: string): string {
  return withoutMentions(text, 'alone').replace(PICTURE, '$1\t')
}

async function inTime(arrival: Promise<Arrival>): Promise<Arrival> {
  const evidence = 'its Stop hook was answered with it, but its transcript does not show it'
  const { promise, resolve } = Promise.withResolvers<Arrival>()
  const timer = setTimeout(() => resolve({ state: 'uncertain', evidence }), EVIDENCE_MS)
  try {
    return await Promise.race([arrival, promise])
  } finally {
    clearTimeout(timer)
  }
}
