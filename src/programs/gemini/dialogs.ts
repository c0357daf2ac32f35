import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PermissionVerdict, SessionPort } from '../../runtimes/runtime.ts'
import type { Pane, Screen } from '../program.ts'
import type { EventOf } from './hook-event.ts'

type Request = EventOf<'Notification'>
type ToolUse = Pick<EventOf<'BeforeTool'>, 'tool_name' | 'tool_input'>

interface Dialog {
  readonly request: Request
  readonly closing: AbortController
}

/** The next dialog is drawn a little after the one before it was answered. */
const LOOKS = 8
const LOOK_EVERY_MS = 250

export interface DialogOptions {
  readonly port: Pick<SessionPort, 'asked'>
  readonly pane: Pick<Pane, 'screen' | 'press'>
  /** What a person said with a no, for the agent's next turn: the program ends the turn without a word to it. */
  refused(what: string): void
  warn(text: string): void
}

/**
 * Permission dialogs. The program's hook only tells of them; a verdict from outside is given as a person would give
 * it, by a key, when the very dialog is seen on the screen right then, and no other of those that are open.
 */
export function createDialogs({ port, pane, refused, warn }: DialogOptions) {
  let open: readonly Dialog[] = []
  let asked = 0

  function settle(ended: (dialog: Dialog) => boolean) {
    const closed = open.filter(ended)
    open = open.filter((dialog) => !closed.includes(dialog))
    for (const { closing } of closed) closing.abort()
  }

  /** Asked again when a verdict cannot be given, so that no person believes it was. */
  async function ask(dialog: Dialog, why = '') {
    asked += 1
    const { request, closing } = dialog
    const what = JSON.stringify([request.session_id, request.details, Date.now(), asked])
    const question = {
      key: `dialog-${createHash('sha256').update(what).digest('base64url').slice(0, 16)}`,
      tool: toolOf(request),
      input: inputOf(request),
      reason: `${why}${request.message}. A no ends the agent's turn.`,
    }
    const verdict = await port.asked(question, closing.signal)
    if (verdict === undefined) return
    const failure = await answer(dialog, verdict).catch(reasonOf)
    if (failure === undefined || !open.includes(dialog)) return
    warn(`a verdict was not given: ${failure}`)
    await ask(
      dialog,
      `Your verdict was not given: ${failure}. Answer in the agent's terminal, or here again. `,
    )
  }

  /** Says why not, if it could not be given. */
  async function answer(dialog: Dialog, { allow, comment }: PermissionVerdict): Promise<string | undefined> {
    for (let look = 0; look < LOOKS; look++) {
      if (look > 0) await sleep(LOOK_EVERY_MS)
      const screen = await pane.screen()
      if (!open.includes(dialog)) return undefined
      const seen = open.filter(({ request }) => shows(screen, request))
      if (seen.length !== 1 || seen[0] !== dialog) continue
      await pane.press([allow ? '1' : 'Escape'])
      if (!allow)
        refused(`A person said no to this: ${gistOf(dialog.request)}${comment ? `\n${comment}` : ''}`)
      return undefined
    }
    if (open.length > 1) return 'another dialog of the agent is open as well, and stands before it'
    return 'the dialog is not on the screen as it is known, or not in full'
  }

  return {
    get isOpen() {
      return open.length > 0
    },
    ask(request: Request) {
      const dialog = { request, closing: new AbortController() }
      open = [...open, dialog]
      ask(dialog).catch((error: unknown) => warn(`nobody could be asked: ${reasonOf(error)}`))
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

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

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
