import { z } from 'zod'

const common = {
  session_id: z.string(),
  transcript_path: z.string().optional(),
  /** Set only within a subagent. */
  agent_id: z.string().optional(),
}
const tool = {
  tool_name: z.string(),
  tool_input: z.record(z.string(), z.unknown()).catch({}),
}

/** The hooks we use, with the fields we read; other fields are ignored. */
export const ClaudeHookEvent = z.discriminatedUnion('hook_event_name', [
  z.looseObject({
    hook_event_name: z.literal('SessionStart'),
    ...common,
    source: z.string().catch('unknown'),
    model: z.string().optional(),
  }),
  z.looseObject({ hook_event_name: z.literal('UserPromptSubmit'), ...common, prompt: z.string() }),
  z.looseObject({ hook_event_name: z.literal('PermissionRequest'), ...common, ...tool }),
  z.looseObject({ hook_event_name: z.literal('PostToolUse'), ...common, ...tool, tool_use_id: z.string() }),
  z.looseObject({
    hook_event_name: z.literal('PostToolUseFailure'),
    ...common,
    ...tool,
    tool_use_id: z.string(),
  }),
  z.looseObject({
    hook_event_name: z.literal('Stop'),
    ...common,
    stop_hook_active: z.boolean().catch(false),
    last_assistant_message: z.string().optional(),
  }),
  z.looseObject({
    hook_event_name: z.literal('StopFailure'),
    ...common,
    error: z.string().catch('unknown'),
    last_assistant_message: z.string().optional(),
  }),
  z.looseObject({ hook_event_name: z.literal('SessionEnd'), ...common, reason: z.string().catch('unknown') }),
])
export type ClaudeHookEvent = z.output<typeof ClaudeHookEvent>
export type ClaudeHookEventOf<T extends ClaudeHookEvent['hook_event_name']> = Extract<
  ClaudeHookEvent,
  { hook_event_name: T }
>
