import { randomUUID } from 'node:crypto'
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { ModelFailure, Models, Spending, Streamed, ToolDefinition } from '../../models/model.ts'
import type { AgentStart, SessionPort, Turn } from '../runtime.ts'
import { carryOut } from './commands.ts'
import { type Conversation, nextMove } from './conversation.ts'
import type { Journal } from './journal.ts'
import { NOT_CARRIED_OUT } from './notes.ts'
import type { LogRecord, RecordOf, TurnEnd } from './record.ts'
import type { LlmSettings } from './settings.ts'

export interface WorkOrder {
  readonly agent: AgentStart
  readonly port: SessionPort
  readonly settings: LlmSettings
  readonly models: Models
  readonly tools: readonly ToolDefinition[]
  readonly conversation: Conversation
  /** Names the conversation in keys. */
  readonly id: string
  readonly journal: Journal
  readonly clock: Clock
  readonly log: Log
}

/** What stands when the work rests: the turn has ended, or it waits for its model. */
export type Rest =
  | { readonly is: 'ended'; readonly why: string }
  | { readonly is: 'waiting'; readonly why: string; readonly leastMs: number }
  | { readonly is: 'left' }

/** What may call an end to the work, looked at before every move. */
export interface Stops {
  readonly signal: AbortSignal
  readonly isInterrupted: boolean
  readonly isLeft: boolean
}

/** The work at one conversation. All that counts is in the file before it is acted on. */
export interface Work {
  /** Writes down what is put before the agent. */
  begin(turn: Turn): Promise<void>
  /** Goes on with the open turn, from wherever it stands. */
  goOn(stops: Stops): Promise<Rest>
  /** What was said and maybe not acted on is said again. */
  sayAgain(): void
  notice(text: string): void
}

export function createWork(order: WorkOrder, onText: (piece: string) => void): Work {
  const { agent, port, settings, models, conversation, journal, clock, log } = order
  const notices: string[] = []
  /** Messages of which it was told that the model began to answer them. */
  const read = new Set<string>()

  async function write(record: LogRecord) {
    await journal.append(record)
    conversation.add(record)
  }

  async function move(stops: Stops): Promise<Rest | undefined> {
    const { open } = conversation
    if (stops.isLeft || open === undefined) return { is: 'left' }
    const next = nextMove(open, settings.max_steps)
    if (next.do === 'end') return await end(next.how)
    if (next.do === 'ask') return stops.isInterrupted ? await end('interrupted') : await ask(stops.signal)
    const key = `${order.id}:${next.answer.n}:${next.index}`
    const done = stops.isInterrupted
      ? { text: NOT_CARRIED_OUT, isError: true, handedOut: [] }
      : await carryOut(agent, next.answer.calls[next.index]!, key)
    const handedOut = [...done.handedOut]
    await write({ ...done, type: 'result', n: conversation.next, index: next.index, handedOut })
    if (handedOut.length > 0)
      port.arrived(handedOut, 'submitted', 'it is in the conversation, as the answer to a tool call')
    return undefined
  }

  async function end(how: TurnEnd, why: string = how): Promise<Rest> {
    await write({ type: 'end', n: conversation.next, how })
    read.clear()
    return { is: 'ended', why }
  }

  async function ask(signal: AbortSignal): Promise<Rest | undefined> {
    for (const text of notices.splice(0)) await write({ type: 'notice', n: conversation.next, text })
    const by = models.about(settings.model)?.model ?? ''
    const answer = await models.stream({
      model: settings.model,
      system: agent.prompt,
      messages: conversation.messages(by),
      tools: order.tools,
      ...(settings.temperature === undefined ? {} : { temperature: settings.temperature }),
      signal,
      spent: tellSpending,
      onBegin: tellRead,
      onText,
    })
    if (!answer.ok) return await failed(answer)
    await take(answer, by)
    return undefined
  }

  async function take({ text, calls, parts, finish }: Streamed, by: string) {
    const record: RecordOf<'assistant'> = {
      type: 'assistant',
      n: conversation.next,
      at: clock.now(),
      text,
      calls: [...calls],
      by,
      ...(parts === undefined ? {} : { parts }),
      finish,
    }
    await write(record)
    onText('\n')
    say(record)
  }

  /** Not waited for: the answer to what it says may itself wait for the turn to end. The key makes it act once. */
  function say({ n, text }: RecordOf<'assistant'>) {
    if (text.trim() === '') return
    const written = async () => {
      const said: LogRecord = { type: 'said', of: n }
      await journal.note(said)
      conversation.add(said)
    }
    port
      .said({ text, channel: 'api', key: `${order.id}:${n}` })
      .then(written)
      .catch((error: unknown) =>
        log.warn({ agent: agent.name, err: error }, 'what the agent said could not be taken'),
      )
  }

  function tellRead() {
    const { open } = conversation
    if (open === undefined) return
    const handedOut = open.events.flatMap((event) => (event.type === 'result' ? event.handedOut : []))
    const ids = [...open.user.ids, ...handedOut].filter((id) => !read.has(id))
    for (const id of ids) read.add(id)
    if (ids.length > 0) port.arrived(ids, 'read', 'the model began to answer')
  }

  function tellSpending({ model, input, output, cacheRead, cacheWrite }: Spending) {
    const contextWindow = models.about(settings.model)?.contextWindow
    port.used({
      model,
      contextTokens: input + cacheRead + cacheWrite,
      ...(contextWindow === undefined ? {} : { contextWindow }),
      spent: { key: randomUUID(), input, output, cacheRead, cacheWrite },
    })
  }

  /** A message that cannot be answered now stays in the conversation, and is answered when the model is back. */
  async function failed({ code, message, hint, retryAfterMs = 0 }: ModelFailure): Promise<Rest | undefined> {
    switch (code) {
      case 'aborted':
        return undefined
      case 'too_long':
        return conversation.shorten() ? undefined : await end('too_long', message)
      case 'refused':
      case 'garbage':
        return await end('refused', message)
      default:
        return { is: 'waiting', why: `${message}. ${hint}`, leastMs: retryAfterMs }
    }
  }

  return {
    async begin({ text, ids }) {
      const told = [...notices, text].join('\n\n')
      await write({ type: 'user', n: conversation.next, at: clock.now(), text: told, ids: [...ids] })
      notices.length = 0
    },
    async goOn(stops) {
      for (;;) {
        const rest = await move(stops)
        if (rest !== undefined) return rest
      }
    },
    sayAgain() {
      for (const record of conversation.unsaid) say(record)
    },
    notice: (text) => void notices.push(text),
  }
}
