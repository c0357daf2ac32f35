/** The team protocol v1.0 (S3.24): its schemas, which drop unknown fields, and the codec between its JSON and our names. */
import { z } from 'zod'
import { failure, type Result } from '../../base/result.ts'

/** The limit of C20. */
export const MAX_MESSAGE_BYTES = 102_400

/** ISO 8601 (S3.17). */
const time = z.iso.datetime({ offset: true })
const text = z.string().max(MAX_MESSAGE_BYTES)
const name = z.string().min(1).max(200)
const confidence = z.number().min(0).max(1)
const number = z.int().min(1)
const count = z.number().min(0)
const list = z.array(z.string().max(10_000)).max(1000)
/** Open enumerations, which may grow (C19): agents, events, associations, kinds of actions. */
const open = name
/** Records with free keys, which the codec doesn't rename. */
const free = z.record(z.string(), z.unknown())

const PRIORITIES = ['high', 'medium', 'low'] as const
const COMPLETION_STATUSES = ['success', 'failure', 'requires_approval', 'partial_success'] as const
const HEALTH_STATUSES = ['healthy', 'degraded', 'error'] as const
const MAX_RATIONALE = 1000
const MAX_ACTIONS = 50

/** S3.18 counts characters, not UTF-16 units. */
const rationale = z
  .string()
  .refine((words) => words.length <= MAX_RATIONALE || [...words].length <= MAX_RATIONALE, {
    error: `is over ${MAX_RATIONALE} characters`,
  })

const envelope = { message_id: name, timestamp: time, from_agent: open, to_agent: open }

const User = z.object({
  login: name,
  author_association: open.optional(),
  is_first_time_contributor: z.boolean().optional(),
  contribution_count: z.int().min(0).optional(),
  account_created: time.optional(),
})

const Content = z.object({
  title: text.optional(),
  body: text.optional(),
  labels: list.optional(),
  state: open.optional(),
  created_at: time.optional(),
  updated_at: time.optional(),
  comments_count: z.int().min(0).optional(),
})

const TaskDelegation = z.object({
  message_type: z.literal('task_delegation'),
  ...envelope,
  event_context: z.object({
    event_type: open,
    event_id: name,
    repository: name,
    trigger_timestamp: time,
  }),
  task: z.object({
    description: text,
    priority: z.enum(PRIORITIES).default('medium'),
    timeout_seconds: z.int().min(1).default(300),
    requires_hitl: z.boolean().default(false),
    confidence_threshold: confidence.default(0.95),
  }),
  context: z.object({
    issue_number: number.optional(),
    pr_number: number.optional(),
    comment_id: number.optional(),
    user: User.optional(),
    content: Content.optional(),
    additional_context: z
      .object({
        related_issues: z.array(number).max(100).optional(),
        related_prs: z.array(number).max(100).optional(),
        mentions: list.optional(),
        commands: list.optional(),
        /** Not in the original protocol: excerpts of the things named above (S3.18). */
        excerpts: z
          .array(z.object({ source: name, text }))
          .max(50)
          .optional(),
      })
      .optional(),
  }),
  repository_context: z
    .object({ rag_available: z.boolean(), governance_docs: list, ci_workflows: list })
    .partial()
    .optional(),
})

const ActionTaken = z.object({
  action_type: open,
  timestamp: time.optional(),
  details: free.default({}),
  confidence: confidence.optional(),
})

const Failure = z.object({
  error_type: open,
  error_message: text,
  error_code: name.optional(),
  timestamp: time.optional(),
  retry_count: z.int().min(0).default(0),
  is_recoverable: z.boolean().default(false),
  suggested_action: text.optional(),
})

const TaskCompletion = z
  .object({
    message_type: z.literal('task_completion'),
    ...envelope,
    in_reply_to: name,
    task_id: name.optional(),
    status: z.enum(COMPLETION_STATUSES),
    confidence_score: confidence.optional(),
    execution_time_ms: count.optional(),
    actions_taken: z
      .array(ActionTaken)
      .max(MAX_ACTIONS, { error: `holds more than ${MAX_ACTIONS} actions` })
      .default([]),
    rationale,
    requires_human_review: z.boolean().default(false),
    human_review_reason: text.optional(),
    next_steps: list.optional(),
    flags: free.optional(),
    metrics: free.optional(),
    error: Failure.nullish(),
  })
  .refine(({ status, confidence_score }) => status === 'failure' || confidence_score !== undefined, {
    error: 'may be missing on failure only',
    path: ['confidence_score'],
  })
  .refine(({ status, error }) => status !== 'failure' || (error !== undefined && error !== null), {
    error: 'is missing: a failure must describe the error',
    path: ['error'],
  })

const HitlApprovalRequest = z.object({
  message_type: z.literal('hitl_approval_request'),
  ...envelope,
  in_reply_to: name.optional(),
  approval_needed_for: name,
  priority: z.enum(PRIORITIES).default('medium'),
  timeout_hours: z.number().positive().max(8760).default(72),
  proposed_action: z.object({
    action_type: open,
    issue_number: number.optional(),
    pr_number: number.optional(),
    reason: text.optional(),
    details: free.default({}),
  }),
  rationale,
  confidence,
  human_decision_options: list.default(['approve', 'reject', 'modify']),
  github_comment_posted: z.boolean().default(false),
  github_comment_url: text.optional(),
  approvers_tagged: list.default([]),
})

const CocViolationFlag = z.object({
  message_type: z.literal('coc_violation_flag'),
  ...envelope,
  in_reply_to: name.optional(),
  privacy_level: z.literal('PRIVATE_TO_MODERATORS'),
  violation: z.object({
    severity: z.enum(PRIORITIES),
    confidence,
    violation_type: open,
    location: text,
    url: text.optional(),
    timestamp: time.optional(),
  }),
  context: z.object({ excerpt: text, user_history: text, thread_context: text }).partial().optional(),
  analysis: z
    .object({ sentiment_score: z.number(), keywords_detected: list, pattern_matched: text })
    .partial()
    .optional(),
  recommended_action: text,
  important_notes: list.optional(),
  human_review_required: z.boolean().default(true),
  escalate_to: list.default([]),
})

const AgentHealthCheck = z.object({
  message_type: z.literal('agent_health_check'),
  ...envelope,
  status: z.enum(HEALTH_STATUSES),
  uptime_seconds: count,
  last_task_completed: time.nullish(),
  performance_metrics: z
    .object({
      tasks_completed_last_hour: count,
      average_response_time_ms: count,
      error_rate_percentage: z.number().min(0).max(100),
      confidence_score_average: confidence,
    })
    .partial()
    .optional(),
  issues: list.default([]),
  warnings: list.default([]),
})

/** S3.3, S3.8, S3.13, S3.14, S3.16. */
const MESSAGES = {
  task_delegation: TaskDelegation,
  task_completion: TaskCompletion,
  hitl_approval_request: HitlApprovalRequest,
  coc_violation_flag: CocViolationFlag,
  agent_health_check: AgentHealthCheck,
} as const

type MessageType = keyof typeof MESSAGES

type TeamMessageOf<Type extends MessageType> = Renamed<z.output<(typeof MESSAGES)[Type]>>
export type TaskDelegation = TeamMessageOf<'task_delegation'>
export type TaskCompletion = TeamMessageOf<'task_completion'>
export type HitlApprovalRequest = TeamMessageOf<'hitl_approval_request'>
export type CocViolationFlag = TeamMessageOf<'coc_violation_flag'>
export type AgentHealthCheck = TeamMessageOf<'agent_health_check'>
export type TeamMessage =
  | TaskDelegation
  | TaskCompletion
  | HitlApprovalRequest
  | CocViolationFlag
  | AgentHealthCheck

type DecodedTeamMessage = Result<TeamMessage, string>

const MISSING = /^Invalid input: expected .+, received undefined$/

/** Refuses a message over the size limit instead of cutting it (C20). */
export function decodeTeamMessage(text: string): DecodedTeamMessage {
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_MESSAGE_BYTES)
    return failure(`The message is ${bytes} bytes; the limit is ${MAX_MESSAGE_BYTES}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return failure('The message is not JSON')
  }
  return readTeamMessage(value)
}

/** The same for a parsed value within the size limit. */
export function readTeamMessage(value: unknown): DecodedTeamMessage {
  const type = isRecord(value) ? value.message_type : undefined
  if (typeof type !== 'string' || !Object.hasOwn(MESSAGES, type)) {
    const known = Object.keys(MESSAGES).join(', ')
    return failure(
      `message_type is ${typeof type === 'string' ? `"${type.slice(0, 60)}"` : 'missing'}; it must be one of ${known}`,
    )
  }
  const parsed = MESSAGES[type as MessageType].safeParse(value)
  if (!parsed.success) {
    const problems = parsed.error.issues
      .slice(0, 5)
      .map(({ path, message }) => `${path.join('.')}: ${message.replace(MISSING, 'is missing')}`)
    return failure(`${type}: ${problems.join('; ')}`)
  }
  const message = renamed(parsed.data, oursOf) as TeamMessage
  // Without a task_id, the id of the delegation identifies the task (C10).
  if (message.type === 'task_completion')
    return { ok: true, value: { ...message, taskId: message.taskId ?? message.inReplyTo } }
  return { ok: true, value: message }
}

/** Throws if the message is invalid or too large, which callers rule out. */
export function encodeTeamMessage(message: TeamMessage): string {
  const text = JSON.stringify(MESSAGES[message.type].parse(renamed(message, theirsOf)))
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_MESSAGE_BYTES) throw new RangeError(`a ${message.type} of ${bytes} bytes is too large`)
  return text
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Fields with another name inside the service (C10). All others only change their case: `issue_number`, `issueNumber`. */
const OURS = {
  message_type: 'type',
  message_id: 'id',
  timestamp: 'at',
  from_agent: 'from',
  to_agent: 'to',
} as const
type Ours = typeof OURS

const THEIRS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(OURS).map(([theirs, ours]) => [ours, theirs]),
)

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name

type OurName<Name extends string> = Name extends keyof Ours ? Ours[Name] : Camel<Name>

/** Fields whose keys the codec leaves unchanged. */
const FREE_FIELDS = ['details', 'flags', 'metrics'] as const
type FreeField = (typeof FREE_FIELDS)[number]

/** A message of the protocol with our field names. */
type Renamed<Value> = Value extends readonly (infer Item)[]
  ? Renamed<Item>[]
  : Value extends object
    ? {
        [Key in keyof Value as Key extends string ? OurName<Key> : Key]: Key extends FreeField
          ? Value[Key]
          : Renamed<Value[Key]>
      }
    : Value

function oursOf(theirs: string): string {
  if (Object.hasOwn(OURS, theirs)) return OURS[theirs as keyof Ours]
  return theirs.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function theirsOf(ours: string): string {
  if (Object.hasOwn(THEIRS, ours)) return THEIRS[ours]!
  return ours.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function renamed(value: unknown, rename: (key: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename))
  if (!isRecord(value)) return value
  const isFree = (key: string) => FREE_FIELDS.some((free) => free === key)
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [rename(key), isFree(key) ? inner : renamed(inner, rename)]),
  )
}
