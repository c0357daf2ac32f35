/** The parts of Codex 0.166's app-server messages that we read. */
import { z } from 'zod'

export const ThreadStatus = z.union([
  z.object({ type: z.literal('active'), activeFlags: z.array(z.string()) }),
  z.object({ type: z.enum(['idle', 'notLoaded', 'systemError']) }),
])
export type ThreadStatus = z.output<typeof ThreadStatus>

export const Thread = z.object({
  id: z.string(),
  /** Codex asks the model for titles in threads of this kind. */
  ephemeral: z.boolean(),
  /** Set for an agent that Codex itself spawned. */
  parentThreadId: z.string().nullish(),
  status: ThreadStatus,
  path: z.string().nullish(),
  /** Seconds. */
  createdAt: z.number(),
})
export type Thread = z.output<typeof Thread>

/** Items of known types are parsed further; for others, only their presence matters. */
export const Item = z.looseObject({
  type: z.string(),
  id: z.string(),
  completedAtMs: z.number().nullish(),
})
export type Item = z.output<typeof Item>

export const UserMessage = z.object({
  clientId: z.string().nullish(),
  content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })),
})

export const AgentMessage = z.object({ text: z.string() })

export const CommandExecution = z.object({
  source: z.string(),
  /** The terminal it runs in. */
  processId: z.string().nullish(),
})

export const TurnRecord = z.object({
  id: z.string(),
  status: z.enum(['completed', 'interrupted', 'failed', 'inProgress']),
  error: z.object({ message: z.string() }).nullish(),
})
export type TurnRecord = z.output<typeof TurnRecord>

const Tokens = z.object({
  totalTokens: z.number(),
  inputTokens: z.number(),
  cachedInputTokens: z.number(),
  cacheWriteInputTokens: z.number().default(0),
  outputTokens: z.number(),
})

/** Notifications by method. */
export const NOTICES = {
  error: z.object({
    threadId: z.string(),
    error: z.object({ message: z.string() }),
    willRetry: z.boolean(),
  }),
  'thread/started': z.object({ thread: Thread }),
  'thread/status/changed': z.object({ threadId: z.string(), status: ThreadStatus }),
  'thread/settings/updated': z.object({
    threadId: z.string(),
    threadSettings: z.looseObject({ model: z.string().optional() }),
  }),
  'thread/tokenUsage/updated': z.object({
    threadId: z.string(),
    tokenUsage: z.object({ total: Tokens, last: Tokens, modelContextWindow: z.number().nullish() }),
  }),
  'turn/started': z.object({ threadId: z.string(), turn: TurnRecord }),
  'turn/completed': z.object({ threadId: z.string(), turn: TurnRecord }),
  'item/started': z.object({ threadId: z.string(), turnId: z.string(), item: Item }),
  'item/completed': z.object({ threadId: z.string(), turnId: z.string(), item: Item }),
  'serverRequest/resolved': z.object({ threadId: z.string(), requestId: z.union([z.string(), z.number()]) }),
} as const
export type CodexNotifications = { [M in keyof typeof NOTICES]: z.output<(typeof NOTICES)[M]> }

/** Sent many times a second, and not needed here. */
export const UNWANTED = [
  'item/agentMessage/delta',
  'item/plan/delta',
  'item/reasoning/textDelta',
  'item/reasoning/summaryTextDelta',
  'item/reasoning/summaryPartAdded',
  'item/commandExecution/outputDelta',
  'item/commandExecution/terminalInteraction',
  'item/fileChange/outputDelta',
  'item/fileChange/patchUpdated',
  'item/mcpToolCall/progress',
  'turn/diff/updated',
  'turn/plan/updated',
]

export const ThreadList = z.object({ data: z.array(z.string()) })
export const ThreadRead = z.object({ thread: Thread })
export const ThreadResumed = z.object({ thread: Thread, model: z.string() })
export const TurnStarted = z.object({ turn: TurnRecord })
export const TurnPage = z.object({ data: z.array(TurnRecord) })
export const ItemPage = z.object({
  data: z.array(z.object({ turnId: z.string(), item: Item })),
  nextCursor: z.string().nullish(),
})
export type ItemEntry = z.output<typeof ItemPage>['data'][number]
