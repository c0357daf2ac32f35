import type { z } from 'zod'
import type { OwnCall, UsageTracker } from '../agents/usage-and-limits.ts'
import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import { type Handler, type HandlerContext, receiptOf } from '../commands/commands.ts'
import { unknownAgent } from '../commands/identity.ts'
import { tooLong } from '../commands/team.ts'
import type { Models } from '../llm/llm.ts'
import type { Receipt } from '../protocol/receipt.ts'
import { askCommand } from './api.ts'
import { type Choice, chooseAgents, selectAgents } from './choose-agents.ts'
import { refusalError } from './core/refusal.ts'
import type { Tasks } from './tasks.ts'

type AskFields = z.output<typeof askCommand.fields>

interface AskOptions {
  tasks: Pick<Tasks, 'delegate'>
  models: Models | undefined
  usageTracker: Pick<UsageTracker, 'ownCall'>
  redact(text: string): string
  /** Aborted when the service stops. */
  closing: AbortSignal
}

/** Questions of people to the team (S2.9): chooses the agents that are needed (S2.14) and delegates to the root agent. */
export function askHandler({ tasks, models, usageTracker, redact, closing }: AskOptions): Handler<AskFields> {
  /** Stores choice, task and key in one transaction: a repetition finds all of them or none. */
  async function delegate(
    { tx, team }: HandlerContext,
    question: string,
    choice: Choice,
    call: OwnCall | undefined,
  ): Promise<Receipt | AppError> {
    const { context, rootWhy, failure, ...chosen } = choice
    const root = team.resolve(chosen.root)
    if (root === undefined) return unknownAgent(team, chosen.root)
    const delegated = await tasks.delegate(tx, {
      delegator: OPERATOR,
      agent: root,
      text: question,
      context,
      requiresResponse: true,
      checks: [],
    })
    if (!delegated.ok) return refusalError(delegated.error)
    const { id } = delegated.value
    tx.afterCommit(() => call?.about(id))
    const why = redactedExcerpt(redact, chosen.why)
    tx.audit({
      type: 'task.selected',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: root,
      text: `${id}: ${root} answers; ${chosen.chosen.join(', ') || 'nobody'} may be needed: ${why}`,
      data: {
        task_id: id,
        root: id,
        agent: root,
        chosen: chosen.chosen,
        why,
        by: chosen.by,
        unknown: chosen.unknown,
        ...(rootWhy === undefined ? {} : { root_why: redactedExcerpt(redact, rootWhy) }),
        ...(failure === undefined ? {} : { failure }),
      },
    })
    return receiptOf(askCommand, `${id}: ${root} answers`, { task_id: id, ...chosen, root })
  }

  return {
    async perform({ team, commit }, { question, agent }) {
      if (question.trim() === '') {
        return new AppError('INVALID_REQUEST', 'The question is blank', { hint: 'Write a question.' })
      }
      const large = tooLong(team, 'question', question)
      if (large !== undefined) return large
      const { selector } = team.config.tasks
      // Without a model, or beyond the spending limit, agents are chosen by keywords.
      const call = selector === undefined ? undefined : usageTracker.ownCall('select')
      const model = call === undefined ? undefined : selector
      const choice = await chooseAgents(team, agent, (available) =>
        selectAgents(models, model, { task: question, available }, { signal: closing, ...call }),
      )
      if (closing.aborted) throw stopping()
      return await commit((context) => delegate(context, question, choice, call))
    },
  }
}

function stopping(): AppError {
  return new AppError('SERVICE_STOPPING', 'The service is shutting down', {
    hint: 'Ask again when it is back. With the same idempotency key the question is asked once.',
  })
}
