import type { Message, TaskMessageKind } from '../messages/message.ts'
import type { Receipt } from './receipt.ts'

const OPENING = '[ORCHESTRATOR RESPONSE]'
const CLOSING = '[END ORCHESTRATOR RESPONSE]'

/** Renders the response to an agent's command for its terminal (S1.15). */
export function renderResponse(command: string, receipt: Receipt): string {
  const { result, details } = explain(command, receipt)
  return [
    OPENING,
    `Command: ${escapeMarkers(command)}`,
    `Status: ${receipt.status}`,
    `Result: ${escapeMarkers(result)}`,
    `Details: ${escapeMarkers(JSON.stringify(details, null, 2))}`,
    CLOSING,
  ].join('\n')
}

/** Renders a response block that belongs to no command. */
export function renderRemark(text: string): string {
  return [OPENING, 'Status: ok', `Result: ${escapeMarkers(text)}`, CLOSING].join('\n')
}

function explain(command: string, receipt: Receipt): { result: string; details: Record<string, unknown> } {
  const ignored = receipt.ignored === undefined ? {} : { ignored: receipt.ignored }
  switch (receipt.status) {
    case 'delivered': {
      const { status: _, ...details } = receipt
      return { result: 'Command executed', details }
    }
    case 'ok':
      return { result: receipt.result, details: { ...receipt.details, ...ignored } }
    case 'blocked':
      return {
        result: `${command === 'send_message' ? 'Message blocked' : 'Blocked'}: ${receipt.reason}`,
        details: { reason: receipt.reason, ...ignored },
      }
    case 'held':
      return { result: `Held: ${receipt.reason}`, details: { request_id: receipt.request_id, ...ignored } }
    case 'error': {
      const { status: _, ...details } = receipt
      return {
        result: receipt.hint === undefined ? receipt.message : `${receipt.message} ${receipt.hint}`,
        details,
      }
    }
  }
}

/**
 * Prevents text from agents from ending a block, starting one or looking like a command (C17). The brackets of our
 * markers become full-width look-alikes, which people can read and the scanner ignores.
 */
export function escapeMarkers(text: string): string {
  return text
    .replace(/\[(?=\s*(?:END\s+)?ORCH(?:ESTRATOR\s+RESPONSE|UB\s+MESSAGE))/gi, '［')
    .replace(/<(?=\s*\/?\s*orc-command)/gi, '＜')
    .replace(/(?<=["'])orc_command(?=["'])/gi, 'orc＿command')
}

/** Renders a message for an agent: sender, content and how to reply, in a frame that the scanner skips (C4). */
export function renderEnvelope(message: Message): string {
  const { task } = message
  const reply = task === undefined ? '' : REPLY[task.kind](task.id, message.id)
  return [
    `[ORCHUB MESSAGE ${message.id}]`,
    `From: ${message.from}`,
    `Title: ${oneLine(message.title)}`,
    `Priority: ${message.priority}`,
    ...(task === undefined ? [] : [`Task: ${task.id} (${task.kind})`]),
    ...(reply === '' ? [] : [`Reply with: ${reply}`]),
    '',
    escapeMarkers(withoutControls(message.content)),
    '',
    `[END ORCHUB MESSAGE ${message.id}]`,
  ].join('\n')
}

type Reply = (task: string, message: string) => string

const work: Reply = (task) =>
  `report in_response_to="${task}" status="completed", "partial" or "needs_help"; or query, request_user_input`
const decide: Reply = (task, message) =>
  `answer in_response_to="${message}"; or task_action task_id="${task}" action="follow_up", "accept", "fail" or "cancel"`
const nothing: Reply = () => ''

/** The commands that answer each kind of task message. */
const REPLY: Record<TaskMessageKind, Reply> = {
  delegate: work,
  follow_up: work,
  reminder: work,
  answer: work,
  children_ended: work,
  query: (_, message) => `answer in_response_to="${message}"`,
  extension: (task) => `task_action task_id="${task}" action="grant_extension" or "refuse_extension"`,
  partial: decide,
  needs_help: decide,
  review: (task) => `judge task_id="${task}" claim="…" completed="true" or "false", and the reason`,
  report: nothing,
  failed: nothing,
  cancelled: nothing,
}

function oneLine(text: string): string {
  return escapeMarkers(withoutControls(text).replace(/\s+/g, ' '))
}

/** Removes escape sequences and other controls, which could drive a terminal. Tabs and line ends stay: they are formatting. */
function withoutControls(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '')
}
