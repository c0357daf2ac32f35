import type { AnswerOf } from '../service/contract.ts'
import { plainLine } from './output.ts'
import { table } from './table.ts'

export type Agent = AnswerOf<'agents'>['agents'][number]

/** One line each; `unread` adds a column. */
export function agentsText(agents: readonly Agent[], unread?: ReadonlyMap<string, number>): string {
  return table(
    agents.map((agent) => [
      agent.name,
      agent.status === agent.session ? agent.status : `${agent.status} (session ${agent.session})`,
      ...(unread === undefined ? [] : [`${unread.get(agent.name) ?? 0} waiting`]),
      plainLine(
        [agent.current_task, agent.parent && `reports to ${agent.parent}`].filter(Boolean).join('; '),
      ),
    ]),
    '  ',
  )
}
