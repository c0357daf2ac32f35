import { z } from 'zod'

/** What a session/update tells us; everything else it may hold is left alone. */
export type Update =
  /** The model's own words (C4). */
  | { kind: 'speech'; text: string; message: string | undefined }
  /** It thinks, plans, goes on with a tool: signs of life, not words. */
  | { kind: 'work' }
  /** It begins to use a tool: what it was saying is said. */
  | { kind: 'tool'; title: string }
  /** What was said to it, replayed or echoed. */
  | { kind: 'heard'; text: string }
  | { kind: 'usage'; used: number; size: number; model: string | undefined }
  | { kind: 'compacted' }
  | { kind: 'remark'; text: string }

const Chunk = z.object({
  content: z.object({ type: z.string(), text: z.string().optional() }),
  messageId: z.string().nullish(),
})
const Tool = z.object({ title: z.string() })
const UsageUpdate = z.object({
  used: z.number().nonnegative(),
  size: z.number().positive(),
  _meta: z.object({ '_claude/model': z.string().optional() }).nullish().catch(undefined),
})
const Compaction = z.object({ status: z.literal('completed') })
const Remark = z.object({ title: z.string(), description: z.string().nullish() })
/** Claude's adapter marks what a helper of the agent's says or does: no words of the agent's own. */
const OfHelper = z.object({ _meta: z.object({ claudeCode: z.object({ parentToolUseId: z.string() }) }) })

const Notification = z.object({ sessionId: z.string(), update: z.looseObject({ sessionUpdate: z.string() }) })

/** Undefined for what is malformed or of no interest. */
export function readUpdate(params: unknown): { sessionId: string; update: Update } | undefined {
  const parsed = Notification.safeParse(params)
  if (!parsed.success) return undefined
  const update = read(parsed.data.update)
  return update === undefined ? undefined : { sessionId: parsed.data.sessionId, update }
}

function read(raw: { sessionUpdate: string }): Update | undefined {
  switch (raw.sessionUpdate) {
    case 'agent_message_chunk': {
      const chunk = Chunk.safeParse(raw)
      if (!chunk.success) return undefined
      if (OfHelper.safeParse(raw).success) return { kind: 'work' }
      const text = chunk.data.content.type === 'text' ? (chunk.data.content.text ?? '') : ''
      return { kind: 'speech', text, message: chunk.data.messageId ?? undefined }
    }
    case 'user_message_chunk': {
      const chunk = Chunk.safeParse(raw)
      return chunk.success ? { kind: 'heard', text: chunk.data.content.text ?? '' } : undefined
    }
    case 'agent_thought_chunk':
    case 'plan':
    case 'tool_call_update':
      return { kind: 'work' }
    case 'tool_call': {
      const tool = Tool.safeParse(raw)
      if (!tool.success || OfHelper.safeParse(raw).success) return { kind: 'work' }
      return { kind: 'tool', title: tool.data.title }
    }
    case 'usage_update': {
      const usage = UsageUpdate.safeParse(raw)
      if (!usage.success) return undefined
      const { used, size, _meta } = usage.data
      return { kind: 'usage', used, size, model: _meta?.['_claude/model'] }
    }
    case 'compaction_update':
      return Compaction.safeParse(raw).success ? { kind: 'compacted' } : undefined
    case 'notice': {
      const remark = Remark.safeParse(raw)
      if (!remark.success) return undefined
      const { title, description } = remark.data
      return { kind: 'remark', text: description ? `${title}: ${description}` : title }
    }
    default:
      return undefined
  }
}
