import type { TaskStreamEvent } from '../../../api/contract.ts'
import { OPERATOR } from '../../../base/agent.ts'
import { clip, counted } from '../../output/layout.ts'
import { paint, plainLine } from '../../output/print.ts'

const SHOWN = 100

export function brief(text: string, length = SHOWN): string {
  return clip(plainLine(text.trim()), length)
}

/** A line on standard error for a person who waits for the answer; undefined for events they don't need. */
export function progressLine(event: TaskStreamEvent, root: string): string | undefined {
  const about = event.task_id === root ? '' : paint('dim', `${event.task_id}  `, 'err')
  switch (event.type) {
    case 'selected':
      return chosenText(event)
    case 'delegated':
      return event.task_id === root
        ? `${paint('bold', root, 'err')}  asking ${event.to}: ${brief(event.text)}`
        : `  ${event.from} → ${event.to}  ${paint('bold', event.task_id, 'err')}: ${brief(event.text)}`
    case 'state':
      return stateText(event, about)
    case 'message':
      return messageText(event, about)
    case 'asked':
      return event.awaits
        ? `  ${about}${paint('yellow', `${event.from} asks a person, ${event.request_id}`, 'err')}: ${brief(event.text)}`
        : `  ${about}${paint('yellow', `notice ${event.request_id}`, 'err')}: ${brief(event.text)}`
    case 'verdict':
      return `  ${about}${event.request_id} is ${event.verdict} by ${event.by}${event.text === '' ? '' : `: ${brief(event.text)}`}`
    case 'evidence':
      return event.outcome === 'skipped'
        ? undefined
        : `  ${about}${event.step} ${event.outcome}: ${brief(event.text)}`
    case 'note':
      return event.request_id === undefined ? undefined : `  ${about}${brief(event.text)}`
    case 'halt':
      return haltText(event)
    case 'end':
      return undefined
  }
}

/** Says why nothing moves, and how to resume. */
function haltText({ over, text }: TaskStreamEventOf<'halt'>): string {
  const words = over
    ? `${brief(text)}.`
    : `Orchub is halted; resume it with \`orc service go\`. ${brief(text)}.`
  return paint('yellow', words, 'err')
}

/** The text of a message without the context that a delegation adds. */
export function messageBrief({ text }: TaskStreamEventOf<'message'>): string {
  return brief(text.split('\n\nContext:\n', 1)[0]!)
}

/** A person's answer arrives as a verdict and again as a message with the same text; recognizes the second. */
export function createEchoFilter(): (event: TaskStreamEvent) => boolean {
  const verdicts = new Map<string, string>()
  const keyOf = ({ task_id }: TaskStreamEvent, to: string) => `${task_id} ${to}`
  return (event) => {
    if (event.type === 'verdict' && event.to !== undefined) verdicts.set(keyOf(event, event.to), event.text)
    if (event.type !== 'message' || event.kind !== 'answer' || event.from !== OPERATOR) return false
    const key = keyOf(event, event.to)
    const isEcho = verdicts.get(key) === event.text
    verdicts.delete(key)
    return isEcho
  }
}

type TaskStreamEventOf<T extends TaskStreamEvent['type']> = Extract<TaskStreamEvent, { type: T }>

function chosenText({ agent, chosen, why, by, unknown, root_why }: TaskStreamEventOf<'selected'>): string {
  const how = by === 'model' ? 'by the model' : 'by matching words'
  const lines = [
    ...(root_why === undefined ? [] : [`  ${agent} answers: ${brief(root_why, 200)}`]),
    `  ${paint('cyan', `chosen ${how}: ${chosen.join(', ') || 'no other agents'}`, 'err')}. ${brief(why, 200)}`,
  ]
  if (unknown.length > 0) {
    const what = counted(unknown.length, 'unknown name')
    lines.push(paint('dim', `  ignored ${what}: ${brief(unknown.join(', '))}`, 'err'))
  }
  return lines.join('\n')
}

/** Skips waiting states, which show in what the agent waits for. */
function stateText(
  { agent, state, attempt, text }: TaskStreamEventOf<'state'>,
  about: string,
): string | undefined {
  const why = brief(text.replace(/^\S+ is \w+(, attempt \d+ of \d+)?(: )?/, ''), 160)
  switch (state) {
    case 'analyzing':
      return `  ${about}${agent} is analyzing`
    case 'executing':
      return /\((started|acknowledged)\)$/.test(text) ? `  ${about}${agent} is working` : undefined
    case 'pending':
      return attempt > 1 ? `  ${about}${paint('yellow', `attempt ${attempt}`, 'err')} of ${agent}` : undefined
    case 'blocked':
    case 'failed':
    case 'cancelled':
    case 'skipped':
      return `  ${about}${paint('yellow', `${agent}: ${state}`, 'err')}. ${why}`
    case 'completed':
      return `  ${about}${paint('green', `${agent} is done`, 'err')}`
    default:
      return undefined
  }
}

/** Another event already shows these messages. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(['delegate', 'children_ended', 'failed', 'cancelled'])

/** A message to the operator is the answer itself, which is printed at the end. */
function messageText(event: TaskStreamEventOf<'message'>, about: string): string | undefined {
  const { kind, from, to } = event
  if (SHOWN_ELSEWHERE.has(kind) || to === OPERATOR) return undefined
  if (kind === 'reminder') return `  ${about}${paint('yellow', `reminding ${to} to report`, 'err')}`
  return `  ${about}${from} → ${to}  ${kind.replaceAll('_', ' ')}: ${messageBrief(event)}`
}
