import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import type { HandlerContext, Handlers } from '../commands/commands.ts'
import { runApproved } from '../commands/handle.ts'
import type { Team } from '../commands/team.ts'
import { CLAIMS, type Command } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Registry } from '../protocol/registry.ts'
import { wantsMore } from '../rules/decide.ts'
import type { Approval } from '../rules/rule.ts'
import type { Tx } from '../store/store.ts'
import { clearTimer, setTimer, type Timers } from '../store/timers.ts'
import { describe, heldBy, unpark } from './hold-command.ts'
import type { HumanDecision } from './human-request.ts'
import {
  forgetApprovals,
  type HumanRequestRow,
  hashOf,
  insertApproval,
  modifyHumanRequest,
  readApprovals,
} from './people.ts'
import { changesIn, intactAction } from './request-view.ts'

/** The approvers of the held action, and how many must approve. */
export function approvalOf({ approvers, quorum }: HumanRequestRow): Approval {
  return { ...(approvers === null ? {} : { approvers: JSON.parse(approvers) as string[] }), quorum }
}

/** The list of approvers is fixed when the request is made (C9). */
export function notAnApprover(
  { name }: Person,
  { approvers }: Approval,
  row: HumanRequestRow,
): AppError | undefined {
  if (approvers === undefined || approvers.includes(name)) return undefined
  return new AppError('FORBIDDEN', `${name} may not decide on ${formatId('req', row.id)}`, {
    hint: `Its approvers: ${approvers.join(', ')}.`,
  })
}

/** Throws if the stored action no longer matches its hash: people approve exactly what they were shown. */
export function heldCommand(row: HumanRequestRow): Command {
  const command = intactAction(row)
  if (command !== undefined) return command
  throw new AppError(
    'STORE_CORRUPT',
    `The action of ${formatId('req', row.id)} changed since it was requested`,
    {
      hint: 'It was changed on disk and will not be executed. Reject it, and run `orc service doctor`.',
    },
  )
}

/** Checks that the person saw the current action: by `hash` or its first characters, which a changed action requires. */
export function notReviewed(
  row: HumanRequestRow,
  decision: HumanDecision,
  hash: string | undefined,
): AppError | undefined {
  if (row.action_hash === null) return undefined
  const id = formatId('req', row.id)
  if (hash === undefined && row.modified_by === null) return undefined
  if (hash !== undefined && row.action_hash.startsWith(hash.toLowerCase())) return undefined
  const changedBy = row.modified_by === null ? '' : `: ${row.modified_by} changed it`
  return new AppError('CONFLICT', `The action of ${id} is not the one that you reviewed${changedBy}`, {
    hint: `Look at it again (orc inbox), then: orc ${decision} ${id} --hash ${row.action_hash.slice(0, HASH_SHOWN)}`,
  })
}

const HASH_SHOWN = 12

/** Stores one person's approval of the current action, and returns how many approvals count. */
export async function giveApproval(
  tx: Tx,
  team: Team,
  row: HumanRequestRow,
  person: Person,
  comment: string | null,
): Promise<number> {
  const isNew = await insertApproval(tx, {
    request: row.id,
    person: person.name,
    action_hash: row.action_hash!,
    comment,
  })
  if (!isNew) {
    throw new AppError('CONFLICT', `${person.name} has already approved ${formatId('req', row.id)}`, {
      hint: `Each person counts once; ${row.quorum} people must approve.`,
    })
  }
  const { approvers } = approvalOf(row)
  const counting = (await readApprovals(tx, [row.id])).filter(
    ({ person: name, action_hash }) =>
      action_hash === row.action_hash &&
      (approvers === undefined || approvers.includes(name)) &&
      // Approvals of people who were removed from orc.yaml don't count.
      (name === person.name || mayStillApprove(team, name)),
  )
  return counting.length
}

function mayStillApprove(team: Team, name: string): boolean {
  const person = team.person(name)
  return person === undefined ? name === 'operator' : person.role === 'operator'
}

/**
 * Changes fields of the held action. The result must fit the command's schema, and the rules decide again for the same
 * speaker. Earlier approvals no longer count. Returns the changed request.
 */
export async function changeAction(
  context: HandlerContext,
  { registry, handlers, redact }: { registry: Registry; handlers: Handlers; redact(text: string): string },
  row: HumanRequestRow,
  person: Person,
  fields: Readonly<Record<string, unknown>>,
): Promise<HumanRequestRow> {
  const { tx, speaker } = context
  const held = heldCommand(row)
  const definition = registry.find(held.type)
  const handler = handlers[held.type]
  if (definition === undefined || handler === undefined) throw unknownType(held.type)
  checkNames(held.type, Object.keys(definition.fields.shape), Object.keys(fields), definition.speaker)
  const decoded = registry.decode({ type: held.type, fields: { ...held.fields, ...fields } })
  if (!decoded.ok) throw decoded.error
  const { command } = decoded.value
  const action = JSON.stringify(command)
  if (action === row.action) {
    throw new AppError('INVALID_COMMAND', 'The new fields equal the old ones', {
      hint: `To approve it as it is: orc approve ${formatId('req', row.id)}`,
    })
  }
  const decision = handler.decide?.(context, command.fields, definition)
  if (decision instanceof AppError) throw decision
  if (decision?.verdict === 'deny') {
    throw new AppError(
      'CONFLICT',
      `The rules do not allow ${speaker.name} to send the changed command: ${decision.reason}`,
      {
        hint: 'Change it differently; `orc rules explain` shows which rule decides.',
      },
    )
  }
  const asked = decision?.verdict === 'ask' ? (decision.approval ?? { quorum: 1 }) : undefined
  const forbidden = asked === undefined ? undefined : notAnApprover(person, asked, row)
  if (forbidden !== undefined) throw forbidden
  const approval = wantsMore(asked, approvalOf(row)) ? asked! : approvalOf(row)
  const changed = {
    action,
    action_hash: hashOf({ ...row, action }),
    question: `${speaker.name} wants to ${describe(definition, command, redact)}`,
    approvers: approval.approvers === undefined ? null : JSON.stringify(approval.approvers),
    quorum: approval.quorum,
    modified_by: person.name,
  }
  await modifyHumanRequest(tx, row, changed)
  forgetApprovals(tx, row.id)
  return { ...row, ...changed, asked_action: row.asked_action ?? row.action }
}

/** Refuses unknown fields, so that a typo approves nothing else, and fields that name the sender. */
function checkNames(
  type: string,
  known: readonly string[],
  given: readonly string[],
  speaker: string | undefined,
) {
  const claim = given.find((name) => name === speaker || CLAIMS.has(name))
  if (claim !== undefined) {
    throw new AppError('INVALID_COMMAND', `"${claim}" names the sender and cannot be changed`, {
      hint: 'Reject the request, and send the command yourself.',
    })
  }
  const unknown = given.find((name) => !known.includes(name))
  if (unknown === undefined && given.length > 0) return
  throw new AppError(
    'INVALID_COMMAND',
    unknown === undefined ? 'No field was given' : `${type} has no field "${unknown.slice(0, 100)}"`,
    { hint: `Its fields: ${known.filter((name) => name !== speaker).join(', ')}.` },
  )
}

function unknownType(type: string): AppError {
  return new AppError('UNKNOWN_COMMAND', `Unknown command type: ${type}`)
}

/** Lists the changes, for the asker and the audit. */
export function changesText(row: HumanRequestRow): string {
  const lines = Object.entries(changesIn(row)).map(
    ([field, { from, to }]) => `- ${field}: ${valueText(from)} → ${valueText(to)}`,
  )
  return lines.length === 0 ? '' : `Changed by ${row.modified_by}:\n${lines.join('\n')}\n`
}

function valueText(value: unknown): string {
  return value === undefined ? '(nothing)' : JSON.stringify(value)
}

/** After a rejection, a conversation stays parked this long before the two agents may try again. */
const PARKED_AFTER_REJECTION_MS = 3600_000

interface ReleaseOptions {
  registry: Registry
  handlers: Handlers
  timers: Pick<Timers, 'setFor'>
  team(): Team
  /** A parked conversation continues, and its message counts start at zero. */
  onContinued(pair: string): void
}

/** Executes held commands, and resumes conversations that the loop breaker parked. */
export function createRelease({ registry, handlers, timers, team, onContinued }: ReleaseOptions) {
  /** A held command runs in the name of its speaker, not of the person who approved it. */
  function contextOf(tx: Tx, row: HumanRequestRow, approved: boolean): HandlerContext {
    const { speaker, principal, person, onBehalf, saidIn } = heldBy(row)
    return {
      team: team(),
      tx,
      unsigned: tx,
      speaker: { name: speaker, principal, onBehalf, ...(person === undefined ? {} : { person }) },
      approved,
      ...(saidIn === undefined ? {} : { saidIn }),
      once: (_, compute) => compute(),
    }
  }

  async function continueConversation(tx: Tx, pair: string) {
    unpark(tx, pair)
    clearTimer(tx, 'unpark', pair)
    tx.afterCommit(() => onContinued(pair))
  }

  return {
    contextOf,
    continueConversation,

    async perform(tx: Tx, row: HumanRequestRow): Promise<Receipt> {
      if (row.purpose === 'permission') return { status: 'ok', result: `${row.asker} may continue` }
      const command = heldCommand(row)
      const { pair } = heldBy(row)
      if (pair !== undefined) await continueConversation(tx, pair)
      const definition = registry.find(command.type)
      const handler = handlers[command.type]
      if (definition === undefined || handler === undefined) {
        return { status: 'error', code: 'UNKNOWN_COMMAND', message: `Unknown command type: ${command.type}` }
      }
      return await runApproved(contextOf(tx, row, true), handler, definition, command)
    },

    /** Keeps the conversation parked for a while, because nobody approved. */
    async keepParked(tx: Tx, row: HumanRequestRow) {
      const { pair } = heldBy(row)
      if (pair === undefined) return
      const dueAt = tx.now + PARKED_AFTER_REJECTION_MS
      setTimer(tx, 'unpark', pair, dueAt)
      tx.afterCommit(() => timers.setFor(dueAt))
    },
  }
}
