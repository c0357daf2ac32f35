import type { AnswerOf } from '../../api/contract.ts'
import { indent, shortTime } from './message-text.ts'
import { paint, plain, plainLine } from './print.ts'

export type HumanRequest = AnswerOf<'humanRequests'>['requests'][number]

/** What is asked, why, the very command that is held, who has approved it, and how to answer. */
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

/** The choices by their numbers; the default is marked. */
export function choiceLines({ choices = [], default: standard, allow_other }: HumanRequest): string[] {
  const lines = choices.map((choice, index) => {
    const mark = choice.toLowerCase() === standard?.toLowerCase() ? '  (if you say nothing)' : ''
    return `    ${index + 1}  ${plainLine(choice)}${mark}`
  })
  if (allow_other === true) lines.push('    or an answer of your own')
  const isListed = choices.some((choice) => choice.toLowerCase() === standard?.toLowerCase())
  if (standard !== undefined && !isListed) lines.push(`  if you say nothing: ${plainLine(standard)}`)
  return lines
}

function actionLines({ action, modified }: HumanRequest): string[] {
  if (action === undefined) return []
  const fields = Object.entries(action.fields).filter(([, value]) => value !== undefined && value !== null)
  const changes = Object.entries(modified?.changes ?? {})
  return [
    `  the command: ${action.type}`,
    ...fields.map(([name, value]) => fieldText(name, value)),
    ...(modified === undefined ? [] : [`  changed by ${modified.by}; it was:`]),
    ...changes.map(([name, { from }]) => fieldText(name, from ?? '(nothing)')),
  ]
}

/** A person decides on what it shows, so that it is shown whole, and indented so that no line of it passes for ours. */
function fieldText(name: string, value: unknown): string {
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

/** Whose approval is still missing. */
export function missingText({ approvals, quorum, approvers }: HumanRequest): string {
  const left = approvers?.filter((name) => !approvals.some(({ by }) => by === name))
  const whose = left === undefined ? '' : ` of ${left.join(', ')}`
  return `${approvals.length} of ${quorum} approvals; waits for ${quorum - approvals.length} more${whose}`
}

function wayLines(request: HumanRequest): string[] {
  const { decisions, expires_at } = request
  const until = `until ${shortTime(expires_at)}`
  if (decisions.length === 0) return [paint('dim', `  for others to decide; ${until}`)]
  const ways = decisions.map((decision) => wayText(request, decision))
  const lines = isPlea(request)
    ? [...ways, `orc task-action --task-id ${request.task_id} --action follow_up|skip|cancel|take_over TEXT`]
    : [ways.join(', or ')]
  return [...lines.slice(0, -1), `${lines.at(-1)}; ${until}`].map((line) => paint('dim', `  ${line}`))
}

/** A task that needs help: its worker waits for a decision on how it goes on. */
function isPlea({ kind, decisions, task_id }: HumanRequest): boolean {
  return kind === 'escalation' && task_id !== undefined && decisions.length === 3
}

function wayText(request: HumanRequest, decision: HumanRequest['decisions'][number]): string {
  const { id, action, modified, kind, decisions } = request
  const plea = isPlea(request)
  // Of what somebody changed, each must say that they have seen it.
  const seen = modified === undefined ? '' : ` --hash ${action?.hash.slice(0, 12)}`
  switch (decision) {
    case 'answer':
      return plea
        ? `orc answer ${id} TEXT, which tells the worker how to go on`
        : `orc answer ${id} ${request.choices === undefined ? 'TEXT' : 'NUMBER|TEXT'}`
    case 'approve':
      if (plea) return `orc approve ${id}, which accepts it as done`
      if (kind === 'escalation' && decisions.length === 1) return `orc approve ${id}, which puts it away`
      return `orc approve ${id}${seen}`
    case 'reject':
      return plea ? `orc reject ${id}, which gives it up as failed` : `orc reject ${id}`
    case 'modify':
      return `orc modify ${id}${seen} FIELD=VALUE…`
  }
}
