import { createHash } from 'node:crypto'
import type { PermissionVerdict, SessionPort } from '../../runtimes/runtime.ts'
import type { Pane, Screen } from '../program.ts'
import type { EventOf } from './hook-event.ts'

type Request = EventOf<'Notification'>
type ToolUse = Pick<EventOf<'BeforeTool'>, 'tool_name' | 'tool_input'>

interface Dialog {
  readonly request: Request
  readonly closing: AbortController
}

export interface DialogOptions {
  readonly port: Pick<SessionPort, 'asked'>
  readonly pane: Pick<Pane, 'screen' | 'press'>
  /** What a person said with a no, for the agent's next turn: the program ends the turn without a word to it. */
  refused(what: string): void
  warn(text: string): void
}

/**
 * Permission dialogs. The program's hook only tells of them; a verdict from outside is given as a person would give
 * it, by a key, when the very dialog is seen on the screen right then.
 */
export function createDialogs({ port, pane, refused, warn }: DialogOptions) {
  let open: readonly Dialog[] = []
  let asked = 0

  function settle(ended: (dialog: Dialog) => boolean) {
    const closed = open.filter(ended)
    open = open.filter((dialog) => !closed.includes(dialog))
    for (const { closing } of closed) closing.abort()
  }

  async function answer(dialog: Dialog, { allow, comment }: PermissionVerdict) {
    const screen = await pane.screen()
    if (!open.includes(dialog)) return
    if (open.length > 1 || !shows(screen, dialog.request)) {
      warn('a verdict was not given: the dialog is not on the screen as it is known; answer it in the pane')
      return
    }
    await pane.press([allow ? '1' : 'Escape'])
    if (!allow) refused(`A person said no to this: ${gistOf(dialog.request)}${comment ? `\n${comment}` : ''}`)
  }

  return {
    get isOpen() {
      return open.length > 0
    },
    ask(request: Request) {
      asked += 1
      const dialog = { request, closing: new AbortController() }
      open = [...open, dialog]
      const what = JSON.stringify([request.session_id, request.details, Date.now(), asked])
      const question = {
        key: `dialog-${createHash('sha256').update(what).digest('base64url').slice(0, 16)}`,
        tool: toolOf(request),
        input: inputOf(request),
        reason: `${request.message}. A no ends the agent's turn.`,
      }
      void port
        .asked(question, dialog.closing.signal)
        .then((verdict) => verdict && answer(dialog, verdict))
        .catch((error: unknown) => warn(`a verdict was not given: ${(error as Error).message}`))
    },
    /** A tool runs, or has run: its dialog is no more. */
    used(use: ToolUse) {
      settle(({ request }) => isAbout(request, use))
    },
    settleAll() {
      settle(() => true)
    },
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

function toolOf({ details }: Request): string {
  return textOf(details.toolName) ?? textOf(details.type) ?? 'tool'
}

/** Whole files stay out: the difference says it. */
function inputOf({ details }: Request): Record<string, unknown> {
  const { type: _type, title: _title, originalContent: _old, newContent: _new, ...input } = details
  return input
}

/** What the dialog shows of what it asks for. */
function gistOf({ details, message }: Request): string {
  const gist = textOf(details.command) ?? textOf(details.fileName) ?? textOf(details.toolName)
  return gist ?? message
}

function isAbout({ details }: Request, { tool_name, tool_input }: ToolUse): boolean {
  const command = textOf(details.command)
  if (command !== undefined) return tool_input.command === command
  const file = textOf(details.filePath)
  if (file !== undefined) return tool_input.file_path === file || tool_input.file_path === details.fileName
  const tool = textOf(details.toolName)
  return tool === undefined || tool_name.endsWith(tool)
}

/** Its first option is chosen, and all of what it asks for stands within its frame, however it is broken into lines. */
function shows({ lines }: Screen, request: Request): boolean {
  const option = lines.findLastIndex((line) => /● 1\. Allow once/.test(line))
  const top = lines.findLastIndex((line, row) => row < option && /^\s*╭/.test(line))
  if (option < 0 || top < 0) return false
  return bare(lines.slice(top, option).join('')).includes(bare(gistOf(request)))
}

const bare = (text: string) => text.replace(/[│╭╮╰╯─\s]/g, '')
