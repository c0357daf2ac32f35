import { z } from 'zod'

/** The fields of the program's hooks that we use. */
const common = {
  session_id: z.string(),
  transcript_path: z.string(),
}

const toolUse = { tool_name: z.string(), tool_input: z.record(z.string(), z.unknown()) }

export const GeminiHookEvent = z.discriminatedUnion('hook_event_name', [
  z.object({
    ...common,
    hook_event_name: z.literal('SessionStart'),
    /** For `resume`, the named transcript is never used. */
    source: z.enum(['startup', 'resume', 'clear']),
  }),
  z.object({ ...common, hook_event_name: z.literal('SessionEnd'), reason: z.string() }),
  z.object({ ...common, hook_event_name: z.literal('BeforeAgent'), prompt: z.string() }),
  z.object({ ...common, hook_event_name: z.literal('AfterAgent') }),
  z.object({ ...common, ...toolUse, hook_event_name: z.literal('BeforeTool') }),
  z.object({ ...common, ...toolUse, hook_event_name: z.literal('AfterTool') }),
  z.object({
    ...common,
    hook_event_name: z.literal('Notification'),
    notification_type: z.string(),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).default({}),
  }),
])
export type GeminiHookEvent = z.output<typeof GeminiHookEvent>
export type GeminiHookEventOf<Name extends GeminiHookEvent['hook_event_name']> = Extract<
  GeminiHookEvent,
  { hook_event_name: Name }
>
