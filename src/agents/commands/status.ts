import type { Handler } from '../../commands/commands.ts'
import { behalf, decideSubject, subjectAllowed } from '../../commands/identity.ts'
import type { FieldsOf } from '../../protocol/command.ts'
import { declareStatus } from '../store.ts'
import type { ContextUsage, Meter } from '../usage.ts'

export const updateStatusHandler: Handler<FieldsOf<'update_status'>> = {
  whileHalted: true,
  decide: decideSubject,
  async handle(context, fields, definition) {
    const { tx, speaker } = context
    const agent = subjectAllowed(context, fields, definition)
    const task = fields.current_task ?? null
    await declareStatus(tx, agent, fields.status, task)
    tx.audit({
      type: 'agent.status',
      class: 'internal',
      actor: speaker.name,
      ...(agent === speaker.name ? {} : { subject: agent }),
      text: `${agent} is ${fields.status}${task === null ? '' : `: ${task}`}`,
      data: { agent, status: fields.status, current_task: task, ...behalf(speaker) },
    })
    return { status: 'ok', result: `${agent} is ${fields.status}`, details: { agent, status: fields.status } }
  },
}

/** How full an agent's context is, from the records of its program (C26). */
export const contextStatusHandler = (
  meter: Pick<Meter, 'context' | 'spent'>,
): Handler<FieldsOf<'context_status'>> => ({
  looksOnly: true,
  decide: decideSubject,
  async handle(context, fields, definition) {
    const agent = subjectAllowed(context, fields, definition)
    const known = meter.context(agent)
    const spent = meter.spent(agent)
    return {
      status: 'ok',
      result: describeContext(agent, known),
      details: { agent, ...(known ?? { level: 'unknown' }), ...(spent === 0 ? {} : { spent }) },
    }
  },
})

const ADVICE = { ok: '', unknown: '', warning: '; it is getting full', critical: '; it is nearly full' }

function describeContext(agent: string, known: ContextUsage | undefined): string {
  if (known?.tokens === undefined) return `${agent}'s program has told nothing of its context yet`
  const share = known.percent === undefined ? '' : ` (${known.percent} % of ${known.window})`
  const lines = known.lines === undefined ? '' : `, ${known.lines} lines`
  return `${known.tokens} tokens${share}${lines}${ADVICE[known.level]}`
}
