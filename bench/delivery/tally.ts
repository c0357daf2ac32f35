/** Compares the sent messages with the receiver's record. Pure. */
import type { Sent } from './messages.ts'

export interface Tally {
  sent: number
  /** The receiver got it complete, as the text of a turn. */
  submitted: number
  lost: number
  doubled: number
  /** Our keys that answered a dialog, and texts that were typed into one. */
  intoDialog: number
  /** Turns with text beside our messages, such as a person's draft. */
  fused: number
  /** Differs from the text that was sent. */
  changed: number
  /** The product called it uncertain at some time. */
  uncertain: number
}

/** A turn that the receiver accepted, or a key that its dialog accepted. */
export interface Got {
  readonly text?: string
  readonly answered?: string
}

export interface Frame {
  readonly id: string
  readonly title: string
  readonly content: string
}

const FRAME =
  /\[ORCHUB MESSAGE (msg_\d+)\]\nFrom: [^\n]*\nTitle: ([^\n]*)\nPriority: [^\n]*\n\n([\s\S]*?)\n\n\[END ORCHUB MESSAGE \1\]/g
const ANSWER = /\[ORCHESTRATOR RESPONSE\][\s\S]*?\[END ORCHESTRATOR RESPONSE\]/g

/** The messages in a turn, and the text between them. */
export function readTurn(text: string): { frames: Frame[]; rest: string } {
  const frames: Frame[] = []
  const rest = text.replace(FRAME, (_, id: string, title: string, content: string) => {
    frames.push({ id, title, content })
    return ''
  })
  return { frames, rest: rest.replace(ANSWER, '').trim() }
}

export interface TallyOptions {
  sent: readonly Sent[]
  got: readonly Got[]
  /** Keys with which the bench's person answered dialogs; every other key was ours. */
  answers: number
  /** Turns that the bench's person submitted themselves. */
  personal?: ReadonlySet<string>
  uncertain: number
}

export function tally({ sent, got, answers, personal = new Set(), uncertain }: TallyOptions): Tally {
  const expected = new Map(sent.map((one) => [one.mark, one.content]))
  const marks = new Map<string, number>()
  const ids = new Map<string, number>()
  let fused = 0
  let changed = 0
  for (const { text } of got) {
    if (text === undefined || personal.has(text)) continue
    const { frames, rest } = readTurn(text)
    if (rest !== '') fused += 1
    for (const { id, title, content } of frames) {
      marks.set(title, (marks.get(title) ?? 0) + 1)
      ids.set(id, (ids.get(id) ?? 0) + 1)
      if (expected.get(title) !== content) changed += 1
    }
  }
  const answered = got.filter((one) => one.answered !== undefined)
  const personally = answered.filter((one) => one.answered === 'y').length
  return {
    sent: sent.length,
    submitted: sent.filter((one) => marks.has(one.mark)).length,
    lost: sent.filter((one) => !marks.has(one.mark)).length,
    doubled: Math.max(extra(marks), extra(ids)),
    intoDialog: answered.length - Math.min(personally, answers),
    fused,
    changed,
    uncertain,
  }
}

/** The first differences between sent and received text, for finding the cause. */
export function* faults(sent: readonly Sent[], got: readonly Got[]): Generator<string> {
  const expected = new Map(sent.map((one) => [one.mark, one.content]))
  for (const { text } of got) {
    if (text === undefined) continue
    const { frames, rest } = readTurn(text)
    if (rest !== '') yield `beside messages stood ${JSON.stringify(rest.slice(0, 300))}`
    for (const { title, content } of frames) {
      const wanted = expected.get(title) ?? ''
      if (wanted === content) continue
      let at = 0
      while (wanted[at] === content[at]) at += 1
      const around = (whole: string) => JSON.stringify(whole.slice(Math.max(0, at - 20), at + 60))
      yield `${title} came as ${around(content)}, not as ${around(wanted)}, at ${at} of ${wanted.length}`
    }
  }
}

function extra(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count - 1, 0)
}

export function isClean(one: Tally): boolean {
  return one.lost + one.doubled + one.intoDialog + one.fused + one.changed + one.uncertain === 0
}
