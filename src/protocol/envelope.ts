import type { Message, TaskMessageKind } from '../messages/message.ts'
import { escapeMarkers } from './response.ts'

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
