import { z } from 'zod'

/** What the team needs of GitHub, and whether it has it. */
export const SetupSchema = z.object({
  login: z.string().optional().describe('The account that everything is written under, where GitHub says'),
  needs: z.object({
    permissions: z.array(z.object({ name: z.string(), level: z.string(), why: z.string() })),
    events: z.array(z.string()),
    webhook: z.string(),
  }),
  findings: z.array(
    z.object({
      level: z
        .enum(['ok', 'missing', 'note', 'unknown'])
        .describe('missing: it will not work. note: worth knowing. unknown: GitHub does not say'),
      repository: z.string().optional(),
      text: z.string(),
      mend: z.string().optional().describe('What to do about it'),
    }),
  ),
})

/** What an event set in motion, as far as it has come. */
export const EventTrailSchema = z.object({
  delivery: z.string(),
  event: z.string(),
  state: z.string(),
  note: z.string().optional(),
  work: z.array(
    z.object({ role: z.string(), agent: z.string(), state: z.string(), task_id: z.string().optional() }),
  ),
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
  settled: z
    .boolean()
    .describe('Nothing more comes of it by itself; what people are asked about stays open until they decide'),
})

/** How the team for repositories is (S3.16). */
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
