import type { ModelMessage } from 'ai'
import type { ChatMessage, ToolCall, ToolResult } from '../llm.ts'

type AssistantParts = Exclude<Extract<ModelMessage, { role: 'assistant' }>['content'], string>

/** A conversation as the library takes it. */
export function messagesFor(messages: readonly ChatMessage[]): ModelMessage[] {
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

/** What the provider itself said, with its signatures; made up from text and calls where that was not kept. */
function assistantParts({ text, calls, parts }: Extract<ChatMessage, { role: 'assistant' }>): AssistantParts {
  if (Array.isArray(parts) && parts.length > 0) return (parts as AssistantParts).filter(isNotBlank)
  return [{ type: 'text' as const, text }, ...calls.map(callPart)].filter(isNotBlank)
}

/** Anthropic refuses text without a word in it. */
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

/** Undefined when there is nothing in it that text and calls do not say. */
export function partsToKeep(responses: readonly ModelMessage[]): unknown {
  const content = responses.find(({ role }) => role === 'assistant')?.content
  if (!Array.isArray(content)) return undefined
  // As it will come back from a file; what is undefined is gone.
  const parts = JSON.parse(JSON.stringify(content)) as Record<string, unknown>[]
  const isPlain = parts.every(
    ({ type, providerOptions }) => (type === 'text' || type === 'tool-call') && providerOptions === undefined,
  )
  if (isPlain) return undefined
  return parts.map((part) => (part.type === 'tool-call' ? { ...part, input: asObject(part.input) } : part))
}

/** What a model wrote instead of parameters would be refused by its own provider. */
function asObject(input: unknown): unknown {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {}
}
