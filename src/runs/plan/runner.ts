import type { Path, Report } from '../../yaml/problem.ts'
import type { Runner } from '../plan.ts'
import type { RunnerInput } from './schema.ts'

const WAYS = ['command', 'agent', 'program', 'model'] as const

/** What does the work: one of four, or someone outside. */
export function resolveRunner(input: RunnerInput, path: Path, report: Report): Runner {
  const named = WAYS.filter((way) => input[way] !== undefined)
  const [way, second] = named
  if (second !== undefined) {
    const message = `"${way}" and "${second}" cannot both do the work`
    report([...path, second], message, `Keep one of ${named.join(', ')}.`, 'key')
  }
  if (input.runtime !== undefined && input.program === undefined) {
    report(
      [...path, 'runtime'],
      '"runtime" is for a program',
      'Add "program: claude-code", or remove it.',
      'key',
    )
  }
  if (input.with && way !== 'program' && way !== 'model') {
    report([...path, 'with'], '"with" is for a program or a model', 'Remove it.', 'key')
  }
  const settings = input.with ?? {}
  switch (way) {
    case 'command':
      return { kind: 'command', command: input.command! }
    case 'agent':
      return { kind: 'agent', agent: input.agent! }
    case 'program':
      return { kind: 'program', program: input.program!, runtime: input.runtime ?? 'tmux', with: settings }
    case 'model':
      return { kind: 'model', model: input.model!, with: settings }
    default:
      return { kind: 'files' }
  }
}
