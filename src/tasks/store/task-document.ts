import type { Task } from '../task.ts'

/** Fields that every document has. */
type RequiredFields = Pick<
  Task,
  | 'id'
  | 'delegator'
  | 'agent'
  | 'text'
  | 'timeoutMs'
  | 'maxAttempts'
  | 'createdAt'
  | 'state'
  | 'attempt'
  | 'version'
>
/** Other fields are omitted if they have their usual value. */
type TaskDocument = RequiredFields & Partial<Task>

const NONE = Object.freeze([])
const NO_CONTEXT = Object.freeze({})

/**
 * A task as its row stores it. Omitting empty fields halves the size, and gives fields of newer versions their empty
 * value in older documents. Every field is written out, because this runs for every event of a task and objects with
 * one fixed order of fields are several times faster.
 */
export function writeTask(task: Task): string {
  return JSON.stringify({
    id: task.id,
    parent: task.parent ?? undefined,
    root: task.root === task.id ? undefined : task.root,
    delegator: task.delegator,
    agent: task.agent,
    text: task.text,
    context: Object.keys(task.context).length === 0 ? undefined : task.context,
    requiresResponse: task.requiresResponse || undefined,
    depth: task.depth === 1 ? undefined : task.depth,
    hop: task.hop || undefined,
    checks: some(task.checks),
    judge: task.judge ?? undefined,
    resultSchema: task.resultSchema ?? undefined,
    timeoutMs: task.timeoutMs,
    maxAttempts: task.maxAttempts,
    createdAt: task.createdAt,
    state: task.state,
    attempt: task.attempt,
    failures: some(task.failures),
    version: task.version,
    acknowledgedAt: task.acknowledgedAt ?? undefined,
    endedAt: task.endedAt ?? undefined,
    result: task.result ?? undefined,
    reason: task.reason ?? undefined,
    due: task.due ?? undefined,
    remainingMs: task.remainingMs === task.timeoutMs ? undefined : task.remainingMs,
    questions: some(task.questions),
    seen: some(task.seen),
    claim: task.claim ?? undefined,
    claims: task.claims || undefined,
    evidence: some(task.evidence),
    rejections: task.rejections || undefined,
    reminders: task.reminders || undefined,
    followUps: task.followUps || undefined,
    delegations: task.delegations || undefined,
    awaiting: some(task.awaiting),
    sent: task.sent || undefined,
    unread: task.unread || undefined,
    interrupts: task.interrupts || undefined,
    interrupting: task.interrupting || undefined,
    takenOver: task.takenOver || undefined,
    held: task.held ?? undefined,
  } satisfies { [Field in keyof Task]: TaskDocument[Field] | undefined })
}

export function readTask(document: string): Task {
  const read = JSON.parse(document) as TaskDocument
  return {
    id: read.id,
    parent: read.parent ?? null,
    root: read.root ?? read.id,
    delegator: read.delegator,
    agent: read.agent,
    text: read.text,
    context: read.context ?? NO_CONTEXT,
    requiresResponse: read.requiresResponse ?? false,
    depth: read.depth ?? 1,
    hop: read.hop ?? 0,
    checks: read.checks ?? NONE,
    judge: read.judge ?? null,
    resultSchema: read.resultSchema ?? null,
    timeoutMs: read.timeoutMs,
    maxAttempts: read.maxAttempts,
    createdAt: read.createdAt,
    state: read.state,
    attempt: read.attempt,
    failures: read.failures ?? NONE,
    version: read.version,
    acknowledgedAt: read.acknowledgedAt ?? null,
    endedAt: read.endedAt ?? null,
    result: read.result ?? null,
    reason: read.reason ?? null,
    due: read.due ?? null,
    remainingMs: read.remainingMs ?? read.timeoutMs,
    questions: read.questions ?? NONE,
    seen: read.seen ?? NONE,
    claim: read.claim ?? null,
    claims: read.claims ?? 0,
    evidence: read.evidence ?? NONE,
    rejections: read.rejections ?? 0,
    reminders: read.reminders ?? 0,
    followUps: read.followUps ?? 0,
    delegations: read.delegations ?? 0,
    awaiting: read.awaiting ?? NONE,
    sent: read.sent ?? 0,
    unread: read.unread ?? false,
    interrupts: read.interrupts ?? 0,
    interrupting: read.interrupting ?? false,
    takenOver: read.takenOver ?? false,
    held: read.held ?? null,
  }
}

function some<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}
