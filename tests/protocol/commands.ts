/** A small command table for the scanner, and short forms of its results. */
import type { CommandShape, KnownCommands, Scanned } from '../../src/protocol/codec.ts'
import { scanText } from '../../src/protocol/scanner.ts'

const TABLE: CommandShape[] = [
  shape('send_message', ['from', 'to', 'title', 'priority', 'content'], 'content'),
  shape('mailbox_check', []),
  shape('list_agents', []),
  shape('query_mailbox', ['agent', 'filter']),
  shape('update_status', ['agent', 'status', 'current_task'], 'current_task'),
  shape('request_action', ['from', 'action', 'target', 'reason'], 'reason'),
  shape('hire', ['name', 'wage']),
]

function shape(type: string, fields: string[], body?: string): CommandShape {
  return body === undefined ? { type, fields: new Set(fields) } : { type, fields: new Set(fields), body }
}

export const known: KnownCommands = (type) => TABLE.find((one) => one.type === type)

export const scan = (text: string | Uint8Array): Scanned[] => scanText(text, known)

/** A command as its type and fields, a problem as its code. */
export type Brief = string | [type: string, fields: Record<string, string>]

export function brief(found: Scanned): Brief {
  return found.ok ? [found.type, found.fields] : found.code
}

export const briefly = (text: string | Uint8Array): Brief[] => scan(text).map(brief)

/** The one command in the text; fails if there is anything else. */
export function only(text: string | Uint8Array) {
  const [found, ...others] = scan(text)
  if (found === undefined || others.length > 0) throw new Error(`${1 + others.length} findings, not one`)
  if (!found.ok) throw new Error(`${found.code}: ${found.message}`)
  return found
}

/** The one problem in the text. */
export function onlyProblem(text: string | Uint8Array) {
  const [found, ...others] = scan(text)
  if (found === undefined || others.length > 0) throw new Error(`${scan(text).length} findings, not one`)
  if (found.ok) throw new Error(`a command: ${found.type}`)
  return found
}

export const CHECK = '<orc-command name="mailbox_check"/>'
export const LIST = '<orc-command name="list_agents"/>'
export const SEND = '<orc-command name="send_message" to="B">'
export const END = '</orc-command>'
