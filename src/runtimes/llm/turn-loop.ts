import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import type { ModelFailure, Models, Spending, Streamed, ToolCall, ToolDefinition } from '../../llm/llm.ts'
import { renderResponse } from '../../protocol/response.ts'
import type { AgentSettings, AgentStart, SessionPort, Turn } from '../runtime.ts'
import { invalidCall, type LlmConversation, NOT_EXECUTED, nextStep } from './conversation.ts'
import type { Journal, LlmTurnEnd, LogRecord, RecordOf } from './journal.ts'

export const LlmSettings = z.strictObject({
  model: z.string().min(1).max(64).describe('A model from "models" in orc.yaml.'),
  max_steps: z
    .int()
    .min(1)
    .max(1000)
    .default(20)
    .describe('Maximum number of model calls in a turn. Each use of tools needs another call.'),
  temperature: z.number().min(0).max(2).optional().describe("Overrides the model's own setting."),
  history_tokens: z
    .int()
    .min(500)
    .max(100_000_000)
    .optional()
    .describe(
      "How much of the conversation to send, in estimated tokens. Older turns are omitted. Default: 60 % of the model's context_window, or 60000.",
    ),
})
export type LlmSettings = z.output<typeof LlmSettings>

export function checkSettings({ settings }: AgentSettings): SettingsProblem[] {
  const parsed = LlmSettings.safeParse(settings ?? {})
  if (parsed.success) return []
  const hint = 'The runtime llm accepts: model (required), max_steps, temperature, history_tokens.'
  return problemsIn(parsed.error, hint)
}

const UNKNOWN_WINDOW_HISTORY = 60_000
/** The rest is reserved for the prompt, the tools, the response and the estimate's error. */
const HISTORY_SHARE = 0.6

export function historyBudget(settings: LlmSettings, contextWindow: number | undefined): number {
  if (settings.history_tokens !== undefined) return settings.history_tokens
  return contextWindow === undefined ? UNKNOWN_WINDOW_HISTORY : Math.floor(contextWindow * HISTORY_SHARE)
}

export interface TurnLoopOptions {
  readonly agent: AgentStart
  readonly port: SessionPort
  readonly settings: LlmSettings
  readonly models: Models
  readonly tools: readonly ToolDefinition[]
  readonly conversation: LlmConversation
  /** Names the conversation in idempotency keys. */
  readonly id: string
  readonly journal: Journal
  readonly clock: Clock
  readonly log: Log
}

/** Why the loop stopped: the turn ended, it waits for its model, or the session ends. */
export type TurnLoopResult =
  | { readonly is: 'ended'; readonly why: string }
  | { readonly is: 'waiting'; readonly why: string; readonly minDelayMs: number }
  | { readonly is: 'left' }

/** Reasons to stop, checked before every step. */
interface StopFlags {
  readonly signal: AbortSignal
  readonly isInterrupted: boolean
  readonly isLeft: boolean
}

/** Works on one conversation. Every fact is in the file before it is acted upon. */
export function createTurnLoop(options: TurnLoopOptions, onText: (piece: string) => void) {
  const { agent, port, settings, models, conversation, journal, clock, log } = options
  const notices: string[] = []
  /** Messages already reported as read. */
  const read = new Set<string>()

  async function write(record: LogRecord) {
    await journal.append(record)
    conversation.add(record)
  }

  async function move(stops: StopFlags): Promise<TurnLoopResult | undefined> {
    const { open } = conversation
    if (stops.isLeft || open === undefined) return { is: 'left' }
    const next = nextStep(open, settings.max_steps)
    if (next.do === 'end') return await end(next.how)
    if (next.do === 'ask') return stops.isInterrupted ? await end('interrupted') : await ask(stops.signal)
    const key = `${options.id}:${next.answer.n}:${next.index}`
    const done = stops.isInterrupted
      ? { text: NOT_EXECUTED, isError: true, handedOut: [] }
      : await executeCall(agent, next.answer.calls[next.index]!, key)
    const handedOut = [...done.handedOut]
    await write({ ...done, type: 'result', n: conversation.next, index: next.index, handedOut })
    if (handedOut.length > 0)
      port.onEvidence(handedOut, 'submitted', 'it is in the conversation as the result of a tool call')
    return undefined
  }

  async function end(how: LlmTurnEnd, why: string = how): Promise<TurnLoopResult> {
    await write({ type: 'end', n: conversation.next, how })
    read.clear()
    return { is: 'ended', why }
  }

  async function ask(signal: AbortSignal): Promise<TurnLoopResult | undefined> {
    for (const text of notices.splice(0)) await write({ type: 'notice', n: conversation.next, text })
    const by = models.about(settings.model)?.model ?? ''
    const answer = await models.stream({
      model: settings.model,
      system: agent.prompt,
      messages: conversation.messages(by),
      tools: options.tools,
      ...(settings.temperature === undefined ? {} : { temperature: settings.temperature }),
      signal,
      spent: reportSpending,
      onBegin: reportRead,
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

  /** Not awaited: the response to a command may wait for the end of the turn. The key makes it act once. */
  function say({ n, text }: RecordOf<'assistant'>) {
    if (text.trim() === '') return
    const written = async () => {
      const said: LogRecord = { type: 'said', of: n }
      await journal.note(said)
      conversation.add(said)
    }
    port
      .onText({ text, channel: 'api', key: `${options.id}:${n}` })
      .then(written)
      .catch((error: unknown) =>
        log.warn({ agent: agent.name, err: error }, "the agent's text could not be processed"),
      )
  }

  function reportRead() {
    const { open } = conversation
    if (open === undefined) return
    const handedOut = open.events.flatMap((event) => (event.type === 'result' ? event.handedOut : []))
    const ids = [...open.user.ids, ...handedOut].filter((id) => !read.has(id))
    for (const id of ids) read.add(id)
    if (ids.length > 0) port.onEvidence(ids, 'read', 'the model began to answer')
  }

  function reportSpending({ model, input, output, cacheRead, cacheWrite }: Spending) {
    const contextWindow = models.about(settings.model)?.contextWindow
    port.onUsage({
      model,
      contextTokens: input + cacheRead + cacheWrite,
      ...(contextWindow === undefined ? {} : { contextWindow }),
      spent: { key: randomUUID(), input, output, cacheRead, cacheWrite },
    })
  }

  /** A message that cannot be answered now stays in the conversation until the model is back. */
  async function failed({
    code,
    message,
    hint,
    retryAfterMs = 0,
  }: ModelFailure): Promise<TurnLoopResult | undefined> {
    switch (code) {
      case 'aborted':
        return undefined
      case 'too_long':
        return conversation.shorten() ? undefined : await end('too_long', message)
      case 'refused':
      case 'garbage':
        return await end('refused', message)
      default:
        return { is: 'waiting', why: `${message}. ${hint}`, minDelayMs: retryAfterMs }
    }
  }

  return {
    /** Stores the input of a new turn. */
    async begin({ text, ids }: Turn): Promise<void> {
      const input = [...notices, text].join('\n\n')
      await write({ type: 'user', n: conversation.next, at: clock.now(), text: input, ids: [...ids] })
      notices.length = 0
    },
    /** Continues the open turn from its current step. */
    async resume(stops: StopFlags): Promise<TurnLoopResult> {
      for (;;) {
        const rest = await move(stops)
        if (rest !== undefined) return rest
      }
    },
    /** Repeats text that may not have been processed. */
    repeatUnprocessed() {
      for (const record of conversation.unsaid) say(record)
    },
    notice: (text: string) => void notices.push(text),
  }
}

interface CallResult {
  readonly text: string
  readonly isError: boolean
  readonly handedOut: readonly string[]
}

/**
 * Executes a tool call through the one door in the agent's name; the result is the usual response block
 * (S1.15).
 */
async function executeCall(agent: AgentStart, call: ToolCall, key: string): Promise<CallResult> {
  const invalid = call.invalid ?? (agent.command === undefined ? 'no tools are available' : undefined)
  if (invalid !== undefined) return { text: invalidCall(invalid), isError: true, handedOut: [] }
  const { receipt, handedOut } = await agent.command!({ type: call.name, fields: { ...call.input } }, key)
  return {
    text: renderResponse(call.name, receipt),
    isError: receipt.status === 'error' || receipt.status === 'blocked',
    handedOut,
  }
}
