import type { HumanRequest } from '../../people/api.ts'
import { paint, plain, plainLine } from './print.ts'
import { indent, shortTime } from './receipt-text.ts'

export type { HumanRequest }

/** The question, the reason, the exact command that is held, who has approved it, and how to answer. */
export function requestText(request: HumanRequest): string {
  const { id, kind, state, asker, question, reason, created_at, task_id } = request
  const lines = [
    `${paint('bold', id)}  ${paint(state === 'open' ? 'yellow' : 'dim', `${kind}, ${state}`)}  ${plainLine(question)}`,
    `  asked by ${asker} at ${shortTime(created_at)}${task_id === undefined ? '' : ` for ${task_id}`}: ${plainLine(reason)}`,
    ...choiceLines(request),
    ...actionLines(request),
    ...approvalLines(request),
  ]
  if (state === 'open') lines.push(...wayLines(request))
  else {
    const by = request.decided_by === undefined ? '' : ` by ${request.decided_by}`
    const comment = request.comment === undefined ? '' : `: ${plainLine(request.comment)}`
    lines.push(`  ${state}${by}${comment}`)
  }
  return lines.join('\n')
}

/** Numbered choices with the default marked. */
export function choiceLines({ choices = [], default: standard, allow_other }: HumanRequest): string[] {
  const lines = choices.map((choice, index) => {
    const mark = choice.toLowerCase() === standard?.toLowerCase() ? '  (default if you do not answer)' : ''
    return `    ${index + 1}  ${plainLine(choice)}${mark}`
  })
  if (allow_other === true) lines.push('    or your own answer')
  const isListed = choices.some((choice) => choice.toLowerCase() === standard?.toLowerCase())
  if (standard !== undefined && !isListed)
    lines.push(`  default if you do not answer: ${plainLine(standard)}`)
  return lines
}

function actionLines({ action, modified }: HumanRequest): string[] {
  if (action === undefined) return []
  const fields = Object.entries(action.fields).filter(([, value]) => value !== undefined && value !== null)
  const changes = Object.entries(modified?.changes ?? {})
  return [
    `  command: ${action.type}`,
    ...fields.map(([name, value]) => fieldText(name, value)),
    ...(modified === undefined ? [] : [`  changed by ${modified.by}; before:`]),
    ...changes.map(([name, { from }]) => fieldText(name, from ?? '(nothing)')),
  ]
}

/** The whole value, indented so that no line of it can imitate our own output. */
export function fieldText(name: string, value: unknown): string {
  const text = plain(typeof value === 'string' ? value : JSON.stringify(value))
  return text.includes('\n') ? `    ${name}:\n${indent(indent(text))}` : `    ${name}: ${text}`
}

function approvalLines(request: HumanRequest): string[] {
  const given = request.approvals.map(
    ({ by, at, comment }) =>
      `  approved by ${by} at ${shortTime(at)}${comment === undefined ? '' : `: ${plainLine(comment)}`}`,
  )
  const wantsMany = request.quorum > 1 || request.approvers !== undefined
  const isMissing = request.state === 'open' && request.action !== undefined && wantsMany
  return isMissing ? [...given, `  ${missingText(request)}`] : given
}

export function missingText({ approvals, quorum, approvers }: HumanRequest): string {
  const left = approvers?.filter((name) => !approvals.some(({ by }) => by === name))
  const whose = left === undefined ? '' : ` from ${left.join(', ')}`
  return `${approvals.length} of ${quorum} approvals; ${quorum - approvals.length} more needed${whose}`
}

function wayLines(request: HumanRequest): string[] {
  const { decisions, expires_at } = request
  const until = expires_at === undefined ? '' : `; until ${shortTime(expires_at)}`
  if (decisions.length === 0) return [paint('dim', `  someone else has to decide${until}`)]
  const ways = decisions.map((decision) => wayText(request, decision))
  const lines = isHelpRequest(request)
    ? [...ways, `orc task-action --task-id ${request.task_id} --action follow_up|skip|cancel|take_over TEXT`]
    : [ways.join(', or ')]
  return [...lines.slice(0, -1), `${lines.at(-1)}${until}`].map((line) => paint('dim', `  ${line}`))
}

/** A task that needs help: its worker waits for a decision on how to continue. */
function isHelpRequest({ kind, decisions, task_id }: HumanRequest): boolean {
  return kind === 'escalation' && task_id !== undefined && decisions.length === 3
}

function wayText(request: HumanRequest, decision: HumanRequest['decisions'][number]): string {
  const { id, action, modified, kind, decisions } = request
  const needsHelp = isHelpRequest(request)
  // After somebody changed the command, each approver confirms the version they saw by its hash.
  const seen = modified === undefined ? '' : ` --hash ${action?.hash.slice(0, 12)}`
  switch (decision) {
    case 'answer':
      return needsHelp
        ? `orc answer ${id} TEXT tells the worker how to continue`
        : `orc answer ${id} ${request.choices === undefined ? 'TEXT' : 'NUMBER|TEXT'}`
    case 'approve':
      if (needsHelp) return `orc approve ${id} accepts the task as done`
      if (kind === 'escalation' && decisions.length === 1) return `orc approve ${id} dismisses it`
      return `orc approve ${id}${seen}`
    case 'reject':
      return needsHelp ? `orc reject ${id} marks the task as failed` : `orc reject ${id}`
    case 'modify':
      return `orc modify ${id}${seen} FIELD=VALUE…`
  }
}
