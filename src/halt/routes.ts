import type { AnswerOf } from '../api/contract.ts'
import type { RouteHandler } from '../api/http/call.ts'
import type { Halted } from '../commands/halt-state.ts'

export const haltTeam: RouteHandler<'halt'> = async ({ engine }, { me, body }) => {
  const { halted, already, interrupts } = await engine.halt.stop(me, body.reason)
  return {
    status: 'halted',
    already,
    halt: wireHalt(halted),
    interrupts: interrupts.map(({ agent, stopped, evidence }) => ({ agent, stopped, evidence })),
  }
}

export const letGoOn: RouteHandler<'go'> = async ({ engine }, { me }) => {
  const gone = await engine.halt.go(me)
  if (gone === undefined) return { status: 'going', told: [] }
  return {
    status: 'going',
    halt: wireHalt(gone.halted),
    lasted_seconds: Math.round(gone.lastedMs / 1000),
    told: [...gone.told],
  }
}

export function wireHalt({ by, reason, at }: Halted): NonNullable<AnswerOf<'state'>['halt']> {
  return { by, at: new Date(at).toISOString(), ...(reason === undefined ? {} : { reason }) }
}
