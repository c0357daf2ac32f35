import { DEFAULT_TASK_TIMEOUT_MS, type Task } from '../task.ts'
import { DEFAULT_MAX_ATTEMPTS } from './retries.ts'

type RequiredInDraft = Pick<Task, 'id' | 'delegator' | 'agent' | 'text' | 'createdAt'>
type OptionalInDraft = Pick<
  Task,
  'context' | 'requiresResponse' | 'checks' | 'judge' | 'resultSchema' | 'timeoutMs' | 'maxAttempts' | 'hop'
>

export type TaskDraft = RequiredInDraft & {
  [Field in keyof OptionalInDraft]?: OptionalInDraft[Field] | undefined
} & {
  parent?: Pick<Task, 'id' | 'root' | 'depth' | 'hop'> | undefined
}

/** A task before its first event. `reduce` with `delegated` decides whether it may start. */
export function newTask(draft: TaskDraft): Task {
  const { parent, timeoutMs = DEFAULT_TASK_TIMEOUT_MS } = draft
  return {
    id: draft.id,
    parent: parent?.id ?? null,
    root: parent?.root ?? draft.id,
    delegator: draft.delegator,
    agent: draft.agent,
    text: draft.text,
    context: draft.context ?? {},
    requiresResponse: draft.requiresResponse ?? true,
    depth: (parent?.depth ?? 0) + 1,
    hop: parent?.hop ?? draft.hop ?? 0,
    checks: draft.checks ?? [],
    judge: draft.judge ?? null,
    resultSchema: draft.resultSchema ?? null,
    timeoutMs,
    maxAttempts: draft.maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
    createdAt: draft.createdAt,
    state: 'pending',
    attempt: 1,
    failures: [],
    version: 0,
    acknowledgedAt: null,
    endedAt: null,
    result: null,
    reason: null,
    due: null,
    remainingMs: timeoutMs,
    questions: [],
    seen: [],
    claim: null,
    claims: 0,
    evidence: [],
    rejections: 0,
    reminders: 0,
    followUps: 0,
    delegations: 0,
    awaiting: [],
    sent: 0,
    unread: false,
    interrupts: 0,
    interrupting: false,
    takenOver: false,
    held: null,
  }
}
