import type { AnswerOf } from '../../api/contract.ts'
import { table } from './layout.ts'
import { plainLine } from './print.ts'

export type ListedAgent = AnswerOf<'agents'>['agents'][number]

/** A line per agent; `unread` adds a column. */
export function agentsText(agents: readonly ListedAgent[], unread?: ReadonlyMap<string, number>): string {
  return table(
    agents.map((agent) => [
      agent.name,
      agent.status === agent.session ? agent.status : `${agent.status} (session ${agent.session})`,
      ...(unread === undefined ? [] : [`${unread.get(agent.name) ?? 0} waiting`]),
      plainLine(
        [
          ...[agent.waits_for && `waits: ${agent.waits_for}`, agent.program, contextText(agent)],
          ...[agent.current_task, agent.parent && `reports to ${agent.parent}`, unread && outside(agent)],
        ]
          .filter(Boolean)
          .join('; '),
      ),
    ]),
    '  ',
  )
}

/** Orchub doesn't start such an agent, so its status stays unknown until it reports one. */
function outside({ runtime, status }: ListedAgent): string | false {
  return runtime === 'none' && status === 'unknown' && 'runs outside Orchub, with its token'
}

function contextText({ context, spent }: ListedAgent): string {
  const full = context?.percent === undefined ? '' : `context ${context.percent} %`
  return [full, spent === undefined ? '' : `spent ${spent.toFixed(2)}`].filter(Boolean).join(', ')
}

/** Final delivery states. */
const DONE: ReadonlySet<string> = new Set(['read', 'failed'])

/** Counts the messages that are still on their way to each agent. */
export function waitingFor(
  deliveries: readonly { agent: string; state: string; count: number }[],
): ReadonlyMap<string, number> {
  const waiting = new Map<string, number>()
  for (const { agent, state, count } of deliveries) {
    if (!DONE.has(state)) waiting.set(agent, (waiting.get(agent) ?? 0) + count)
  }
  return waiting
}
