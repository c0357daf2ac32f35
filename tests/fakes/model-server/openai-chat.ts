import {
  type Answer,
  type Json,
  type StreamEvent,
  type Turn,
  textOf,
  type WireFormat,
} from './wire-format.ts'

type Body = {
  model?: string
  messages?: { role: string; content?: unknown }[]
  tools?: { function: { name: string } }[]
  response_format?: { json_schema?: { schema?: unknown } }
}

const FROM: Record<string, Turn['from'] | undefined> = { user: 'user', assistant: 'model', tool: 'tool' }

function turnsOf({ messages = [] }: Body): Turn[] {
  return messages.flatMap(({ role, content }): Turn[] => {
    const from = FROM[role]
    return from ? [{ from, text: textOf(content) }] : []
  })
}

const toolCallsOf = ({ toolCalls }: Answer) =>
  toolCalls.map(({ id, name, input }, index) => ({
    index,
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }))

const finishReason = (answer: Answer) => (answer.toolCalls.length > 0 ? 'tool_calls' : 'stop')

const usageOf = ({ usage }: Answer): Json => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  prompt_tokens_details: { cached_tokens: usage.cached },
})

const base = ({ id, model }: Answer, object: string): Json => ({
  id: `chatcmpl-${id}`,
  object,
  created: Math.floor(Date.now() / 1000),
  model,
})

function* stream(answer: Answer): Iterable<StreamEvent> {
  const chunk = (delta: Json, finish_reason: string | null = null, more: Json = {}) => ({
    data: {
      ...base(answer, 'chat.completion.chunk'),
      choices: [{ index: 0, delta, finish_reason }],
      ...more,
    },
  })
  yield chunk({ role: 'assistant', content: '' })
  if (answer.thinking) yield chunk({ reasoning_content: answer.thinking })
  for (const content of answer.pieces) yield { ...chunk({ content }), isPiece: true }
  for (const call of toolCallsOf(answer)) yield chunk({ tool_calls: [call] })
  yield chunk({}, finishReason(answer), { usage: usageOf(answer) })
  yield { data: '[DONE]' }
}

export const openaiChat: WireFormat = {
  name: 'openai-chat',
  route: (path) => (path.endsWith('/chat/completions') ? 'answer' : undefined),
  wantsStream: (_path, body) => body.stream === true,
  read(json) {
    const body = json as Body
    const system = (body.messages ?? []).filter(({ role }) => role === 'system' || role === 'developer')
    return {
      ...(body.model === undefined ? {} : { model: body.model }),
      system: system.map(({ content }) => textOf(content)).join('\n'),
      turns: turnsOf(body),
      tools: (body.tools ?? []).map((tool) => ({ name: tool.function.name })),
      schema: body.response_format?.json_schema?.schema,
    }
  },
  whole(answer) {
    const { text, thinking } = answer
    const calls = toolCallsOf(answer)
    const message = {
      role: 'assistant',
      content: text,
      ...(thinking ? { reasoning_content: thinking } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    }
    return {
      ...base(answer, 'chat.completion'),
      choices: [{ index: 0, message, finish_reason: finishReason(answer) }],
      usage: usageOf(answer),
    }
  },
  stream,
  count: (tokens) => ({ total_tokens: tokens }),
  error: ({ status, code }, message) => ({
    error: { message, type: status === 429 ? 'rate_limit_exceeded' : 'server_error', code: code ?? null },
  }),
}
