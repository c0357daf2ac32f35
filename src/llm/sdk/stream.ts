import { type FinishReason, jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from 'ai'
import type { ChatMessage, ModelFailure, StreamCall, Streamed, ToolCall, ToolResult } from '../llm.ts'
import type { ModelConnection } from './connection.ts'
import { failure, refusalOf } from './failure.ts'

/** Sends one request. Tools aren't executed here, because the caller records them first. */
export async function stream(
  connection: ModelConnection,
  call: StreamCall,
): Promise<Streamed | ModelFailure> {
  return await connection.attempt(async (attempt): Promise<Streamed | ModelFailure> => {
    const result = streamText({
      ...connection.common,
      ...(call.temperature === undefined ? {} : { temperature: call.temperature }),
      instructions: call.system,
      messages: messagesFor(call.messages) as ModelMessage[],
      tools: toolsFor(call),
      abortSignal: attempt.signal,
      // The default would print errors.
      onError() {},
    })
    // Also rejects when the stream fails, which the loop below handles.
    quiet(result.responseMessages)
    const texts: string[] = []
    const calls: ToolCall[] = []
    let isComplete = false
    let finish: FinishReason = 'other'
    for await (const part of result.stream) {
      attempt.alive()
      switch (part.type) {
        case 'reasoning-start':
        case 'tool-input-start':
          begin()
          break
        case 'text-start':
          // Separate text blocks: a command at the end of one must not run into the next.
          if (texts.length > 0) say('\n\n')
          break
        case 'text-delta':
          if (part.text === '') break
          begin()
          say(part.text)
          break
        case 'tool-call':
          begin()
          calls.push(callOf(part))
          break
        case 'error':
          throw part.error
        case 'abort':
          throw new Error(part.reason ?? 'aborted')
        case 'finish-step':
          connection.spent(part.usage)
          isComplete = true
          // Some libraries end a broken stream without an error.
          finish = isReason(part) ? part.finishReason : 'error'
      }
    }
    if (!isComplete || finish === 'error') return broken(connection)
    const refusal = refusalOf(finish, connection.settings)
    if (refusal !== undefined) return refusal
    const parts = partsToKeep(await result.responseMessages)
    return {
      ok: true,
      text: texts.join(''),
      calls,
      ...(parts === undefined ? {} : { parts }),
      finish: finish === 'length' ? 'length' : 'stop',
    }

    function begin() {
      if (attempt.isBegun) return
      attempt.isBegun = true
      call.onBegin?.()
    }

    function say(text: string) {
      texts.push(text)
      call.onText?.(text)
    }
  })
}

function isReason({
  finishReason,
  rawFinishReason,
}: {
  finishReason: FinishReason
  rawFinishReason: unknown
}) {
  return finishReason !== 'other' || rawFinishReason !== undefined
}

function broken({ settings: { provider, model } }: ModelConnection): ModelFailure {
  return failure('unavailable', `${provider} (${model}) ended its answer prematurely`)
}

function toolsFor({ tools }: StreamCall): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, schema }) => [
      name,
      // The caller validates the input, with errors that a model understands.
      tool({ description, inputSchema: jsonSchema(schema), strict: false }),
    ]),
  )
}

interface StreamedCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
  readonly invalid?: boolean | undefined
}

function callOf({ toolCallId: id, toolName: name, input, invalid }: StreamedCall): ToolCall {
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input)
  if (isObject && invalid !== true) return { id, name, input: input as ToolCall['input'] }
  const why = isObject ? `there is no tool "${name.slice(0, 100)}"` : 'its parameters are not a JSON object'
  return { id, name, input: isObject ? (input as ToolCall['input']) : {}, invalid: why }
}

function quiet(promise: PromiseLike<unknown>) {
  promise.then(undefined, () => {})
}

type AssistantParts = Exclude<Extract<ModelMessage, { role: 'assistant' }>['content'], string>

/** Converts a conversation into the library's format. */
function messagesFor(messages: readonly ChatMessage[]): ModelMessage[] {
  return messages.map(messageFor)
}

function messageFor(message: ChatMessage): ModelMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: message.text }
    case 'assistant':
      return { role: 'assistant', content: assistantParts(message) }
    case 'tool':
      return { role: 'tool', content: message.results.map(resultPart) }
  }
}

/** The provider's own parts with their signatures, or parts built from text and calls. */
function assistantParts({ text, calls, parts }: Extract<ChatMessage, { role: 'assistant' }>): AssistantParts {
  if (Array.isArray(parts) && parts.length > 0) return (parts as AssistantParts).filter(isNotBlank)
  return [{ type: 'text' as const, text }, ...calls.map(callPart)].filter(isNotBlank)
}

/** Anthropic rejects blank text. */
function isNotBlank(part: { type: string; text?: string }): boolean {
  return part.type !== 'text' || part.text?.trim() !== ''
}

function callPart({ id, name, input }: ToolCall) {
  return { type: 'tool-call' as const, toolCallId: id, toolName: name, input }
}

function resultPart({ id, name, text, isError }: ToolResult) {
  const type = isError ? ('error-text' as const) : ('text' as const)
  return { type: 'tool-result' as const, toolCallId: id, toolName: name, output: { type, value: text } }
}

/** Undefined if text and calls contain everything. */
function partsToKeep(responses: readonly ModelMessage[]): unknown {
  const content = responses.find(({ role }) => role === 'assistant')?.content
  if (!Array.isArray(content)) return undefined
  // Match the form after storage in a file, where undefined fields are gone.
  const parts = JSON.parse(JSON.stringify(content)) as Record<string, unknown>[]
  const isPlain = parts.every(
    ({ type, providerOptions }) => (type === 'text' || type === 'tool-call') && providerOptions === undefined,
  )
  if (isPlain) return undefined
  return parts.map((part) => (part.type === 'tool-call' ? { ...part, input: asObject(part.input) } : part))
}

/** Providers reject parameters that aren't objects, even their own model's. */
function asObject(input: unknown): unknown {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {}
}
