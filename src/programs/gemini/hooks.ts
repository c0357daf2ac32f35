import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { reasonOf } from '../../base/errors.ts'
import type { PermissionVerdict, SessionPort } from '../../runtimes/runtime.ts'
import type { Pane, PaneScreen } from '../program.ts'

/** Fields that all hooks have. */
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
  z.object({ ...common, hook_event_name: z.literal('SessionEnd') }),
  z.object({ ...common, hook_event_name: z.literal('BeforeAgent'), prompt: z.string() }),
  z.object({ ...common, hook_event_name: z.literal('AfterAgent') }),
  z.object({ ...common, ...toolUse, hook_event_name: z.literal('BeforeTool') }),
  z.object({ ...common, ...toolUse, hook_event_name: z.literal('AfterTool') }),
  z.object({
    ...common,
    hook_event_name: z.literal('Notification'),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).default({}),
  }),
])
export type GeminiHookEvent = z.output<typeof GeminiHookEvent>
export type GeminiHookEventOf<Name extends GeminiHookEvent['hook_event_name']> = Extract<
  GeminiHookEvent,
  { hook_event_name: Name }
>

type GeminiPermissionRequest = GeminiHookEventOf<'Notification'>
type GeminiToolUse = Pick<GeminiHookEventOf<'BeforeTool'>, 'tool_name' | 'tool_input'>

interface GeminiDialog {
  readonly request: GeminiPermissionRequest
  readonly closing: AbortController
}

/** The next dialog is drawn shortly after the previous one was answered. */
const LOOKS = 8
const LOOK_EVERY_MS = 250

interface GeminiDialogOptions {
  readonly port: Pick<SessionPort, 'askPermission'>
  readonly pane: Pick<Pane, 'screen' | 'press'>
  /**
   * A person's remark on a refusal, for the agent's next turn: the program ends the turn without showing it.
   */
  refused(what: string): void
  warn(text: string): void
}

/**
 * Permission dialogs. The program's hook only reports them; a verdict from outside is given as a person
 * would, with a key, while exactly this dialog is on the screen.
 */
export function createDialogs({ port, pane, refused, warn }: GeminiDialogOptions) {
  let open: readonly GeminiDialog[] = []

  function settle(ended: (dialog: GeminiDialog) => boolean) {
    const closed = open.filter(ended)
    open = open.filter((dialog) => !closed.includes(dialog))
    for (const { closing } of closed) closing.abort()
  }

  /** Asks again if the verdict could not be entered, so that the person knows. */
  async function ask(dialog: GeminiDialog, why = '') {
    const { request, closing } = dialog
    const question = {
      key: `dialog-${randomUUID()}`,
      tool: toolOf(request),
      input: inputOf(request),
      reason: `${why}${request.message}. Denying it ends the agent's turn.`,
    }
    const verdict = await port.askPermission(question, closing.signal)
    if (verdict === undefined) return
    const failure = await answer(dialog, verdict).catch(reasonOf)
    if (failure === undefined || !open.includes(dialog)) return
    warn(`a verdict could not be entered: ${failure}`)
    await ask(
      dialog,
      `Your verdict could not be entered: ${failure}. Answer again here, or in the agent's terminal. `,
    )
  }

  /** Returns the reason if it could not be given. */
  async function answer(
    dialog: GeminiDialog,
    { allow, comment }: PermissionVerdict,
  ): Promise<string | undefined> {
    for (let look = 0; look < LOOKS; look++) {
      if (look > 0) await sleep(LOOK_EVERY_MS)
      const screen = await pane.screen()
      if (!open.includes(dialog)) return undefined
      const seen = open.filter(({ request }) => shows(screen, request))
      if (seen.length !== 1 || seen[0] !== dialog) continue
      await pane.press([allow ? '1' : 'Escape'])
      if (!allow)
        refused(`A person denied this: ${summaryOf(dialog.request)}${comment ? `\n${comment}` : ''}`)
      return undefined
    }
    if (open.length > 1) return 'another dialog of the agent is open in front of it'
    return 'the screen does not show the dialog as expected, or not in full'
  }

  return {
    get isOpen() {
      return open.length > 0
    },
    ask(request: GeminiPermissionRequest) {
      const dialog = { request, closing: new AbortController() }
      open = [...open, dialog]
      ask(dialog).catch((error: unknown) => warn(`people could not be asked: ${reasonOf(error)}`))
    },
    /** A tool runs or has run, so its dialog is closed. */
    used(use: GeminiToolUse) {
      settle(({ request }) => isAbout(request, use))
    },
    settleAll() {
      settle(() => true)
    },
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

function toolOf({ details }: GeminiPermissionRequest): string {
  return textOf(details.toolName) ?? textOf(details.type) ?? 'tool'
}

/** Whole files are omitted; the diff is enough. */
function inputOf({ details }: GeminiPermissionRequest): Record<string, unknown> {
  const { type: _type, title: _title, originalContent: _old, newContent: _new, ...input } = details
  return input
}

/** The dialog's display of the request. */
function summaryOf({ details, message }: GeminiPermissionRequest): string {
  const summary = textOf(details.command) ?? textOf(details.fileName) ?? textOf(details.toolName)
  return summary ?? message
}

function isAbout({ details }: GeminiPermissionRequest, { tool_name, tool_input }: GeminiToolUse): boolean {
  const command = textOf(details.command)
  if (command !== undefined) return tool_input.command === command
  const file = textOf(details.filePath)
  if (file !== undefined) return tool_input.file_path === file || tool_input.file_path === details.fileName
  const tool = textOf(details.toolName)
  return tool === undefined || tool_name.endsWith(tool)
}

/** The dialog's first option is selected, and its frame contains the whole request, however it is wrapped. */
function shows({ lines }: PaneScreen, request: GeminiPermissionRequest): boolean {
  const option = lines.findLastIndex((line) => /● 1\. Allow once/.test(line))
  const top = lines.findLastIndex((line, row) => row < option && /^\s*╭/.test(line))
  if (option < 0 || top < 0) return false
  return bare(lines.slice(top, option).join('')).includes(bare(summaryOf(request)))
}

const bare = (text: string) => text.replace(/[│╭╮╰╯─\s]/g, '')
