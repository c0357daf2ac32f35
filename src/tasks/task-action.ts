import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { Handler } from '../commands/commands.ts'
import { tooLong } from '../commands/team.ts'
import type { FieldsOf, TaskAction } from '../protocol/command.ts'
import type { TaskEvent } from './core/events-and-effects.ts'
import { refusalError } from './core/refusal.ts'
import { findReference, type Reference, unknownReference } from './references.ts'
import type { Tasks } from './tasks.ts'

type TaskActionFields = FieldsOf<'task_action'>

/** Decisions of a delegator or a person about a task, and a worker's request for more time. The core checks who may. */
export const taskActionHandler = (tasks: Tasks): Handler<TaskActionFields> => ({
  async handle({ tx, team, speaker }, fields) {
    const large = tooLong(team, 'text', fields.text)
    if (large !== undefined) return large
    const isParty = ({ task: { agent, delegator } }: Reference) =>
      agent === speaker.name || delegator === speaker.name
    const found = await findReference(tx, fields.task_id, isParty)
    if (found === undefined) return unknownReference(fields.task_id)
    const { id } = found.task
    if (fields.action === 'follow_up' && fields.text.trim() === '') {
      return new AppError('INVALID_COMMAND', 'task_action: "text" is missing', {
        hint: 'Describe what is left to do.',
      })
    }
    const question = fields.action === 'extend' ? formatId('msg', await tx.nextKey('msg')) : id
    const event = EVENTS[fields.action](speaker.name, question, fields)
    const change = await tasks.tell(tx, id, event)
    if (!change.ok) return refusalError(change.error)
    tasks.spoke(tx, speaker.name, id)
    const { state } = change.value
    return { status: 'ok', result: `${id} is ${state}`, details: { task_id: id, state } }
  },
})

type ToEvent = (by: string, question: string, fields: TaskActionFields) => TaskEvent

const settled =
  (as: 'completed' | 'failed' | 'skipped', otherwise: string): ToEvent =>
  (by, _, { text }) => ({ type: 'settled', by, as, reason: text || otherwise })

const EVENTS: Record<TaskAction, ToEvent> = {
  cancel: (by, _, { text }) => ({ type: 'cancelled', by, reason: text || `${by} cancelled it` }),
  follow_up: (by, _, { text }) => ({ type: 'followed_up', by, text }),
  accept: settled('completed', 'accepted as it is'),
  fail: settled('failed', 'given up'),
  skip: settled('skipped', 'not needed'),
  extend: (by, question, { seconds, text }) => ({
    type: 'extension_requested',
    by,
    question,
    seconds: seconds ?? 0,
    reason: text,
  }),
  grant_extension: (by, question) => ({ type: 'extension_granted', by, question }),
  refuse_extension: (by, question, { text }) => ({
    type: 'extension_refused',
    by,
    question,
    reason: text || 'not granted',
  }),
  take_over: (by) => ({ type: 'taken_over', by }),
  hold: (by, _, { text }) => ({ type: 'held', by, reason: text || `${by} holds it` }),
  release: (by) => ({ type: 'released', by }),
}
