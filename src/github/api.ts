import { z } from 'zod'
import { count, type Routes, wait } from '../base/route.ts'

const WorkSchema = z.object({
  role: z.string(),
  agent: z.string(),
  state: z.string().describe('waiting, delegated, done, failed or skipped'),
  task_id: z.string().optional(),
})

/** Recent webhooks and actions, without anything about conduct, which only moderators may read (S3.15). */
const GithubLogSchema = z.object({
  connected: z.boolean().describe('The service was started with "github" in orc.yaml'),
  dry_run: z.boolean(),
  repositories: z.array(z.string()).describe('Empty: any repository that knows the webhook secret'),
  events: z.array(
    z.object({
      id: z.string().describe("GitHub's id of the delivery"),
      event: z.string(),
      state: z.string().describe('waiting, routed, ignored or failed'),
      at: z.string(),
      note: z.string().optional(),
      repository: z.string().optional(),
      number: z.number().optional(),
      work: z.array(WorkSchema),
    }),
  ),
  actions: z.array(
    z.object({
      key: z.string(),
      agent: z.string(),
      repository: z.string(),
      number: z.number().optional(),
      kind: z.string(),
      text: z.string().describe('The action as a sentence'),
      fields: z.record(z.string(), z.unknown()).describe('The fields of the action'),
      state: z
        .string()
        .describe('asked: people decide. ready, acting: queued. Final: done, failed, stale, refused, dry'),
      at: z.string(),
      confidence: z.number().optional(),
      rationale: z.string().optional(),
      request_id: z.string().optional().describe('The request for approval'),
      url: z.string().optional(),
      note: z.string().optional(),
    }),
  ),
  suspended: z
    .array(z.object({ agent: z.string(), failures: z.number(), at: z.string() }))
    .describe('Agents that failed too often in a row and get no work until a person resumes them'),
})

/** The needs of the team on GitHub compared with its access. */
const SetupSchema = z.object({
  login: z.string().optional().describe('The login of the service, if GitHub reports it'),
  needs: z.object({
    permissions: z.array(z.object({ name: z.string(), level: z.string(), why: z.string() })),
    events: z.array(z.string()),
    webhook: z.string(),
  }),
  findings: z.array(
    z.object({
      level: z
        .enum(['ok', 'missing', 'note', 'unknown'])
        .describe('missing: the team cannot work. note: worth knowing. unknown: GitHub does not report it'),
      repository: z.string().optional(),
      text: z.string(),
      fix: z.string().optional().describe('How to fix it'),
    }),
  ),
})

export type GithubSetup = z.output<typeof SetupSchema>

/** The work and the actions that an event led to so far. */
const EventTrailSchema = z.object({
  delivery: z.string(),
  event: z.string(),
  state: z.string(),
  note: z.string().optional(),
  work: z.array(WorkSchema),
  actions: z.array(
    z.object({
      agent: z.string(),
      what: z.string(),
      state: z.string(),
      note: z.string().optional(),
      request_id: z.string().optional(),
      url: z.string().optional(),
    }),
  ),
  settled: z.boolean().describe('No work is pending, except for requests that people have to decide'),
})

/** Pending work and the health of the agents (S3.16). */
export const GithubStateSchema = z.object({
  dry_run: z.boolean(),
  last_event_at: z.string().optional(),
  events_waiting: z.number(),
  actions_waiting: z.number(),
  agents: z.array(
    z.object({
      agent: z.string(),
      roles: z.array(z.string()),
      status: z.enum(['healthy', 'degraded', 'error']),
      last_task_completed: z.string().optional(),
      tasks_completed_last_hour: z.number(),
      average_response_time_ms: z.number().optional(),
      error_rate_percentage: z.number().describe('Of the tasks that ended in the last hour'),
      confidence_score_average: z.number().optional(),
      issues: z.array(z.string()),
      warnings: z.array(z.string()),
    }),
  ),
})

export type GithubTeamState = z.output<typeof GithubStateSchema>

export const MODERATION_ROUTES = {
  moderationChanges: {
    method: 'get',
    path: '/api/v1/moderation/changes',
    who: 'person',
    summary: 'Signals a new or closed flag to moderators',
    answer: z.object({ changed: z.literal(true) }),
    type: 'text/event-stream',
  },
  moderation: {
    method: 'get',
    path: '/api/v1/moderation',
    who: 'person',
    summary: 'Flags about conduct, for people with the role moderator; NOT_FOUND for everyone else',
    query: z.object({ state: z.enum(['open', 'all']).default('open'), limit: count(1000).default(200) }),
    answer: z.object({
      flags: z.array(
        z.object({
          id: z.string(),
          repository: z.string(),
          number: z.number().optional(),
          at: z.string(),
          flag: z.record(z.string(), z.unknown()).describe('The coc_violation_flag of the protocol'),
          closed_at: z.string().optional(),
          closed_by: z.string().optional(),
          decision: z.enum(['upheld', 'dismissed']).optional(),
          comment: z.string().optional(),
        }),
      ),
    }),
  },
  closeModeration: {
    method: 'post',
    path: '/api/v1/moderation/{id}',
    who: 'person',
    summary: 'Close a flag as a moderator; nobody else is notified',
    body: z.object({
      decision: z.enum(['upheld', 'dismissed']),
      comment: z.string().max(2000).optional(),
    }),
    answer: z.object({ closed: z.boolean() }),
  },
} as const satisfies Routes

export const GITHUB_ROUTES = {
  githubChanges: {
    method: 'get',
    path: '/api/v1/github/changes',
    who: 'operator',
    summary: 'Signals a received or processed webhook',
    answer: z.object({ changed: z.literal(true) }),
    type: 'text/event-stream',
  },
  github: {
    method: 'get',
    path: '/api/v1/github',
    who: 'operator',
    summary: 'Recent webhooks, proposed actions and their states, newest first',
    query: z.object({ limit: count(500).default(100) }),
    answer: GithubLogSchema,
  },
  githubWebhook: {
    method: 'post',
    path: '/github/webhooks',
    who: 'anyone',
    summary:
      'Receive a GitHub webhook: verify its signature, store it, answer with 202, and process it later',
    body: z
      .unknown()
      .describe("GitHub's own payload, with X-Hub-Signature-256, X-GitHub-Event and X-GitHub-Delivery"),
    limit: 'own',
    answer: z.object({
      status: z.enum(['accepted', 'known']).describe('known: already received, not processed again'),
      delivery: z.string(),
    }),
  },
  nextTeamMessages: {
    method: 'get',
    path: '/api/v1/github/messages',
    who: 'token',
    summary:
      'Open tasks of a GitHub team member in the JSON of the team protocol: each task_delegation until it is answered',
    query: z.object({ wait }),
    answer: z.array(z.record(z.string(), z.unknown())),
  },
  sayTeamMessage: {
    method: 'post',
    path: '/api/v1/github/messages',
    who: 'token',
    summary:
      'Send a message in the JSON of the team protocol: task_completion, hitl_approval_request, coc_violation_flag, agent_health_check',
    body: z.unknown().describe('At most 102,400 bytes'),
    limit: 'own',
    answer: z.object({
      status: z
        .enum(['accepted', 'known'])
        .describe('known: the task has already ended, and the message changes nothing'),
      message_id: z.string(),
    }),
  },
  githubSetup: {
    method: 'get',
    path: '/api/v1/github/setup',
    who: 'operator',
    summary: 'Check what the team needs on GitHub and what it has; changes nothing',
    answer: SetupSchema,
  },
  replayEvent: {
    method: 'post',
    path: '/api/v1/github/events',
    who: 'operator',
    summary: 'Process a GitHub payload as if it had just arrived',
    body: z.object({
      event: z
        .string()
        .regex(/^[a-z_]{1,64}$/)
        .describe('The value of X-GitHub-Event: issues, pull_request …'),
      payload: z.record(z.string(), z.unknown()),
    }),
    limit: 8 * 1024 * 1024,
    answer: z.object({ delivery: z.string() }),
  },
  githubEvent: {
    method: 'get',
    path: '/api/v1/github/events/{delivery}',
    who: 'operator',
    summary: 'The work and the actions that a GitHub event led to so far',
    answer: EventTrailSchema,
  },
} as const satisfies Routes
