import {
  type Answer,
  type Json,
  type StreamEvent,
  type Turn,
  textOf,
  type WireFormat,
} from './wire-format.ts'

type Part = {
  text?: string
  thought?: boolean
  functionCall?: unknown
  functionResponse?: { response?: unknown }
}
type Body = {
  systemInstruction?: { parts?: Part[] }
  contents?: { role?: string; parts?: Part[] }[]
  tools?: { functionDeclarations?: { name: string }[] }[]
  generationConfig?: { responseJsonSchema?: unknown; responseSchema?: unknown }
}

function turnsOf({ contents = [] }: Body): Turn[] {
  return contents.flatMap(({ role, parts = [] }): Turn[] => {
    if (role === 'model') return [{ from: 'model', text: textOf(parts) }]
    return parts.map((part): Turn => {
      if (part.functionResponse) return { from: 'tool', text: resultText(part.functionResponse.response) }
      return { from: 'user', text: part.text ?? '' }
    })
  })
}

function resultText(response: unknown): string {
  const { output } = (response ?? {}) as { output?: unknown }
  return typeof output === 'string' ? output : JSON.stringify(response ?? null)
}

function response(answer: Answer, parts: Json[], isLast: boolean): Json {
  const { id, model, usage } = answer
  const usageMetadata = {
    promptTokenCount: usage.input,
    cachedContentTokenCount: usage.cached,
    candidatesTokenCount: usage.output,
    totalTokenCount: usage.input + usage.output,
  }
  return {
    candidates: [
      { index: 0, content: { role: 'model', parts }, ...(isLast ? { finishReason: 'STOP' } : {}) },
    ],
    ...(isLast ? { usageMetadata } : {}),
    modelVersion: model,
    responseId: id,
  }
}

const thoughtsOf = ({ thinking }: Answer) => (thinking ? [{ text: thinking, thought: true }] : [])
const callsOf = ({ toolCalls }: Answer) =>
  toolCalls.map(({ id, name, input }) => ({ functionCall: { id, name, args: input } }))

function* stream(answer: Answer): Iterable<StreamEvent> {
  const thoughts = thoughtsOf(answer)
  if (thoughts.length > 0) yield { data: response(answer, thoughts, false) }
  for (const text of answer.pieces) yield { data: response(answer, [{ text }], false), isPiece: true }
  yield { data: response(answer, callsOf(answer), true) }
}

const STATUSES: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
}

export const gemini: WireFormat = {
  name: 'gemini',
  route(path) {
    if (path.endsWith(':countTokens')) return 'count'
    return /:(?:streamG|g)enerateContent$/.test(path) ? 'answer' : undefined
  },
  wantsStream: (path) => path.endsWith(':streamGenerateContent'),
  read(json) {
    const body = json as Body
    return {
      system: textOf(body.systemInstruction?.parts ?? ''),
      turns: turnsOf(body),
      tools: (body.tools ?? [])
        .flatMap((tool) => tool.functionDeclarations ?? [])
        .map(({ name }) => ({ name })),
      schema: body.generationConfig?.responseJsonSchema ?? body.generationConfig?.responseSchema,
    }
  },
  whole(answer) {
    const parts = [...thoughtsOf(answer), ...(answer.text ? [{ text: answer.text }] : []), ...callsOf(answer)]
    return response(answer, parts, true)
  },
  stream,
  count: (tokens) => ({ totalTokens: tokens }),
  error: ({ status }, message) => ({
    error: { code: status, message, status: STATUSES[status] ?? 'INTERNAL' },
  }),
}
