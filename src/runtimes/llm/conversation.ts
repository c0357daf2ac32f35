import type { ChatMessage } from '../../llm/llm.ts'
import type { LlmTurnEnd, LogRecord, RecordOf } from './journal.ts'

/** A turn with its events so far. */
interface LlmTurn {
  readonly user: RecordOf<'user'>
  readonly events: (RecordOf<'notice'> | RecordOf<'assistant'> | RecordOf<'result'>)[]
  end: LlmTurnEnd | undefined
  tokens: number
}

/** The next step of a turn. It follows from the records alone, so it is the same after a crash. */
type TurnStep =
  | { do: 'ask' }
  | { do: 'carry out'; answer: RecordOf<'assistant'>; index: number }
  | { do: 'end'; how: LlmTurnEnd }

export function nextStep({ events }: LlmTurn, maxSteps: number): TurnStep {
  const answers = events.filter((event) => event.type === 'assistant')
  const answer = answers.at(-1)
  if (answer === undefined) return { do: 'ask' }
  if (answer.calls.length === 0) return { do: 'end', how: 'answered' }
  const done = new Set(resultsOf(events, answer).map(({ index }) => index))
  const index = answer.calls.findIndex((_, call) => !done.has(call))
  if (index >= 0) return { do: 'carry out', answer, index }
  return answers.length >= maxSteps ? { do: 'end', how: 'max_steps' } : { do: 'ask' }
}

/**
 * Share of the history kept when it exceeds its budget: cutting a little each time would invalidate the
 * provider's cache every time.
 */
const RETAINED_SHARE = 0.7

export type LlmConversation = ReturnType<typeof createConversation>

/**
 * The part of the conversation that is sent to the model. Turns are appended, then omitted from the oldest on when
 * `tokens` exceeds the budget; the last one always stays. Omitted turns stay in the file.
 */
export function createConversation(budget: number) {
  let turns: LlmTurn[] = []
  let omitted = 0
  let tokens = 0
  let next = 1
  const unsaid = new Map<number, RecordOf<'assistant'>>()

  function omitOver(limit: number) {
    while (tokens > limit && turns.length > 1) {
      tokens -= turns[0]!.tokens
      turns = turns.slice(1)
      omitted += 1
    }
  }

  function count(turn: LlmTurn, text: string) {
    const more = estimate(text)
    turn.tokens += more
    tokens += more
  }

  return {
    add(record: LogRecord) {
      if (record.type === 'said') {
        unsaid.delete(record.of)
        return
      }
      next = Math.max(next, record.n + 1)
      const turn = turns.at(-1)
      switch (record.type) {
        case 'user': {
          const begun: LlmTurn = { user: record, events: [], end: undefined, tokens: 0 }
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
      if (tokens > budget) omitOver(budget * RETAINED_SHARE)
    },
    /** Number of the next record. */
    get next() {
      return next
    },
    /** The turn that has not ended. */
    get open() {
      const last = turns.at(-1)
      return last?.end === undefined ? last : undefined
    },
    /** Responses whose text may not have been processed. */
    get unsaid() {
      return [...unsaid.values()]
    },
    /** `model`: the model whose provider-specific parts may be sent. */
    messages: (model: string) => toMessages(turns, omitted, model),
    /** Omits the older half; false if only one turn is left. */
    shorten(): boolean {
      if (turns.length <= 1) return false
      omitOver(tokens / 2)
      return true
    },
  }
}

/** Models average four bytes per token; an estimate is enough. */
const estimate = (text: string) => Math.ceil(Buffer.byteLength(text) / 4) + 4

const textOf = ({ text, calls, parts }: RecordOf<'assistant'>) =>
  parts === undefined ? `${text}${JSON.stringify(calls)}` : JSON.stringify(parts)

function resultsOf(events: LlmTurn['events'], answer: RecordOf<'assistant'>): RecordOf<'result'>[] {
  const since = events.slice(events.indexOf(answer) + 1)
  const end = since.findIndex((event) => event.type === 'assistant')
  return since.slice(0, end < 0 ? undefined : end).filter((event) => event.type === 'result')
}

function toMessages(turns: readonly LlmTurn[], omitted: number, model: string): ChatMessage[] {
  const messages: ChatMessage[] = []
  /** Merges consecutive user messages, which not every model accepts. */
  const say = (text: string) => {
    const last = messages.at(-1)
    if (last?.role === 'user')
      messages[messages.length - 1] = { role: 'user', text: `${last.text}\n\n${text}` }
    else messages.push({ role: 'user', text })
  }
  if (omitted > 0) say(omittedNote(omitted))
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

/** Notices of the service to the model. */
const NOTE = '[ORCHUB NOTICE]'

const ENDED: Record<LlmTurnEnd, string | undefined> = {
  answered: undefined,
  interrupted: 'Your turn was interrupted here before it was complete.',
  max_steps: 'Your turn ended here: it reached the limit of tool steps per turn (with.max_steps).',
  refused: 'No answer here: it was refused.',
  too_long: 'No answer here: the conversation was too long for the model.',
}

function endNote(how: LlmTurnEnd): string | undefined {
  const said = ENDED[how]
  return said === undefined ? undefined : `${NOTE} ${said}`
}

function omittedNote(turns: number): string {
  return `${NOTE} ${turns === 1 ? 'One earlier turn' : `${turns} earlier turns`} of this conversation omitted to save space. Read messages from that time with query_mailbox, filter "all".`
}

export const NOT_EXECUTED = `${NOTE} Not executed: the turn was interrupted first.`

export function invalidCall(why: string): string {
  return `${NOTE} Nothing was done: ${why}. Check your tools and their parameters, then try again.`
}
