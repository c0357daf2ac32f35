import type { ToolCall } from '../../models/model.ts'
import { renderResponse } from '../../wire/response.ts'
import type { AgentStart } from '../runtime.ts'
import { invalidCall } from './notes.ts'

export interface CarriedOut {
  readonly text: string
  readonly isError: boolean
  readonly handedOut: readonly string[]
}

/** A tool call goes through the one door, as this agent; its result is the block that answers any command (S1.15). */
export async function carryOut(agent: AgentStart, call: ToolCall, key: string): Promise<CarriedOut> {
  const invalid = call.invalid ?? (agent.command === undefined ? 'there are no tools here' : undefined)
  if (invalid !== undefined) return { text: invalidCall(invalid), isError: true, handedOut: [] }
  const { receipt, handedOut } = await agent.command!({ type: call.name, fields: { ...call.input } }, key)
  return {
    text: renderResponse(call.name, receipt),
    isError: receipt.status === 'error' || receipt.status === 'blocked',
    handedOut,
  }
}
