import type { AnswerOf } from '../api/contract.ts'
import type { RouteHandler } from '../api/http/call.ts'
import type { Halted } from '../commands/halt-state.ts'

export const haltTeam: RouteHandler<'halt'> = async ({ engine }, { callerName, body }) => {
  const { halted, already, interrupts } = await engine.halt.stop(callerName, body.reason)
  return {
    status: 'halted',
    already,
    halt: wireHalt(halted),
    interrupts: interrupts.map(({ agent, stopped, evidence }) => ({ agent, stopped, evidence })),
  }
}

export const resumeTeam: RouteHandler<'go'> = async ({ engine }, { callerName }) => {
  const resumed = await engine.halt.go(callerName)
  if (resumed === undefined) return { status: 'going', told: [] }
  return {
    status: 'going',
    halt: wireHalt(resumed.halted),
    lasted_seconds: Math.round(resumed.lastedMs / 1000),
    told: [...resumed.told],
  }
}

export function wireHalt({ by, reason, at }: Halted): NonNullable<AnswerOf<'state'>['halt']> {
  return { by, at: new Date(at).toISOString(), ...(reason === undefined ? {} : { reason }) }
}
