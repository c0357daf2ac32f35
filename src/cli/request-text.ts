import type { AnswerOf } from '../service/contract.ts'
import { indent, shortTime } from './mail-text.ts'
import { paint, plain, plainLine } from './output.ts'

export type HumanRequest = AnswerOf<'humanRequests'>['requests'][number]

/** What is asked, why, the very command that is held, and how to answer. */
export function requestText(request: HumanRequest): string {
  const { id, kind, state, asker, question, reason, action, created_at, expires_at } = request
  const lines = [
    `${paint('bold', id)}  ${paint(state === 'open' ? 'yellow' : 'dim', `${kind}, ${state}`)}  ${plainLine(question)}`,
    `  asked by ${asker} at ${shortTime(created_at)}: ${plainLine(reason)}`,
  ]
  if (action !== undefined) {
    lines.push(`  the command: ${action.type}`)
    for (const [name, value] of Object.entries(action.fields)) {
      if (value !== undefined && value !== null) lines.push(fieldText(name, value))
    }
  }
  if (state === 'open') {
    const ways = kind === 'input' ? [`orc answer ${id} TEXT`] : [`orc approve ${id}`, `orc reject ${id}`]
    lines.push(paint('dim', `  ${ways.join(', or ')}; until ${shortTime(expires_at)}`))
  } else
    lines.push(
      `  ${state}${request.decided_by === undefined ? '' : ` by ${request.decided_by}`}${commentText(request)}`,
    )
  return lines.join('\n')
}

/** A person decides on what it shows, so that it is shown whole, and indented so that no line of it passes for ours. */
function fieldText(name: string, value: unknown): string {
  const text = plain(typeof value === 'string' ? value : JSON.stringify(value))
  return text.includes('\n') ? `    ${name}:\n${indent(indent(text))}` : `    ${name}: ${text}`
}

function commentText({ comment }: HumanRequest): string {
  return comment === undefined ? '' : `: ${plainLine(comment)}`
}
