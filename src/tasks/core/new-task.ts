import type { Task } from '../task.ts'
import { DEFAULT_MAX_ATTEMPTS } from './retries.ts'
import { DEFAULT_TIMEOUT_MS } from './settings.ts'

type Given = Pick<Task, 'id' | 'delegator' | 'agent' | 'text' | 'createdAt'>
type Optional = Pick<
  Task,
  'context' | 'requiresResponse' | 'checks' | 'judge' | 'resultSchema' | 'timeoutMs' | 'maxAttempts' | 'hop'
>

export type TaskDraft = Given & { [Field in keyof Optional]?: Optional[Field] | undefined } & {
  parent?: Pick<Task, 'id' | 'root' | 'depth' | 'hop'> | undefined
}

/** A task before anything has happened to it; `step` with `delegated` says whether it may begin. */
export function newTask(given: TaskDraft): Task {
  const { parent, timeoutMs = DEFAULT_TIMEOUT_MS } = given
  return {
    id: given.id,
    parent: parent?.id ?? null,
    root: parent?.root ?? given.id,
    delegator: given.delegator,
    agent: given.agent,
    text: given.text,
    context: given.context ?? {},
    requiresResponse: given.requiresResponse ?? true,
    depth: (parent?.depth ?? 0) + 1,
    hop: parent?.hop ?? given.hop ?? 0,
    checks: given.checks ?? [],
    judge: given.judge ?? null,
    resultSchema: given.resultSchema ?? null,
    timeoutMs,
    maxAttempts: given.maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
    createdAt: given.createdAt,
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
