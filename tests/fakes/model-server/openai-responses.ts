import type { Tool } from './play.ts'
import {
  type Answer,
  type Json,
  type StreamEvent,
  type Turn,
  textOf,
  type WireFormat,
} from './wire-format.ts'

type WireTool = { type: string; name?: string; tools?: { name: string }[] }
type Item = { type?: string; role?: string; content?: unknown; output?: unknown; tools?: WireTool[] }
type Body = {
  model?: string
  instructions?: string
  input?: string | Item[]
  tools?: WireTool[]
  text?: { format?: { type?: string; schema?: unknown } }
}

const itemsOf = ({ input = [] }: Body): Item[] =>
  typeof input === 'string' ? [{ role: 'user', content: input }] : input

function turnsOf(body: Body): Turn[] {
  return itemsOf(body).flatMap((item): Turn[] => {
    if (item.type?.endsWith('_call_output')) return [{ from: 'tool', text: textOf(item.output) }]
    if (item.type?.endsWith('_call') || item.type === 'reasoning') return [{ from: 'model', text: '' }]
    if (item.role === 'assistant') return [{ from: 'model', text: textOf(item.content) }]
    if (item.role !== 'user') return []
    // One block each: Codex puts its blocks beside the user's.
    const blocks = Array.isArray(item.content) ? item.content : [item.content]
    return blocks.map((block): Turn => ({ from: 'user', text: textOf([block].flat()) || textOf(block) }))
  })
}

function systemOf(body: Body): string {
  const developer = itemsOf(body).filter(({ role }) => role === 'developer' || role === 'system')
  return [body.instructions ?? '', ...developer.map(({ content }) => textOf(content))].join('\n')
}

/** For newer models Codex passes the tools in an item of the input. */
function toolsOf(body: Body): Tool[] {
  const tools = [...(body.tools ?? []), ...itemsOf(body).flatMap((item) => item.tools ?? [])]
  return tools.flatMap((tool): Tool[] => {
    if (tool.type !== 'namespace') return [{ name: tool.name ?? tool.type }]
    return (tool.tools ?? []).map(({ name }) => ({ name, namespace: tool.name! }))
  })
}

function outputOf({ id, thinking, text, toolCalls }: Answer): Json[] {
  return [
    ...(thinking
      ? [{ type: 'reasoning', id: `rs_${id}`, summary: [{ type: 'summary_text', text: thinking }] }]
      : []),
    ...(text
      ? [
          {
            type: 'message',
            id: `msg_${id}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ]
      : []),
    ...toolCalls.map(({ id, name, namespace, input }) => ({
      type: 'function_call',
      id: `fc_${id}`,
      call_id: id,
      status: 'completed',
      name,
      ...(namespace === undefined ? {} : { namespace }),
      arguments: JSON.stringify(input),
    })),
  ]
}

function response(answer: Answer, status: string, output: Json[]): Json {
  const { id, model, usage } = answer
  const spent = {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  }
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    model,
    status,
    output,
    ...(output.length ? { usage: spent } : {}),
  }
}

function* stream(answer: Answer): Iterable<StreamEvent> {
  const event = (type: string, data: Json) => ({ event: type, data: { type, ...data } })
  const output = outputOf(answer)
  yield event('response.created', { response: response(answer, 'in_progress', []) })
  for (const [output_index, item] of output.entries()) {
    const isMessage = item.type === 'message'
    const begun = isMessage ? { ...item, status: 'in_progress', content: [] } : item
    yield event('response.output_item.added', { output_index, item: begun })
    for (const delta of isMessage ? answer.pieces : [])
      yield {
        ...event('response.output_text.delta', { item_id: item.id, output_index, content_index: 0, delta }),
        isPiece: true,
      }
    yield event('response.output_item.done', { output_index, item })
  }
  yield event('response.completed', { response: response(answer, 'completed', output) })
}

export const openaiResponses: WireFormat = {
  name: 'openai-responses',
  route: (path) => (path.endsWith('/responses') ? 'answer' : undefined),
  wantsStream: (_path, body) => body.stream === true,
  read(json) {
    const body = json as Body
    return {
      ...(body.model === undefined ? {} : { model: body.model }),
      system: systemOf(body),
      turns: turnsOf(body),
      tools: toolsOf(body),
      schema: body.text?.format?.schema,
    }
  },
  whole: (answer) => response(answer, 'completed', outputOf(answer)),
  stream,
  count: (tokens) => ({ input_tokens: tokens }),
  error: ({ status, code }, message) => ({
    error: { message, type: status === 429 ? 'rate_limit_exceeded' : 'server_error', code: code ?? null },
  }),
}
