import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { MessageLocation, Usage } from '../runtime.ts'

/** The parts of a session/update that we use. */
export type AcpUpdate =
  /** The model's own text (C4). */
  | { kind: 'text'; text: string; message: string | undefined }
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
const FromSubagent = z.object({ _meta: z.object({ claudeCode: z.object({ parentToolUseId: z.string() }) }) })

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
      if (FromSubagent.safeParse(raw).success) return { kind: 'work' }
      const text = chunk.data.content.type === 'text' ? (chunk.data.content.text ?? '') : ''
      return { kind: 'text', text, message: chunk.data.messageId ?? undefined }
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
      if (!tool.success || FromSubagent.safeParse(raw).success) return { kind: 'work' }
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

const MARKER = /\[ORCHUB MESSAGE (msg_\d{1,16})\]/g
/** Longer than a marker, since a replay may split one. */
const OVERLAP = 64
/** Older ids than this many count as unknown. */
const REMEMBERED = 5000

type History = ReturnType<typeof createHistory>

/**
 * Messages the agent received, as far as this process or the agent's own replay shows (C25). `before`: whether the agent
 * may have received anything before this process.
 */
export function createHistory(before: 'nothing' | 'something') {
  const accepted = new Map<string, string>()
  const doubtful = new Set<string>()
  let knowsAll = before === 'nothing'
  let source = 'this is a new conversation, and'
  let overlap = ''

  function remember(id: string, evidence: string) {
    accepted.set(id, evidence)
    if (accepted.size <= REMEMBERED) return
    accepted.delete(accepted.keys().next().value!)
    knowsAll = false
  }

  return {
    /** A turn with these ids was written to the pipe. */
    wrote(ids: readonly string[]) {
      for (const id of ids) doubtful.add(id)
    },
    /** The turn was certainly accepted, or certainly not. */
    settle(ids: readonly string[], isTaken: boolean) {
      for (const id of ids) {
        doubtful.delete(id)
        if (isTaken) remember(id, 'the agent accepted it in this session')
      }
    },
    /** A chunk of the user text that the agent replays. */
    replay(text: string) {
      const window = overlap + text
      for (const [, id] of window.matchAll(MARKER)) remember(id!, 'it is in the history the agent replayed')
      overlap = window.slice(-OVERLAP)
    },
    /** The replay has ended and covered the whole conversation. */
    replayed() {
      knowsAll = true
      source = 'it is not in the history the agent replayed, and'
    },
    locate(id: string): MessageLocation {
      const evidence = accepted.get(id)
      if (evidence !== undefined) return { at: 'submitted', evidence }
      if (doubtful.has(id))
        return { at: 'unknown', evidence: 'it was written, but the agent gave no evidence of it' }
      if (knowsAll) return { at: 'absent', evidence: `${source} it was not written since` }
      return { at: 'unknown', evidence: 'the agent does not show messages from before this session' }
    },
  }
}

/**
 * The replay of a resumed conversation: evidence of what the agent received, but no new text of the agent
 * (C4).
 */
export function createReplay(isOn: boolean, history: History, clock: Clock, quietMs: number) {
  let count = 0
  return {
    get isOn() {
      return isOn
    },
    take(update: AcpUpdate) {
      count += 1
      if (update.kind === 'heard') history.replay(update.text)
    },
    /** Resolves after a quiet period: some agents answer session/load before the replay ends. */
    async over(isWhole: boolean): Promise<void> {
      for (let before = -1; isWhole && before !== count; ) {
        before = count
        await new Promise<void>((resolve) => clock.after(quietMs, resolve))
      }
      if (isWhole) history.replayed()
      isOn = false
    },
  }
}
