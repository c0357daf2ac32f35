import type { ModelError, ModelRequest, Tool, Usage } from './play.ts'

export type Json = Record<string, unknown>

/** One of the model vendors' HTTP protocols. A new one is one file that implements this. */
export interface WireFormat {
  readonly name: string
  /** The kind of request at that path (without its query), or undefined if this format doesn't have it. */
  route(path: string): 'answer' | 'count' | undefined
  wantsStream(path: string, body: Json): boolean
  read(body: Json): Read
  whole(answer: Answer): Json
  stream(answer: Answer): Iterable<StreamEvent>
  count(tokens: number): Json
  error(error: ModelError, message: string): Json
}

/** The part of a request that comes from the body; formats leave out what they can't express. */
export interface Read {
  readonly model?: string
  readonly system: string
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly schema: unknown
}

/** One entry of the conversation, in order. */
export interface Turn {
  readonly from: 'user' | 'model' | 'tool'
  readonly text: string
}

/** A reply with every default filled in and every tool under the program's name for it. */
export interface Answer {
  readonly id: string
  readonly model: string
  readonly thinking: string
  readonly text: string
  /** The pieces of `text` to stream. */
  readonly pieces: readonly string[]
  readonly toolCalls: readonly AnswerToolCall[]
  readonly usage: Usage
}

export interface AnswerToolCall extends Tool {
  readonly id: string
  readonly input: object
}

export interface StreamEvent {
  readonly event?: string
  readonly data: Json | '[DONE]'
  /** A piece of the text, followed by a pause. */
  readonly isPiece?: true
}

/** Blocks that programs add to the user's text. */
const INJECTED =
  /^\s*(?:<(?:system-reminder|environment_context|user_instructions|permissions|turn_aborted|session_context|hook_context|skills_instructions|apps_instructions)\b|# AGENTS\.md instructions)/

/** The answer of a hook at the end of a turn begins the next turn, in the role of the user. */
const ANSWER_OF_A_HOOK = /^\s*<system-reminder>\s*Stop hook additional context: /

export function requestOf(read: Read, agent: string | undefined): ModelRequest {
  const { turns, tools, schema, system } = read
  const isInjected = (turn: Turn) =>
    turn.from === 'user' && INJECTED.test(turn.text) && !ANSWER_OF_A_HOOK.test(turn.text)
  const spoken = turns.filter((turn) => turn.text.trim() !== '' && !isInjected(turn))
  const sinceModel = turns.slice(turns.findLastIndex((turn) => turn.from === 'model') + 1)
  const textOf = (from: Turn['from']) =>
    sinceModel.filter((turn) => turn.from === from && !isInjected(turn)).map((turn) => turn.text)
  return {
    agent,
    model: read.model ?? '',
    system,
    userText: textOf('user').join('\n').trim(),
    prompt: spoken.findLast((turn) => turn.from === 'user')?.text ?? '',
    reminders: turns.filter(isInjected).map((turn) => turn.text),
    toolResults: textOf('tool'),
    tools,
    side: tools.length === 0 || schema !== undefined,
    schema,
  }
}

/** Content is a string or a list of blocks in every format that came from OpenAI or Anthropic. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return content == null ? '' : JSON.stringify(content)
  return content
    .map((block: { text?: unknown }) => (typeof block.text === 'string' ? block.text : ''))
    .join('')
}
