import { OPERATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import type { HandlerContext } from '../../commands/context.ts'
import type { Handler } from '../../commands/handler.ts'
import { behalf, unknownAgent } from '../../commands/identity.ts'
import type { Action, FieldsOf } from '../../protocol/command.ts'
import type { Receipt } from '../../protocol/receipt.ts'
import { decideAction } from '../../rules/decide.ts'
import { setPaused } from '../store/agents.ts'

/** Privileged: denied unless a rule allows it, or says to ask a person (C15). */
export const requestActionHandler: Handler<FieldsOf<'request_action'>> = {
  decide({ team, speaker }, fields) {
    const target = team.resolve(fields.target)
    if (target === undefined) return unknownAgent(team, fields.target)
    if (speaker.name === OPERATOR) return { verdict: 'allow', rule: 'built-in: the operator', reason: '' }
    return decideAction(team.rules, speaker.name, fields.action, target)
  },

  async handle(context, fields) {
    const { team, tx, speaker, parts } = context
    const target = team.resolve(fields.target)!
    const impossible = parts.sessions.impossible(target, fields.action)
    if (impossible !== undefined) {
      return new AppError('CONFLICT', impossible.reason, { hint: impossible.hint })
    }
    tx.audit({
      type: `action.${fields.action}`,
      class: 'internal',
      actor: speaker.name,
      subject: target,
      text: `${fields.action} ${target}${fields.reason === undefined ? '' : `: ${fields.reason}`}`,
      data: { action: fields.action, target, reason: fields.reason ?? null, ...behalf(speaker) },
    })
    return await ACTS[fields.action](context, target)
  },
}

type Act = (context: HandlerContext, target: string) => Promise<Receipt>

/** What is set in motion is done after the commit: first it is on record, then it happens. */
const ACTS: Record<Action, Act> = {
  spawn_agent: inMotion('starting', (context, target) => context.parts.sessions.start(target)),
  terminate_agent: inMotion('stopping', (context, target) => context.parts.sessions.stop(target)),
  reset_session: inMotion('starting afresh', (context, target) => context.parts.sessions.reset(target)),
  pause_session: pausing(true),
  resume_session: pausing(false),
}

function inMotion(doing: string, act: (context: HandlerContext, target: string) => Promise<void>): Act {
  return async (context, target) => {
    context.tx.afterCommit(() => {
      act(context, target).catch((error: unknown) =>
        context.parts.log.error({ agent: target, err: error }, `${target} is not ${doing}: it failed`),
      )
    })
    return { status: 'ok', result: `${target} is ${doing}`, details: { target } }
  }
}

/** Deliveries are held while paused; nothing is interrupted (S1.24). */
function pausing(paused: boolean): Act {
  return async ({ tx, parts }, target) => {
    await setPaused(tx, target, paused)
    if (!paused) await parts.meter.grant(tx, target)
    tx.afterCommit(() => parts.sessions.setPaused(target, paused))
    return {
      status: 'ok',
      result: `${target} is ${paused ? 'paused' : 'resumed'}`,
      details: { target, paused },
    }
  }
}
