import type { Tool } from './play.ts'
import {
  type Answer,
  type Json,
  type StreamEvent,
  type Turn,
  textOf,
  type WireFormat,
} from './wire-format.ts'

type Block = { type: string; text?: string; content?: unknown }
type Body = {
  model?: string
  system?: unknown
  messages?: { role: string; content: string | Block[] }[]
  tools?: { name: string }[]
  output_config?: { format?: { schema?: unknown } }
}

function turnsOf({ messages = [] }: Body): Turn[] {
  return messages.flatMap(({ role, content }): Turn[] => {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    if (role === 'assistant') return [{ from: 'model', text: textOf(blocks) }]
    if (role !== 'user') return []
    return blocks.flatMap((block): Turn[] => {
      if (block.type === 'tool_result') return [{ from: 'tool', text: textOf(block.content) }]
      return block.type === 'text' ? [{ from: 'user', text: block.text ?? '' }] : []
    })
  })
}

/** Claude Code also sends system entries among the messages. */
function systemOf({ system, messages = [] }: Body): string {
  const among = messages.filter(({ role }) => role === 'system').map(({ content }) => textOf(content))
  return [textOf(system), ...among].filter(Boolean).join('\n')
}

function blocksOf({ thinking, text, toolCalls }: Answer): Json[] {
  return [
    ...(thinking ? [{ type: 'thinking', thinking, signature: 'c2NyaXB0ZWQ=' }] : []),
    ...(text ? [{ type: 'text', text }] : []),
    ...toolCalls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
  ]
}

const stopReason = (answer: Answer) => (answer.toolCalls.length > 0 ? 'tool_use' : 'end_turn')

function usageOf({ usage }: Answer): Json {
  return {
    input_tokens: usage.input - usage.cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cached,
    output_tokens: usage.output,
  }
}

function message(answer: Answer, content: Json[], stop: string | null): Json {
  const { id, model } = answer
  const usage = usageOf(answer)
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content,
    stop_reason: stop,
    stop_sequence: null,
    usage,
  }
}

function* stream(answer: Answer): Iterable<StreamEvent> {
  const event = (type: string, data: Json) => ({ event: type, data: { type, ...data } })
  yield event('message_start', { message: message(answer, [], null) })
  for (const [index, block] of blocksOf(answer).entries()) {
    const delta = (change: Json) => event('content_block_delta', { index, delta: change })
    const start = (empty: Json) => event('content_block_start', { index, content_block: empty })
    if (block.type === 'text') {
      yield start({ type: 'text', text: '' })
      for (const text of answer.pieces) yield { ...delta({ type: 'text_delta', text }), isPiece: true }
    } else if (block.type === 'thinking') {
      yield start({ type: 'thinking', thinking: '', signature: '' })
      yield delta({ type: 'thinking_delta', thinking: block.thinking })
      yield delta({ type: 'signature_delta', signature: block.signature })
    } else {
      yield start({ ...block, input: {} })
      yield delta({ type: 'input_json_delta', partial_json: JSON.stringify(block.input) })
    }
    yield event('content_block_stop', { index })
  }
  const delta = { stop_reason: stopReason(answer), stop_sequence: null }
  yield event('message_delta', { delta, usage: { output_tokens: answer.usage.output } })
  yield event('message_stop', {})
}

const ERROR_TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

export const anthropicMessages: WireFormat = {
  name: 'anthropic-messages',
  route(path) {
    if (path.endsWith('/messages/count_tokens')) return 'count'
    return path.endsWith('/v1/messages') ? 'answer' : undefined
  },
  wantsStream: (_path, body) => body.stream === true,
  read(json) {
    const body = json as Body
    return {
      ...(body.model === undefined ? {} : { model: body.model }),
      system: systemOf(body),
      turns: turnsOf(body),
      tools: (body.tools ?? []).map(({ name }): Tool => ({ name })),
      schema: body.output_config?.format?.schema,
    }
  },
  whole: (answer) => message(answer, blocksOf(answer), stopReason(answer)),
  stream,
  count: (tokens) => ({ input_tokens: tokens }),
  error: ({ status }, message) => ({
    type: 'error',
    error: { type: ERROR_TYPES[status] ?? 'api_error', message },
  }),
}
