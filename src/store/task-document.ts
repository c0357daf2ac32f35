import type { Task } from '../model/task.ts'

const NONE = Object.freeze([])

/** What most tasks have nothing of. */
const EMPTY = Object.freeze({
  parent: null,
  context: Object.freeze({}),
  requiresResponse: false,
  hop: 0,
  checks: NONE,
  judge: null,
  resultSchema: null,
  failures: NONE,
  acknowledgedAt: null,
  endedAt: null,
  result: null,
  reason: null,
  due: null,
  questions: NONE,
  seen: NONE,
  claim: null,
  claims: 0,
  evidence: NONE,
  rejections: 0,
  reminders: 0,
  followUps: 0,
  delegations: 0,
  awaiting: NONE,
  sent: 0,
  unread: false,
  interrupts: 0,
  interrupting: false,
  takenOver: false,
  held: null,
} satisfies Partial<Task>)

/**
 * A task as its row keeps it. What is empty is left out, which halves it; and a field that a newer version brings has its
 * empty value in the documents of before. Spelt out, because this is done twice for every delegation and a loop over the
 * names takes three times as long.
 */
export function writeTask(task: Task): string {
  return JSON.stringify({
    ...task,
    parent: task.parent ?? undefined,
    context: Object.keys(task.context).length === 0 ? undefined : task.context,
    requiresResponse: task.requiresResponse || undefined,
    hop: task.hop || undefined,
    checks: some(task.checks),
    judge: task.judge ?? undefined,
    resultSchema: task.resultSchema ?? undefined,
    failures: some(task.failures),
    acknowledgedAt: task.acknowledgedAt ?? undefined,
    endedAt: task.endedAt ?? undefined,
    result: task.result ?? undefined,
    reason: task.reason ?? undefined,
    due: task.due ?? undefined,
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
  } satisfies Record<keyof typeof EMPTY, unknown>)
}

export function readTask(document: string): Task {
  return { ...EMPTY, ...(JSON.parse(document) as Omit<Task, keyof typeof EMPTY>) }
}

function some<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}
