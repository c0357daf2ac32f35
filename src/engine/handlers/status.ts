import type { FieldsOf } from '../../model/command.ts'
import { declareStatus } from '../../store/agents.ts'
import type { Handler } from '../handler.ts'
import { behalf } from '../identity.ts'
import { decideSubject, subjectAllowed } from './mailbox.ts'

export const updateStatusHandler: Handler<FieldsOf<'update_status'>> = {
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

/** What is known of an agent's context. Figures come with the transcripts of real agent programs (C26). */
export const contextStatusHandler: Handler<FieldsOf<'context_status'>> = {
  looksOnly: true,
  decide: decideSubject,
  async handle(context, fields, definition) {
    const { parts } = context
    const agent = subjectAllowed(context, fields, definition)
    const heard = parts.sessions.usage(agent)
    return {
      status: 'ok',
      result:
        heard === undefined
          ? `${agent} has no session here, so that its context is not known`
          : `${heard.lines} lines, about ${heard.tokens} tokens, in this session`,
      details: { agent, ...(heard ?? { known: false }) },
    }
  },
}
