import { z } from 'zod'

/** What came from GitHub and what became of it. Conduct is no part of it: that is for moderators (S3.15). */
export const GithubLogSchema = z.object({
  connected: z.boolean().describe('orc.yaml has "github", and the service was started with it'),
  dry_run: z.boolean(),
  repositories: z.array(z.string()).describe('Empty: every one that knows the secret'),
  events: z.array(
    z.object({
      id: z.string().describe("GitHub's id of the delivery"),
      event: z.string(),
      state: z.string().describe('waiting, routed, ignored or failed'),
      at: z.string(),
      note: z.string().optional(),
      repository: z.string().optional(),
      number: z.number().optional(),
      work: z.array(
        z.object({
          role: z.string(),
          agent: z.string(),
          state: z.string().describe('waiting, delegated, done, failed or skipped'),
          task_id: z.string().optional(),
        }),
      ),
    }),
  ),
  actions: z.array(
    z.object({
      key: z.string(),
      agent: z.string(),
      repository: z.string(),
      number: z.number().optional(),
      kind: z.string(),
      text: z.string().describe('What it is, in words'),
      fields: z.record(z.string(), z.unknown()).describe('What exactly would be, or was, written'),
      state: z
        .string()
        .describe(
          'asked: people decide. ready, acting: on its way. Else an end: done, failed, stale, refused, dry',
        ),
      at: z.string(),
      confidence: z.number().optional(),
      rationale: z.string().optional(),
      request_id: z.string().optional().describe('What people are asked about it'),
      url: z.string().optional(),
      note: z.string().optional(),
    }),
  ),
  halted: z
    .array(z.object({ agent: z.string(), failures: z.number(), at: z.string() }))
    .describe('Agents that failed too often in a row, and get nothing until a person lets them go on'),
})
