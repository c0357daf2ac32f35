import { OPERATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { Handler } from '../../commands/commands.ts'
import { behalf, unknownAgent } from '../../commands/identity.ts'
import type { AgentAction, FieldsOf } from '../../protocol/command.ts'
import type { Receipt } from '../../protocol/receipt.ts'
import { decideAction } from '../../rules/decide.ts'
import type { Tx } from '../../store/store.ts'
import type { Sessions } from '../sessions.ts'
import { setPaused } from '../store.ts'
import type { Meter } from '../usage.ts'

interface RequestActionOptions {
  sessions: Pick<Sessions, 'impossible' | 'start' | 'stop' | 'reset' | 'setPaused'>
  meter: Pick<Meter, 'grant'>
  log: Log
}

/** Privileged: denied unless a rule allows it, or says to ask a person (C15). */
export const requestActionHandler = (options: RequestActionOptions): Handler<FieldsOf<'request_action'>> => ({
  decide({ team, speaker }, fields) {
    const target = team.resolve(fields.target)
    if (target === undefined) return unknownAgent(team, fields.target)
    if (speaker.name === OPERATOR) return { verdict: 'allow', rule: 'built-in: the operator', reason: '' }
    return decideAction(team.rules, speaker.name, fields.action, target)
  },

  async handle(context, fields) {
    const { team, tx, speaker } = context
    const target = team.resolve(fields.target)!
    const impossible = options.sessions.impossible(target, fields.action)
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
    return await ACTS[fields.action](options, tx, target)
  },
})

type Act = (options: RequestActionOptions, tx: Tx, target: string) => Promise<Receipt>

/** Sessions change after the commit: first the intention is recorded, then it happens. */
const ACTS: Record<AgentAction, Act> = {
  spawn_agent: afterCommit('starting', ({ sessions }, target) => sessions.start(target)),
  terminate_agent: afterCommit('stopping', ({ sessions }, target) => sessions.stop(target)),
  reset_session: afterCommit('starting afresh', ({ sessions }, target) => sessions.reset(target)),
  pause_session: setPausedAct(true),
  resume_session: setPausedAct(false),
}

function afterCommit(
  doing: string,
  act: (options: RequestActionOptions, target: string) => Promise<void>,
): Act {
  return async (options, tx, target) => {
    tx.afterCommit(() => {
      act(options, target).catch((error: unknown) =>
        options.log.error({ agent: target, err: error }, `${target} is not ${doing}: it failed`),
      )
    })
    return { status: 'ok', result: `${target} is ${doing}`, details: { target } }
  }
}

/** A pause holds deliveries and interrupts nothing (S1.24). */
function setPausedAct(paused: boolean): Act {
  return async ({ sessions, meter }, tx, target) => {
    await setPaused(tx, target, paused)
    if (!paused) await meter.grant(tx, target)
    tx.afterCommit(() => sessions.setPaused(target, paused))
    return {
      status: 'ok',
      result: `${target} is ${paused ? 'paused' : 'resumed'}`,
      details: { target, paused },
    }
  }
}
