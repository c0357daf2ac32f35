import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import { type Team, tooLong } from '../commands/team.ts'
import { readAnswer } from './answers.ts'
import { approvalOf, mustBeApprover, mustBeSeen } from './approvals.ts'
import type { HumanDecision, HumanRequest } from './human-request.ts'
import type { HumanRequestRow, Verdict } from './people.ts'
import { decisionsOn } from './request-view.ts'

/** Throws if this person can't decide on this request in this way. */
export function checkFits(row: HumanRequestRow, person: Person, verdict: Verdict) {
  const { decision } = verdict
  mustHaveSay(row, person)
  if (row.state !== 'open') throw alreadyDecided(row)
  const decisions = decisionsOn(row)
  if (!decisions.includes(decision)) throw otherwise(row, decisions)
  if (row.action !== null) mustBeApprover(person, approvalOf(row), row)
  // A change also approves the fields it keeps, so the person must have seen them, unless the last change was their own.
  const isOwn = decision === 'modify' && row.modified_by === person.name && verdict.hash === undefined
  if ((decision === 'approve' || decision === 'modify') && !isOwn) mustBeSeen(row, decision, verdict.hash)
  if (decision !== 'answer') return
  const read = readAnswer(row, verdict.comment ?? '')
  if (!read.ok) throw read.error
}

/** Longest comment in characters; the asker gets it with the verdict. */
const MOST_REMARK = 10_000

/** Too long texts are refused whole, never cut (C20). An answer may be as long as a message. */
export function mustFit(team: Team, { decision, comment = '' }: Verdict) {
  const large = decision === 'answer' ? tooLong(team, 'answer', comment) : undefined
  if (large !== undefined) throw large
  if (decision === 'answer' || comment.length <= MOST_REMARK) return
  throw new AppError(
    'TOO_LARGE',
    `The comment is ${comment.length} characters; the limit is ${MOST_REMARK}`,
    { hint: 'Nothing was decided. Say it shorter, or put the details into a file and name its path.' },
  )
}

/** Whether this person's role may decide on such a request. */
function hasSay({ kind }: Pick<HumanRequestRow, 'kind'>, { role }: Person): boolean {
  return role === 'operator' || (role === 'moderator' && kind === 'moderation')
}

/** The same, also by the list of approvers: for showing people what they may decide. */
export function maySay(request: Pick<HumanRequest, 'kind' | 'approvers'>, person: Person): boolean {
  return hasSay(request, person) && (request.approvers?.includes(person.name) ?? true)
}

function mustHaveSay(row: HumanRequestRow, person: Person) {
  if (hasSay(row, person)) return
  const { name, role } = person
  throw new AppError('FORBIDDEN', `${name} may see ${formatId('req', row.id)} but not decide on it`, {
    hint:
      role === 'moderator'
        ? `The role of ${name} in orc.yaml is moderator, which may decide requests for moderation only.`
        : `The role of ${name} in orc.yaml is ${role}. The operator can change that.`,
  })
}

const HOW: Record<HumanDecision, string> = {
  approve: '`orc approve ID`',
  reject: '`orc reject ID`',
  modify: '`orc modify ID FIELD=VALUE`',
  answer: '`orc answer ID TEXT`',
}

function otherwise(row: HumanRequestRow, decisions: readonly HumanDecision[]): AppError {
  const id = formatId('req', row.id)
  const wants = decisions.includes('answer')
    ? 'an answer'
    : decisions.length === 1
      ? 'only an acknowledgement'
      : 'approval or rejection'
  return new AppError('CONFLICT', `${id} needs ${wants}`, {
    hint: `Use ${decisions.map((decision) => HOW[decision]).join(' or ')}.`,
  })
}

function alreadyDecided(row: HumanRequestRow): AppError {
  const who = row.decided_by === null ? '' : ` by ${row.decided_by}`
  const when = row.decided_at === null ? '' : ` at ${time(row.decided_at)}`
  return new AppError('CONFLICT', `${formatId('req', row.id)} was already ${row.state}${who}${when}`, {
    hint: 'Only the first verdict counts. `orc inbox` lists open requests.',
  })
}

function time(at: number): string {
  return new Date(at).toISOString()
}
