import type { AnswerOf, TaskStreamEvent } from '../../../api/contract.ts'
import { OPERATOR } from '../../../base/agent.ts'
import { brief, saidBrief } from './task-event-text.ts'

type TraceSteps = Pick<AnswerOf<'trace'>, 'steps'>

/** Renders a trace as a Mermaid sequence diagram. */
export function sequenceDiagram({ steps }: TraceSteps): string {
  const names = new Map<string, string>()
  const idOf = (name: string) => {
    if (!names.has(name)) names.set(name, `p${names.size}`)
    return names.get(name)!
  }
  const lines = steps.flatMap((step) => lineOf(step, idOf) ?? [])
  const participants = [...names].map(
    ([name, id]) => `${name === OPERATOR ? 'actor' : 'participant'} ${id} as ${label(name)}`,
  )
  return ['sequenceDiagram', ...[...participants, ...lines].map((line) => `  ${line}`)].join('\n')
}

const DOTTED: ReadonlySet<string> = new Set([
  'answer',
  'report',
  'partial',
  'needs_help',
  'failed',
  'cancelled',
])

function lineOf(step: TaskStreamEvent, idOf: (name: string) => string): string | undefined {
  const note = (over: string, text: string) => `Note over ${idOf(over)}: ${label(text)}`
  switch (step.type) {
    case 'selected':
      return note(step.agent, `chosen: ${step.chosen.join(', ') || 'nobody'}. ${brief(step.why)}`)
    case 'message': {
      const { from, to, kind, task_id, attempts = 1 } = step
      const arrow = DOTTED.has(kind) ? '-->>' : '->>'
      const again = attempts > 1 ? `, given ${attempts} times` : ''
      return `${idOf(from)}${arrow}${idOf(to)}: ${label(`${kind} ${task_id}${again}: ${saidBrief(step)}`)}`
    }
    case 'asked':
      return `${idOf(step.from)}->>${idOf(OPERATOR)}: ${label(`${step.kind} ${step.request_id}: ${brief(step.text)}`)}`
    case 'verdict': {
      const { to, by, request_id, verdict, text } = step
      const said = `${verdict} ${request_id}${text === '' ? '' : `: ${brief(text)}`}`
      return to === undefined ? note(by, said) : `${idOf(by)}-->>${idOf(to)}: ${label(said)}`
    }
    case 'state':
      return isShownState(step) ? note(step.agent, brief(step.text)) : undefined
    case 'evidence':
      return note(step.agent, `${step.task_id} ${step.step} ${step.outcome}: ${brief(step.text)}`)
    case 'halt':
      return note(step.by, brief(step.text))
    case 'delegated':
    case 'note':
    case 'end':
      return undefined
  }
}

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'skipped', 'blocked'])

/** Only ends and new attempts; waiting shows in the messages. */
export function isShownState({ state, attempt, text }: Extract<TaskStreamEvent, { type: 'state' }>): boolean {
  return ENDS.has(state) || (attempt > 1 && text.includes(', attempt '))
}

/**
 * Escapes text for Mermaid: everything but letters, digits and a few signs becomes an entity, so that nothing ends the
 * line, starts a comment or directive, or counts as markup. Mermaid marks entities with the ligature itself.
 */
function label(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\p{L}\p{N} .,()/_!?'+=-]|ﬂ/gu, (character) => `#${character.codePointAt(0)};`)
}
