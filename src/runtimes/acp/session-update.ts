import { z } from 'zod'
import type { Usage } from '../runtime.ts'

/** The parts of a session/update that we use. */
export type AcpUpdate =
  /** The model's own text (C4). */
  | { kind: 'speech'; text: string; message: string | undefined }
  /** Thinking, planning, tool progress: activity, but no text. */
  | { kind: 'work' }
  /** A tool call starts, which ends the current text. */
  | { kind: 'tool'; title: string }
  /** User text, replayed or echoed. */
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
/** Claude's adapter marks the output of subagents, which is not the agent's own text. */
const OfHelper = z.object({ _meta: z.object({ claudeCode: z.object({ parentToolUseId: z.string() }) }) })

const Notification = z.object({ sessionId: z.string(), update: z.looseObject({ sessionUpdate: z.string() }) })

/** Undefined if malformed or irrelevant. */
export function readUpdate(params: unknown): { sessionId: string; update: AcpUpdate } | undefined {
  const parsed = Notification.safeParse(params)
  if (!parsed.success) return undefined
  const update = read(parsed.data.update)
  return update === undefined ? undefined : { sessionId: parsed.data.sessionId, update }
}

function read(raw: { sessionUpdate: string }): AcpUpdate | undefined {
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

const count = z.number().nonnegative().nullish()
const PromptUsage = z.object({
  usage: z
    .object({ inputTokens: count, outputTokens: count, cachedReadTokens: count, cachedWriteTokens: count })
    .nullish()
    .catch(undefined),
  // Gemini's field for the same.
  _meta: z
    .object({ quota: z.object({ token_count: z.object({ input_tokens: count, output_tokens: count }) }) })
    .nullish()
    .catch(undefined),
})

/** Tokens of a turn, from the response to session/prompt, if the agent reports them (C26). */
export function spentBy(response: unknown, key: string): Usage | undefined {
  const parsed = PromptUsage.safeParse(response)
  if (!parsed.success) return undefined
  const { usage, _meta } = parsed.data
  const other = _meta?.quota.token_count
  if (usage == null && other == null) return undefined
  return {
    spent: {
      key,
      input: usage?.inputTokens ?? other?.input_tokens ?? 0,
      output: usage?.outputTokens ?? other?.output_tokens ?? 0,
      cacheRead: usage?.cachedReadTokens ?? 0,
      cacheWrite: usage?.cachedWriteTokens ?? 0,
    },
  }
}
