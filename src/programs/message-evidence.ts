import { reasonOf } from '../base/errors.ts'
import type { DeliveryResult, MessageLocation, Turn } from '../runtimes/runtime.ts'
import type { Pane, PasteOptions } from './program.ts'

/**
 * Only envelopes contain it (src/protocol/response.ts): in a message's own content the bracket is replaced (C17).
 */
const MARKER = /\[(END )?ORCHUB MESSAGE (\S+?)\]/g
const BEGINNING = '[ORCHUB MESSAGE '

/**
 * Ids of the messages whose complete envelopes are in the text: an opening line alone may be a quotation, or
 * cut off.
 */
export function messageIdsIn(text: string): string[] {
  const begun = new Set<string>()
  const whole = new Set<string>()
  for (const [, end, id] of text.matchAll(MARKER)) {
    if (end === undefined) begun.add(id!)
    else if (begun.has(id!)) whole.add(id!)
  }
  return [...whole]
}

/** False for most lines of a transcript, which then need not be parsed. */
export function mayHoldMessages(line: string): boolean {
  return line.includes(BEGINNING)
}

/**
 * The turn, or as many of its leading messages as fit, including the text before them. Undefined if not even
 * one fits. Text after the last message belongs to it: no turn is cut there.
 */
export function leadingPart(turn: Turn, maxBytes: number): Turn | undefined {
  if (Buffer.byteLength(turn.text) <= maxBytes) return turn
  for (let count = turn.ids.length - 1; count > 0; count--) {
    const ids = turn.ids.slice(0, count)
    const last = `[END ORCHUB MESSAGE ${ids.at(-1)}]`
    const text = turn.text.slice(0, turn.text.indexOf(last) + last.length)
    if (Buffer.byteLength(text) <= maxBytes && messageIdsIn(text).length === count) return { text, ids }
  }
  return undefined
}

/** Whether a prompt is the turn: compares message ids, or the text if it has none. */
export function holdsTurn(prompt: string, turn: Turn): boolean {
  if (turn.ids.length === 0) return plain(prompt).includes(plain(turn.text))
  const found = new Set(messageIdsIn(prompt))
  return turn.ids.every((id) => found.has(id))
}

/** Input boxes turn tabs into spaces, and trim. */
function plain(text: string): string {
  return text
    .replace(/[\u0000-\u001F\u007F-\u009F]/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

export type PromptAwaiter = ReturnType<typeof createPromptAwaiter>

/** Turns given to a program, until it shows them. */
export function createPromptAwaiter() {
  const waiting = new Map<Turn, (result: DeliveryResult) => void>()
  return {
    /** Resolves when the program shows the turn as a prompt. Never rejects. */
    expect(turn: Turn): { readonly result: Promise<DeliveryResult>; cancel(): void } {
      const { promise, resolve } = Promise.withResolvers<DeliveryResult>()
      waiting.set(turn, resolve)
      return { result: promise, cancel: () => void waiting.delete(turn) }
    },
    /** The program shows a prompt. */
    prompted(prompt: string, evidence: string) {
      for (const [turn, resolve] of waiting) {
        if (!holdsTurn(prompt, turn)) continue
        waiting.delete(turn)
        resolve({ state: 'submitted', evidence })
      }
    },
  }
}

/**
 * Locates messages by id: in the program's record, then elsewhere, such as in its pane. Searches the record again after
 * that, because a message may have reached it by then. A recorded message is not submitted again.
 */
export async function locateIn(
  ids: readonly string[],
  search: (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>,
  lookElsewhere: () => Promise<MessageLocation>,
  pane?: Pick<Pane, 'markAccepted'>,
): Promise<MessageLocation[]> {
  try {
    const found = new Map(await search(ids))
    pane?.markAccepted([...found.keys()])
    const missing = ids.filter((id) => !found.has(id))
    if (missing.length === 0 && ids.length > 0) return locationsOf(ids, found, NOWHERE)
    const elsewhere = await lookElsewhere()
    for (const [id, evidence] of await search(missing)) found.set(id, evidence)
    return locationsOf(ids, found, elsewhere)
  } catch (error) {
    const evidence = `its record could not be searched: ${reasonOf(error)}`
    return ids.map(() => ({ at: 'unknown', evidence }))
  }
}

const NOWHERE: MessageLocation = { at: 'unknown', evidence: 'it was not searched for' }

/** Each message's location: found by id, or the common location of the others. */
export function locationsOf(
  ids: readonly string[],
  found: ReadonlyMap<string, string>,
  elsewhere: MessageLocation,
): MessageLocation[] {
  return ids.map((id) => {
    const evidence = found.get(id)
    return evidence === undefined ? elsewhere : { at: 'submitted', evidence }
  })
}

/**
 * For messages not in the record of an idle program: they may be on their way through the terminal, or in the
 * input box. Submits our pending text.
 */
export async function lookInPane(
  pane: Pick<Pane, 'hasReadInput' | 'submitPending' | 'screen'>,
  options: Pick<PasteOptions, 'state' | 'inputBox' | 'lagMs'>,
): Promise<MessageLocation> {
  if (!(await pane.hasReadInput()))
    return { at: 'unknown', evidence: 'it has not read all of its terminal input yet' }
  if (await pane.submitPending(options))
    return { at: 'unknown', evidence: 'its input box held our pending text, which was submitted' }
  if (options.inputBox(await pane.screen()) !== 'empty')
    return { at: 'unknown', evidence: 'its input box is not empty' }
  return { at: 'absent', evidence: 'it is idle, and neither its record nor its input box contains it' }
}
