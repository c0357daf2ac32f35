import type { ModelMessage } from 'ai'
import type { ChatMessage, ToolCall, ToolResult } from '../llm.ts'

type AssistantParts = Exclude<Extract<ModelMessage, { role: 'assistant' }>['content'], string>

/** Converts a conversation into the library's format. */
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
export function partsToKeep(responses: readonly ModelMessage[]): unknown {
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
