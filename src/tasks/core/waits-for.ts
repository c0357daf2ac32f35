import type { Task, TaskClaim } from '../task.ts'

/** Says in words what a task waits for and on whom: the answer of `orc why`. */
export function waitsFor(task: Task): string[] {
  if (task.endedAt !== null) return []
  if (task.held !== null) return [`${task.held.by} to release it: ${task.held.reason}`]
  const questions = task.questions.map((one) => `${one.to} to ${actionOn(one)}: ${one.text}`)
  const children = task.awaiting.map((id) => `${id} to end`)
  if (questions.length + children.length > 0) return [...questions, ...children]
  if (task.claim !== null) return [validationOf(task, task.claim)]
  if (task.due?.kind === 'retry') return ['the next attempt']
  return [task.state === 'pending' ? `${task.agent} to take it` : `${task.agent} to report`]
}

/** A request for help has no id to name; the task's id is enough. */
function actionOn({ id, kind }: Task['questions'][number]): string {
  switch (kind) {
    case 'query':
    case 'user':
      return `answer ${id}`
    case 'approval':
    case 'extension':
      return `decide on ${id}`
    case 'help':
      return 'help or decide'
    case 'takeover':
      return 'finish it'
  }
}

function validationOf({ checks, judge }: Task, { number, step }: TaskClaim): string {
  const by = step === 'checks' ? `its checks (${checks.join(', ')})` : (judge?.name ?? 'nobody')
  return `${by} to validate claim ${number}`
}
