import { type ApiCall, type ApiContext, type RouteHandler, SENT } from '../../api/http/call.ts'
import { streamChanges } from '../../api/http/follow.ts'
import { AppError } from '../../base/errors.ts'
import { personBehind } from '../../commands/team.ts'
import { closeConduct, conductVersion, readConduct } from '../store/conduct.ts'

/** Answers NOT_FOUND to everyone else: even the existence of flags is confidential (S3.15). */
function moderator({ engine }: ApiContext, { caller }: Pick<ApiCall, 'caller'>): string {
  const person = personBehind(engine.team(), caller.principal)
  if (person?.role === 'moderator') return person.name
  throw new AppError('NOT_FOUND', 'There is nothing to moderate', {
    hint: 'Only people with the role moderator in orc.yaml can moderate.',
  })
}

export const listModeration: RouteHandler<'moderation'> = async (context, call) => {
  moderator(context, call)
  const rows = await readConduct(context.engine.store, call.query.state, call.query.limit)
  return {
    flags: rows.map((row) => ({
      id: row.id,
      repository: row.repository,
      ...(row.number === null ? {} : { number: row.number }),
      at: new Date(row.created_at).toISOString(),
      flag: JSON.parse(row.flag) as Record<string, unknown>,
      ...(row.closed_at === null ? {} : { closed_at: new Date(row.closed_at).toISOString() }),
      ...(row.closed_by === null ? {} : { closed_by: row.closed_by }),
      ...(row.decision === null ? {} : { decision: row.decision }),
      ...(row.comment === null ? {} : { comment: row.comment }),
    })),
  }
}

export const streamModeration: RouteHandler<'moderationChanges'> = async (context, call) => {
  moderator(context, call)
  await streamChanges(context, call, async () => {
    // A reload may have removed the role.
    moderator(context, call)
    return await conductVersion(context.engine.store)
  })
  return SENT
}

export const closeModeration: RouteHandler<'closeModeration'> = async (context, call) => {
  const name = moderator(context, call)
  const { decision, comment = null } = call.body
  const closed = await context.engine.store.write((tx) =>
    closeConduct(tx, call.params.id!, { by: name, decision, comment }),
  )
  if (!closed) throw new AppError('NOT_FOUND', 'There is no open flag with this id')
  return { closed }
}
