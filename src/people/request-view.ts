import { formatId, parseId } from '../base/ids.ts'
import type { Command } from '../protocol/command.ts'
import type { Reader } from '../store/store.ts'
import type { QuestionKind } from '../tasks/task.ts'
import type { FieldChange, GivenApproval, HumanDecision, HumanRequest } from './human-request.ts'
import { type ApprovalRow, type HumanRequestRow, hashOf, type RequestForm, readApprovals } from './people.ts'

export function formOf({ form }: Pick<HumanRequestRow, 'form'>): RequestForm {
  return JSON.parse(form) as RequestForm
}

/** The held command, if its hash is the one that people were asked about. */
export function intactAction(row: HumanRequestRow): Command | undefined {
  if (row.action === null || hashOf(row) !== row.action_hash) return undefined
  return JSON.parse(row.action) as Command
}

const OF_TASK: Partial<Record<QuestionKind, readonly HumanDecision[]>> = {
  user: ['answer'],
  query: ['answer'],
  help: ['approve', 'reject', 'answer'],
  extension: ['approve', 'reject'],
  takeover: ['answer', 'reject'],
}

/** The decisions that a request allows, regardless of who decides. */
export function decisionsOn(row: Pick<HumanRequestRow, 'purpose' | 'form'>): readonly HumanDecision[] {
  switch (row.purpose) {
    case 'question':
    case 'run':
      return ['answer']
    case 'notice':
      return ['approve']
    case 'permission':
      return ['approve', 'reject']
    case 'task': {
      const { asks } = formOf(row)
      return (asks === undefined ? undefined : OF_TASK[asks]) ?? ['approve', 'reject', 'answer']
    }
    default:
      return ['approve', 'reject', 'modify']
  }
}

/** A person's changes to the held action, by field. */
export function changesIn({ asked_action, action }: HumanRequestRow): Record<string, FieldChange> {
  if (asked_action === null || action === null) return {}
  const before = fieldsIn(asked_action)
  const after = fieldsIn(action)
  const changes: Record<string, FieldChange> = {}
  for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (JSON.stringify(before[field]) === JSON.stringify(after[field])) continue
    changes[field] = {
      ...(before[field] === undefined ? {} : { from: before[field] }),
      ...(after[field] === undefined ? {} : { to: after[field] }),
    }
  }
  return changes
}

function fieldsIn(action: string): Record<string, unknown> {
  try {
    return (JSON.parse(action) as Command).fields
  } catch {
    // Damaged on disk: never shown, never carried out.
    return {}
  }
}

export async function viewRequests(
  reader: Reader,
  rows: readonly HumanRequestRow[],
): Promise<HumanRequest[]> {
  const approvals = Map.groupBy(
    await readApprovals(
      reader,
      rows.filter(({ action }) => action !== null).map(({ id }) => id),
    ),
    ({ request }) => request,
  )
  return rows.map((row) => toHumanRequest(row, approvals.get(row.id) ?? []))
}

function toHumanRequest(row: HumanRequestRow, approvals: readonly ApprovalRow[]): HumanRequest {
  const { asks: _, ...answers } = formOf(row)
  const action = intactAction(row)
  const task = taskIn(row.context)
  return {
    id: formatId('req', row.id),
    kind: row.kind,
    state: row.state,
    asker: row.asker,
    question: row.question,
    reason: row.reason,
    ...(task === undefined ? {} : { taskId: task }),
    ...answers,
    ...(action === undefined ? {} : { action: { ...action, hash: row.action_hash! } }),
    ...(row.modified_by === null ? {} : { modified: { by: row.modified_by, changes: changesIn(row) } }),
    ...(row.approvers === null ? {} : { approvers: JSON.parse(row.approvers) as string[] }),
    ...(row.count === 1 ? {} : { count: row.count }),
    quorum: row.quorum,
    approvals: approvals.filter(({ action_hash }) => action_hash === row.action_hash).map(toGiven),
    decisions: row.state === 'open' ? decisionsOn(row) : [],
    createdAt: new Date(row.created_at).toISOString(),
    expiresAt: new Date(row.expires_at).toISOString(),
    ...(row.decided_at === null ? {} : { decidedAt: new Date(row.decided_at).toISOString() }),
    ...(row.decided_by === null ? {} : { decidedBy: row.decided_by }),
    ...(row.comment === null ? {} : { comment: row.comment }),
  }
}

function toGiven({ person, at, comment }: ApprovalRow): GivenApproval {
  return { by: person, at: new Date(at).toISOString(), ...(comment === null ? {} : { comment }) }
}

function taskIn(context: string): string | undefined {
  const { task } = JSON.parse(context) as { task?: string }
  return task !== undefined && parseId('task', task) !== undefined ? task : undefined
}
