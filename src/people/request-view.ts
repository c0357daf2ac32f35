import { formatId, parseId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import type { Command } from '../protocol/command.ts'
import type { Reader } from '../store/store.ts'
import type { QuestionKind } from '../tasks/task.ts'
import type { HumanRequest } from './api.ts'
import type { HumanDecision } from './human-request.ts'
import {
  type ApprovalRow,
  type HumanRequestRow,
  hashOf,
  NEVER,
  type RequestForm,
  readApprovals,
} from './people.ts'

export function formOf({ form }: Pick<HumanRequestRow, 'form'>): RequestForm {
  return JSON.parse(form) as RequestForm
}

/** The held command; undefined if it no longer matches the hash that people were asked about. */
export function intactAction(row: HumanRequestRow): Command | undefined {
  if (row.action === null || hashOf(row) !== row.action_hash) return undefined
  return JSON.parse(row.action) as Command
}

/** The possible decisions on a question of a task. */
const TASK_DECISIONS: Partial<Record<QuestionKind, readonly HumanDecision[]>> = {
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
      return (asks === undefined ? undefined : TASK_DECISIONS[asks]) ?? ['approve', 'reject', 'answer']
    }
    default:
      return ['approve', 'reject', 'modify']
  }
}

type FieldChanges = NonNullable<HumanRequest['modified']>['changes']

/** A person's changes to the held action, by field; an absent field has no `from` or no `to`. */
export function changesIn({ asked_action, action }: HumanRequestRow): FieldChanges {
  if (asked_action === null || action === null) return {}
  const before = fieldsIn(asked_action)
  const after = fieldsIn(action)
  const changes: FieldChanges = {}
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
    // Damaged on disk; `intactAction` keeps it from being shown or executed.
    return {}
  }
}

/** Requests as `person` sees them: with the decisions that this person may make. */
export async function viewRequests(
  reader: Reader,
  rows: readonly HumanRequestRow[],
  person: Person | undefined,
): Promise<HumanRequest[]> {
  const held = rows.filter(({ action }) => action !== null).map(({ id }) => id)
  const approvals = Map.groupBy(await readApprovals(reader, held), ({ request }) => request)
  return rows.map((row) => viewRequest(row, approvals.get(row.id) ?? [], person))
}

function viewRequest(
  row: HumanRequestRow,
  approvals: readonly ApprovalRow[],
  person: Person | undefined,
): HumanRequest {
  const { choices, default: standard, allowOther } = formOf(row)
  const action = intactAction(row)
  const task = taskIn(row.context)
  const approvers = row.approvers === null ? undefined : (JSON.parse(row.approvers) as string[])
  const isDecider = person !== undefined && mayDecide({ kind: row.kind, approvers }, person)
  return {
    id: formatId('req', row.id),
    kind: row.kind,
    state: row.state,
    asker: row.asker,
    question: row.question,
    reason: row.reason,
    ...(task === undefined ? {} : { task_id: task }),
    ...(choices === undefined ? {} : { choices: [...choices] }),
    ...(standard === undefined ? {} : { default: standard }),
    ...(allowOther === undefined ? {} : { allow_other: allowOther }),
    ...(action === undefined ? {} : { action: { ...action, hash: row.action_hash! } }),
    ...(row.modified_by === null ? {} : { modified: { by: row.modified_by, changes: changesIn(row) } }),
    ...(approvers === undefined ? {} : { approvers }),
    ...(row.count === 1 ? {} : { count: row.count }),
    quorum: row.quorum,
    approvals: approvals
      .filter(({ action_hash }) => action_hash === row.action_hash)
      .map(({ person: by, at, comment }) => ({ by, at: iso(at), ...(comment === null ? {} : { comment }) })),
    decisions: row.state === 'open' && isDecider ? [...decisionsOn(row)] : [],
    created_at: iso(row.created_at),
    ...(row.expires_at >= NEVER ? {} : { expires_at: iso(row.expires_at) }),
    ...(row.decided_at === null ? {} : { decided_at: iso(row.decided_at) }),
    ...(row.decided_by === null ? {} : { decided_by: row.decided_by }),
    ...(row.comment === null ? {} : { comment: row.comment }),
  }
}

const iso = (at: number) => new Date(at).toISOString()

function taskIn(context: string): string | undefined {
  const { task } = JSON.parse(context) as { task?: string }
  return task !== undefined && parseId('task', task) !== undefined ? task : undefined
}

/** Moderators decide only on requests for moderation. */
export function mayRoleDecide({ kind }: Pick<HumanRequestRow, 'kind'>, { role }: Person): boolean {
  return role === 'operator' || (role === 'moderator' && kind === 'moderation')
}

function mayDecide(
  { kind, approvers }: Pick<HumanRequestRow, 'kind'> & { approvers: readonly string[] | undefined },
  person: Person,
): boolean {
  return mayRoleDecide({ kind }, person) && (approvers?.includes(person.name) ?? true)
}
