import type { AuditDraft } from '../audit/entry.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { senderOf, type TaskEvent } from './core/event.ts'
import { isEnd, type Task } from './task.ts'

/** Builds the audit entries of tasks. */
export function createTaskAudit(cut: RedactedExcerpt) {
  return {
    cut,
    delegated: (task: Task): AuditDraft =>
      draft(task, 'delegated', task.delegator, `${task.id} for ${task.agent}: ${cut(task.text)}`),
    noted: (task: Task, text: string): AuditDraft =>
      draft(task, 'noted', ORCHESTRATOR, `${task.id}: ${cut(text)}`),
    /** New evidence about claims. Skipped steps and passed schemas are stored with the task only. */
    evidence(before: Task, task: Task): AuditDraft[] {
      const added = task.evidence.slice(before.evidence.length)
      return added
        .filter(({ step, outcome }) => outcome !== 'skipped' && !(step === 'schema' && outcome === 'passed'))
        .map(({ step, outcome, text }) => {
          const excerpt = cut(text)
          const entry = draft(task, 'evidence', ORCHESTRATOR, `${task.id}: ${step} ${outcome}: ${excerpt}`)
          return { ...entry, data: { ...entry.data, step, outcome, excerpt } }
        })
    },
    /** Undefined if neither state nor attempt changed. */
    moved(before: Task, task: Task, event: TaskEvent): AuditDraft | undefined {
      if (task.state === before.state && task.attempt === before.attempt) return undefined
      const why = isEnd(task.state) ? `: ${cut(task.reason ?? '')}` : ` (${event.type.replaceAll('_', ' ')})`
      const attempt =
        task.attempt === before.attempt ? '' : `, attempt ${task.attempt} of ${task.maxAttempts}`
      const text = `${task.id} is ${task.state}${attempt}${why}`
      return draft(task, task.state, senderOf(event) ?? ORCHESTRATOR, text)
    },
  }
}

export type TaskAudit = ReturnType<typeof createTaskAudit>

function draft(task: Task, what: string, actor: string, text: string): AuditDraft {
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
