import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { SessionPort } from '../../runtimes/runtime.ts'
import type { ClaudeToolUse } from './record.ts'

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
  z.looseObject({
    hook_event_name: z.literal(['PostToolUse', 'PostToolUseFailure']),
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
  z.looseObject({ hook_event_name: z.literal('SessionEnd'), ...common }),
])
export type ClaudeHookEvent = z.output<typeof ClaudeHookEvent>
export type ClaudeHookEventOf<T extends ClaudeHookEvent['hook_event_name']> = Extract<
  ClaudeHookEvent,
  { hook_event_name: T }
>

type ClaudePermissionRequest = ClaudeHookEventOf<'PermissionRequest'>

const REMEMBERED_USES = 200

interface OpenDialog {
  readonly request: ClaudePermissionRequest
  readonly closing: AbortController
  toolUseId: string | undefined
}

export type Dialogs = ReturnType<typeof createDialogs>

/** Permission dialogs. Each is a request to a person, which ends when it is answered anywhere. */
export function createDialogs(port: SessionPort) {
  const open = new Set<OpenDialog>()
  /** Tool calls without a result yet. */
  const uses = new Map<string, ClaudeToolUse>()

  /** The transcript may show the call before or after its dialog. */
  function bind(dialog: OpenDialog) {
    const taken = new Set([...open].map(({ toolUseId }) => toolUseId))
    const { tool_name, tool_input } = dialog.request
    dialog.toolUseId ??= [...uses.values()].find(
      ({ id, name, input }) => !taken.has(id) && name === tool_name && isDeepStrictEqual(input, tool_input),
    )?.id
  }

  return {
    get isOpen() {
      return open.size > 0
    },
    /** The hook's response: the person's verdict, or undefined if the dialog was answered in the pane. */
    async ask(request: ClaudePermissionRequest, caller: AbortSignal): Promise<object | undefined> {
      const dialog: OpenDialog = { request, closing: new AbortController(), toolUseId: undefined }
      bind(dialog)
      open.add(dialog)
      try {
        const signal = AbortSignal.any([caller, dialog.closing.signal])
        const { tool_name: tool, tool_input: input } = request
        const verdict = await port.askPermission(
          { key: dialog.toolUseId ?? `dialog-${randomUUID()}`, tool, input },
          signal,
        )
        if (verdict === undefined || signal.aborted) return undefined
        return answerOf(verdict.allow, verdict.comment)
      } finally {
        open.delete(dialog)
      }
    },
    /** The tool ran or was denied, so its dialog is closed. */
    settle(toolUseId: string) {
      uses.delete(toolUseId)
      for (const dialog of open) if (dialog.toolUseId === toolUseId) dialog.closing.abort()
    },
    /** No dialog can be open any more. */
    settleAll() {
      uses.clear()
      for (const { closing } of open) closing.abort()
    },
    /** From the transcript: a dialog itself does not say which tool call it belongs to. */
    noteToolUse(use: ClaudeToolUse) {
      uses.set(use.id, use)
      if (uses.size > REMEMBERED_USES) uses.delete(uses.keys().next().value!)
      for (const dialog of open) bind(dialog)
    },
  }
}

function answerOf(allow: boolean, comment: string | undefined) {
  const decision = allow
    ? { behavior: 'allow' }
    : { behavior: 'deny', message: comment ?? 'A person denied this.' }
  return { hookSpecificOutput: { hookEventName: 'PermissionRequest', decision } }
}
