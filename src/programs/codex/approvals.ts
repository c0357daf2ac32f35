import { z } from 'zod'
import type { PermissionQuestion, PermissionVerdict, SessionPort } from '../../runtimes/runtime.ts'
import type { RequestId } from './app-server.ts'
import type { Item } from './records.ts'

/** A dialog's question, and its answers in the protocol. */
interface CodexDialog {
  readonly question: PermissionQuestion
  readonly yes: object
  readonly no: object
}

const ItemReference = z.object({
  threadId: z.string(),
  turnId: z.string().nullish(),
  itemId: z.string().optional(),
})
const reasonOf = (reason: string | null | undefined) => (reason ? { reason } : {})

const Command = ItemReference.extend({
  approvalId: z.string().nullish(),
  command: z.string().nullish(),
  cwd: z.string().nullish(),
  reason: z.string().nullish(),
  networkApprovalContext: z.unknown().optional(),
  additionalPermissions: z.unknown().optional(),
})

const FileChange = ItemReference.extend({ reason: z.string().nullish(), grantRoot: z.string().nullish() })

const Permissions = ItemReference.extend({
  reason: z.string().nullish(),
  cwd: z.string(),
  permissions: z.looseObject({}),
})

const ToolCall = ItemReference.extend({
  serverName: z.string(),
  message: z.string(),
  _meta: z.looseObject({
    codex_approval_kind: z.literal('mcp_tool_call'),
    tool_params: z.record(z.string(), z.unknown()).optional(),
  }),
})

/** Yes-or-no dialogs by request. Forms and other questions are left to the person in the pane. */
const DIALOGS: Record<string, (params: unknown, item: Item | undefined) => CodexDialog | undefined> = {
  'item/commandExecution/requestApproval'(params) {
    const { command, cwd, reason, approvalId, ...more } = Command.parse(params)
    const input = {
      command,
      cwd,
      network: more.networkApprovalContext,
      additionalPermissions: more.additionalPermissions,
    }
    return {
      question: { key: keyOf(more, approvalId), tool: 'shell', input: defined(input), ...reasonOf(reason) },
      yes: { decision: 'accept' },
      // Not `cancel`, which also ends the turn: the agent should see the refusal and continue.
      no: { decision: 'decline' },
    }
  },
  'item/fileChange/requestApproval'(params, item) {
    const { reason, grantRoot, ...reference } = FileChange.parse(params)
    const input = defined({ changes: item?.changes, grantRoot })
    return {
      question: { key: keyOf(reference), tool: 'apply_patch', input, ...reasonOf(reason) },
      yes: { decision: 'accept' },
      no: { decision: 'decline' },
    }
  },
  'item/permissions/requestApproval'(params) {
    const { reason, cwd, permissions, ...reference } = Permissions.parse(params)
    const granted = defined(permissions)
    return {
      question: {
        key: keyOf(reference),
        tool: 'request_permissions',
        input: { ...granted, cwd },
        ...reasonOf(reason),
      },
      yes: { permissions: granted, scope: 'turn' },
      no: { permissions: {}, scope: 'turn' },
    }
  },
  'mcpServer/elicitation/request'(params) {
    const call = ToolCall.safeParse(params).data
    if (call === undefined) return undefined
    const { serverName, message, _meta, ...reference } = call
    return {
      question: {
        key: `${keyOf(reference)}:${message}:${JSON.stringify(_meta.tool_params ?? {})}`,
        tool: `mcp:${serverName}`,
        input: _meta.tool_params ?? {},
        reason: message,
      },
      yes: { action: 'accept', content: {} },
      no: { action: 'decline', content: null },
    }
  },
}

function keyOf(reference: z.output<typeof ItemReference>, extra?: string | null): string {
  return ['codex', reference.threadId, reference.turnId, reference.itemId, extra].filter(Boolean).join(':')
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  )
}

interface ApprovalsOptions {
  readonly ask: SessionPort['askPermission']
  reply(id: RequestId, result: object): void
  /** The dialog accepts only yes or no: a person's remark reaches the agent another way. */
  remark(verdict: PermissionVerdict): void
  warn(fields: Record<string, unknown>, text: string): void
}

/** Dialogs that Codex shows in its pane and asks us about at the same time. The first answer counts. */
export function createApprovals({ ask, reply, remark, warn }: ApprovalsOptions) {
  const open = new Map<RequestId, AbortController>()

  async function decide(id: RequestId, dialog: CodexDialog, controller: AbortController) {
    const verdict = await ask(dialog.question, controller.signal)
    if (verdict === undefined || controller.signal.aborted) return
    open.delete(id)
    reply(id, verdict.allow ? dialog.yes : dialog.no)
    if (!verdict.allow) remark(verdict)
  }

  function close(id: RequestId) {
    open.get(id)?.abort()
    open.delete(id)
  }

  return {
    asked(id: RequestId, method: string, params: unknown, item: Item | undefined) {
      const dialog = DIALOGS[method]?.(params, item)
      // The server repeats open dialogs to a new connection.
      if (dialog === undefined || open.has(id)) return
      const controller = new AbortController()
      open.set(id, controller)
      decide(id, dialog, controller).catch((error: unknown) => {
        open.delete(id)
        warn(
          { err: error, key: dialog.question.key },
          'a permission dialog could not be handled; a person must answer it in the pane',
        )
      })
    },
    /** The request was answered: by us, by the person in the pane, or by the end of the turn. */
    resolved: close,
    /** The connection is lost: open requests cannot be answered through us any more. */
    dropAll() {
      for (const id of [...open.keys()]) close(id)
    },
  }
}
