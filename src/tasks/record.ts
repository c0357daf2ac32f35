import type { AuditDraft } from '../audit/entry.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { byOf, type Happening } from './core/event.ts'
import { isEnd, type Task } from './task.ts'

/** What the audit tells of tasks. */
export function createRecord(cut: RedactedExcerpt) {
  return {
    cut,
    delegated: (task: Task): AuditDraft =>
      entry(task, 'delegated', task.delegator, `${task.id} for ${task.agent}: ${cut(task.text)}`),
    noted: (task: Task, text: string): AuditDraft =>
      entry(task, 'noted', ORCHESTRATOR, `${task.id}: ${cut(text)}`),
    /** What was found out about its claims since. What says nothing new is with the task only. */
    found(before: Task, task: Task): AuditDraft[] {
      const found = task.evidence.slice(before.evidence.length)
      return found
        .filter(({ step, outcome }) => outcome !== 'skipped' && !(step === 'schema' && outcome === 'passed'))
        .map(({ step, outcome, text }) => {
          const excerpt = cut(text)
          const about = entry(task, 'evidence', ORCHESTRATOR, `${task.id}: ${step} ${outcome}: ${excerpt}`)
          return { ...about, data: { ...about.data, step, outcome, excerpt } }
        })
    },
    /** Undefined where neither the state nor the attempt changed. */
    moved(before: Task, task: Task, event: Happening): AuditDraft | undefined {
      if (task.state === before.state && task.attempt === before.attempt) return undefined
      const why = isEnd(task.state) ? `: ${cut(task.reason ?? '')}` : ` (${event.type.replaceAll('_', ' ')})`
      const attempt =
        task.attempt === before.attempt ? '' : `, attempt ${task.attempt} of ${task.maxAttempts}`
      const text = `${task.id} is ${task.state}${attempt}${why}`
      return entry(task, task.state, byOf(event) ?? ORCHESTRATOR, text)
    },
  }
}

export type TaskRecord = ReturnType<typeof createRecord>

function entry(task: Task, what: string, actor: string, text: string): AuditDraft {
  const { id, parent, root, state, attempt, delegator, agent } = task
  return {
    type: `task.${what}`,
    class: 'internal',
    actor,
    subject: agent,
    text,
    data: { task_id: id, parent, root, state, attempt, delegator, agent },
  }
}
