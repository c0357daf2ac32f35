import { z } from 'zod'
import { count, type Routes, wait } from '../base/route.ts'
import { GithubLogSchema } from './api/log.ts'
import { EventTrailSchema, SetupSchema } from './api/setup.ts'

export const MODERATION_ROUTES = {
  moderationChanges: {
    method: 'get',
    path: '/api/v1/moderation/changes',
    who: 'person',
    summary: 'A word whenever there is another flag or one was closed; for moderators',
    answer: z.object({ changed: z.literal(true) }),
    type: 'text/event-stream',
  },
  moderation: {
    method: 'get',
    path: '/api/v1/moderation',
    who: 'person',
    summary:
      'Flags about conduct, for people with the role moderator; to everyone else there is no such thing',
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
    summary: 'A moderator has decided on a flag; nobody else hears of it',
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
    summary: 'A word whenever GitHub sent something, or what it sent was dealt with',
    answer: z.object({ changed: z.literal(true) }),
    type: 'text/event-stream',
  },
  github: {
    method: 'get',
    path: '/api/v1/github',
    who: 'operator',
    summary: 'What came from GitHub, what agents proposed to do there, and what became of it; newest first',
    query: z.object({ limit: count(500).default(100) }),
    answer: GithubLogSchema,
  },
  githubWebhook: {
    method: 'post',
    path: '/github/webhooks',
    who: 'anyone',
    summary:
      'A webhook of GitHub, proven by its signature; stored, answered with 202, and worked on afterwards',
    body: z
      .unknown()
      .describe("GitHub's own payload, with X-Hub-Signature-256, X-GitHub-Event and X-GitHub-Delivery"),
    limit: 'own',
    answer: z.object({
      status: z.enum(['accepted', 'known']).describe('known: it came before, and is not worked on again'),
      delivery: z.string(),
    }),
  },
  nextTeamMessages: {
    method: 'get',
    path: '/api/v1/github/messages',
    who: 'token',
    summary:
      "What a member of the GitHub team has to do, in the team's own JSON: each task_delegation until it is answered",
    query: z.object({
      wait,
    }),
    answer: z.array(z.record(z.string(), z.unknown())),
  },
  sayTeamMessage: {
    method: 'post',
    path: '/api/v1/github/messages',
    who: 'token',
    summary:
      "A message of a member in the team's own JSON: task_completion, hitl_approval_request, coc_violation_flag, agent_health_check",
    body: z.unknown().describe('At most 102,400 bytes'),
    limit: 'own',
    answer: z.object({
      status: z.enum(['accepted', 'known']).describe('known: the task has ended, and it changes nothing'),
      message_id: z.string(),
    }),
  },
  githubSetup: {
    method: 'get',
    path: '/api/v1/github/setup',
    who: 'operator',
    summary: 'What the team needs of GitHub, and whether it has it: asks GitHub, and changes nothing',
    answer: SetupSchema,
  },
  replayEvent: {
    method: 'post',
    path: '/api/v1/github/events',
    who: 'operator',
    summary: 'Work on a payload of GitHub as if it had just come',
    body: z.object({
      event: z
        .string()
        .regex(/^[a-z_]{1,64}$/)
        .describe('As X-GitHub-Event has it: issues, pull_request …'),
      payload: z.record(z.string(), z.unknown()),
    }),
    limit: 8 * 1024 * 1024,
    answer: z.object({ delivery: z.string() }),
  },
  githubEvent: {
    method: 'get',
    path: '/api/v1/github/events/{delivery}',
    who: 'operator',
    summary: 'What an event of GitHub set in motion, as far as it has come',
    answer: EventTrailSchema,
  },
} as const satisfies Routes
