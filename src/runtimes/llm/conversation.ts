import type { ChatMessage } from '../../models/model.ts'
import { endNote, leftOutNote } from './notes.ts'
import type { LogRecord, RecordOf, TurnEnd } from './record.ts'

/** A turn that has begun, with all that has happened in it. */
export interface Turn {
  readonly user: RecordOf<'user'>
  readonly events: readonly (RecordOf<'notice'> | RecordOf<'assistant'> | RecordOf<'result'>)[]
  readonly end: TurnEnd | undefined
}

/** What is to be done next in a turn; all of it follows from the records, so that it does after a crash, too. */
export type Move =
  | { do: 'ask' }
  | { do: 'carry out'; answer: RecordOf<'assistant'>; index: number }
  | { do: 'end'; how: TurnEnd }

export function nextMove({ events }: Turn, maxSteps: number): Move {
  const answers = events.filter((event) => event.type === 'assistant')
  const answer = answers.at(-1)
  if (answer === undefined) return { do: 'ask' }
  if (answer.calls.length === 0) return { do: 'end', how: 'answered' }
  const done = new Set(resultsOf(events, answer).map(({ index }) => index))
  const index = answer.calls.findIndex((_, place) => !done.has(place))
  if (index >= 0) return { do: 'carry out', answer, index }
  return answers.length >= maxSteps ? { do: 'end', how: 'max_steps' } : { do: 'ask' }
}

/** The part of the conversation that the model is shown. What is left out stays in the file. */
export interface Conversation {
  add(record: LogRecord): void
  /** The number of the next record. */
  readonly next: number
  /** The turn that has not ended. */
  readonly open: Turn | undefined
  /** Answers whose text may not have been acted on. */
  readonly unsaid: readonly RecordOf<'assistant'>[]
  /** `model`: whose own parts may be sent. */
  messages(model: string): ChatMessage[]
  /** Leaves out the older half; false when there is only one turn left. */
  shorten(): boolean
}

interface HeldTurn extends Turn {
  readonly events: (RecordOf<'notice'> | RecordOf<'assistant'> | RecordOf<'result'>)[]
  end: TurnEnd | undefined
  tokens: number
}

/** When the history is over its budget, so much of it is kept: cut by cut the provider's cache would be lost each time. */
const KEPT_SHARE = 0.7

export function createConversation(budget: number): Conversation {
  let turns: HeldTurn[] = []
  let leftOut = 0
  let tokens = 0
  let next = 1
  const unsaid = new Map<number, RecordOf<'assistant'>>()

  function leaveOutOver(most: number) {
    while (tokens > most && turns.length > 1) {
      tokens -= turns[0]!.tokens
      turns = turns.slice(1)
      leftOut += 1
    }
  }

  function count(turn: HeldTurn, text: string) {
    const more = estimate(text)
    turn.tokens += more
    tokens += more
  }

  return {
    add(record) {
      if (record.type === 'said') {
        unsaid.delete(record.of)
        return
      }
      next = Math.max(next, record.n + 1)
      const turn = turns.at(-1)
      switch (record.type) {
        case 'user': {
          const begun: HeldTurn = { user: record, events: [], end: undefined, tokens: 0 }
          turns.push(begun)
          count(begun, record.text)
          break
        }
        case 'end':
          if (turn !== undefined) turn.end = record.how
          break
        default:
          if (turn === undefined) return
          turn.events.push(record)
          count(turn, record.type === 'assistant' ? textOf(record) : record.text)
          if (record.type === 'assistant' && record.text.trim() !== '') unsaid.set(record.n, record)
      }
      if (tokens > budget) leaveOutOver(budget * KEPT_SHARE)
    },
    get next() {
      return next
    },
    get open() {
      const last = turns.at(-1)
      return last?.end === undefined ? last : undefined
    },
    get unsaid() {
      return [...unsaid.values()]
    },
    messages: (model) => toMessages(turns, leftOut, model),
    shorten() {
      if (turns.length <= 1) return false
      leaveOutOver(tokens / 2)
      return true
    },
  }
}

/** Four bytes a token is what models come to on average; it need not be exact. */
const estimate = (text: string) => Math.ceil(Buffer.byteLength(text) / 4) + 4

const textOf = ({ text, calls, parts }: RecordOf<'assistant'>) =>
  parts === undefined ? `${text}${JSON.stringify(calls)}` : JSON.stringify(parts)

function resultsOf(events: Turn['events'], answer: RecordOf<'assistant'>): RecordOf<'result'>[] {
  const since = events.slice(events.indexOf(answer) + 1)
  const end = since.findIndex((event) => event.type === 'assistant')
  return since.slice(0, end < 0 ? undefined : end).filter((event) => event.type === 'result')
}

function toMessages(turns: readonly Turn[], leftOut: number, model: string): ChatMessage[] {
  const messages: ChatMessage[] = []
  /** Two in a row become one: not every model takes two. */
  const say = (text: string) => {
    const last = messages.at(-1)
    if (last?.role === 'user')
      messages[messages.length - 1] = { role: 'user', text: `${last.text}\n\n${text}` }
    else messages.push({ role: 'user', text })
  }
  if (leftOut > 0) say(leftOutNote(leftOut))
  for (const { user, events, end } of turns) {
    say(user.text)
    for (const event of events) {
      if (event.type === 'notice') say(event.text)
      else if (event.type === 'assistant')
        messages.push(...answerMessages(event, resultsOf(events, event), model))
    }
    const note = end === undefined ? undefined : endNote(end)
    if (note !== undefined) say(note)
  }
  return messages
}

function answerMessages(
  { text, calls, parts, by }: RecordOf<'assistant'>,
  results: readonly RecordOf<'result'>[],
  model: string,
): ChatMessage[] {
  if (text.trim() === '' && calls.length === 0) return []
  const own = by === model && parts !== undefined ? { parts } : {}
  const answer: ChatMessage = { role: 'assistant', text, calls, ...own }
  if (calls.length === 0) return [answer]
  const given = calls.map(({ id, name }, index) => {
    const result = results.find((one) => one.index === index)
    return { id, name, text: result?.text ?? 'There is no result.', isError: result?.isError ?? true }
  })
  return [answer, { role: 'tool', results: given }]
}
