import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { SessionPort } from '../../runtimes/runtime.ts'
import type { ClaudeHookEventOf } from './hook-event.ts'
import type { ClaudeToolUse } from './record.ts'

type ClaudePermissionRequest = ClaudeHookEventOf<'PermissionRequest'>

export interface Dialogs {
  readonly isOpen: boolean
  /** The hook's response: the person's verdict, or undefined if the dialog was answered in the pane. */
  ask(request: ClaudePermissionRequest, signal: AbortSignal): Promise<object | undefined>
  /** The tool ran or was denied, so its dialog is closed. */
  settle(toolUseId: string): void
  /** No dialog can be open any more. */
  settleAll(): void
  /** From the transcript: a dialog itself does not say which tool call it belongs to. */
  noteToolUse(use: ClaudeToolUse): void
}

const REMEMBERED_USES = 200

interface OpenDialog {
  readonly request: ClaudePermissionRequest
  readonly closing: AbortController
  toolUseId: string | undefined
}

/** Permission dialogs. Each is a request to a person, which ends when it is answered anywhere. */
export function createDialogs(port: SessionPort): Dialogs {
  const open = new Set<OpenDialog>()
  /** Calls without a result yet. */
  const uses = new Map<string, ClaudeToolUse>()
  let asked = 0

  /** The transcript may show the call before or after its dialog. */
  function bind(dialog: OpenDialog) {
    const taken = new Set([...open].map(({ toolUseId }) => toolUseId))
    const { tool_name, tool_input } = dialog.request
    dialog.toolUseId ??= [...uses.values()].find(
      ({ id, name, input }) => !taken.has(id) && name === tool_name && isDeepStrictEqual(input, tool_input),
    )?.id
  }

  function keyOf({ session_id, tool_name, tool_input }: ClaudePermissionRequest): string {
    asked += 1
    const what = JSON.stringify([session_id, tool_name, tool_input, Date.now(), asked])
    return `dialog-${createHash('sha256').update(what).digest('base64url').slice(0, 16)}`
  }

  return {
    get isOpen() {
      return open.size > 0
    },
    async ask(request, caller) {
      const dialog: OpenDialog = { request, closing: new AbortController(), toolUseId: undefined }
      bind(dialog)
      open.add(dialog)
      try {
        const signal = AbortSignal.any([caller, dialog.closing.signal])
        const { tool_name: tool, tool_input: input } = request
        const verdict = await port.askPermission(
          { key: dialog.toolUseId ?? keyOf(request), tool, input },
          signal,
        )
        if (verdict === undefined || signal.aborted) return undefined
        return answerOf(verdict.allow, verdict.comment)
      } finally {
        open.delete(dialog)
      }
    },
    settle(toolUseId) {
      uses.delete(toolUseId)
      for (const dialog of open) if (dialog.toolUseId === toolUseId) dialog.closing.abort()
    },
    settleAll() {
      uses.clear()
      for (const { closing } of open) closing.abort()
    },
    noteToolUse(use) {
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
