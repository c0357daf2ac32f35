/** What agents and people read. Plain sentences that say what is expected next; the engine adds how to say it. */
import type { Task } from '../model/task.ts'
import type { Child } from './tree.ts'

/** Enough to recognise a task by. */
function named({ id, text }: Pick<Task, 'id' | 'text'>): string {
  const first = text.trim().split('\n', 1)[0]!
  return `${id} (${first.length > 80 ? `${first.slice(0, 79)}…` : first})`
}

export function delegateText(task: Task, children: readonly Child[]): string {
  if (task.attempt === 1) return task.text
  const known = children.length === 0 ? '' : `\nDelegated so far:\n${childLines(children)}`
  return `${task.text}\n\nThis is attempt ${task.attempt} of ${task.maxAttempts}. Go on from what is already done.${known}`
}

export function childLines(children: readonly Child[]): string {
  return children
    .map(({ id, agent, state, result, reason }) => {
      const words = (state === 'completed' ? result : reason) ?? ''
      return `- ${id} ${agent}: ${state}${words === '' ? '' : `. ${words}`}`
    })
    .join('\n')
}

export function wakeText(task: Task, children: readonly Child[]): string {
  return `All that was delegated for ${named(task)} has ended:\n${childLines(children)}\nGo on with it, and report.`
}

export function reminderText(task: Task, waiting: readonly Child[]): string {
  const others =
    waiting.length === 0 ? '' : ` ${waiting.map(({ id }) => id).join(', ')} cannot go on without your answer.`
  return `${named(task)} is still open.${others} If it is done, report completed; if not, report partial or needs_help, or ask.`
}

export function forgotText(task: Task, lastWords: string): string {
  const words = lastWords.trim() === '' ? 'It said nothing.' : `Last it said:\n${lastWords}`
  return `${task.agent} ended its turn on ${named(task)} without a report, and did not follow ${task.reminders} reminders. ${words}`
}

export function rejectionText(task: Task, why: string): string {
  return `The report on ${named(task)} was not accepted: ${why}\nPut it right and report again.`
}

export function gaveUpText(task: Task, why: string): string {
  return `The report on ${named(task)} was not accepted, and it is yours to decide: ${why}\nReported: ${task.result ?? ''}`
}

export function outcomeText(task: Task): string {
  if (task.state === 'completed' && task.result !== null) return task.result
  const partial = task.result === null ? '' : `\nReported before that: ${task.result}`
  return `${named(task)} for ${task.agent} ${task.state}: ${task.reason}${partial}`
}

export function silenceText(question: string): string {
  return `Nobody answered in time: ${question}\nGo on as well as you can without an answer, and say so in the report.`
}

export function verdictText(question: string, verdict: string, comment: string | undefined): string {
  const remark = comment === undefined || comment.trim() === '' ? '' : ` A person remarks: ${comment}`
  return `${verdict[0]!.toUpperCase()}${verdict.slice(1)}: ${question}.${remark}`
}

export function takeoverText(task: Task): string {
  return `You took over ${named(task)} from ${task.agent}. Report its result, or follow up to give it back.`
}
