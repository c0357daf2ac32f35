import type { ModelReply, ModelRequest, ToolCall } from './play.ts'
import { toolFor } from './tool-name.ts'
import type { Answer } from './wire-format.ts'

let ids = 0

/** Fills in every default. A tool that the program doesn't offer becomes text, so that the test fails visibly. */
export function complete(request: ModelRequest, reply: ModelReply, size: number): Answer {
  const id = `${process.pid.toString(36)}_${(ids++).toString(36)}`
  const calls = (reply.toolCalls ?? []).map((call, n) => ({
    call,
    id: `call_${id}_${n}`,
    tool: toolFor(call, request.tools),
  }))
  const missing = calls.filter(({ tool }) => !tool).map(({ call }) => `NO SUCH TOOL: ${nameOf(call)}`)
  const text = [reply.text ?? '', ...missing].filter(Boolean).join('\n')
  return {
    id,
    model: request.model,
    thinking: reply.thinking ?? '',
    text,
    pieces: piecesOf(text, reply.chunkSize ?? 40),
    toolCalls: calls.flatMap(({ id, tool }) => (tool ? [{ ...tool, id }] : [])),
    usage: { input: Math.ceil(size / 4), output: Math.ceil(text.length / 4) + 1, cached: 0, ...reply.usage },
  }
}

const nameOf = (call: ToolCall) => ('mcp' in call ? call.mcp : 'shell' in call ? 'shell' : call.name)

/** Splits by code points: half a surrogate pair isn't text. */
function piecesOf(text: string, size: number): string[] {
  const points = [...text]
  return Array.from({ length: Math.ceil(points.length / size) }, (_, n) =>
    points.slice(n * size, (n + 1) * size).join(''),
  )
}
