import type { RouteHandler } from '../../api/http/call.ts'
import { namedAgent, visibleAgent } from '../../api/http/permission.ts'
import { OPERATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { isOperatorName, type Team } from '../../commands/team.ts'
import { decideSend } from '../../rules/decide.ts'
import { explain } from '../../rules/explain.ts'
import { rosterOf } from '../agents.ts'

export const listAgents: RouteHandler<'agents'> = async ({ engine }) => ({
  agents: await rosterOf(engine.store, engine.team(), engine),
})

export const showTerminal: RouteHandler<'terminal'> = async ({ engine }, call) => {
  const { params, query } = call
  const agent = visibleAgent(engine.team(), call, params.agent!)
  const session = engine.sessions.session(agent)
  if (session === undefined) {
    throw new AppError('CONFLICT', `${agent} is not running here`, {
      hint: isRunElsewhere(engine.team(), agent)
        ? `It has runtime none: it runs wherever you start it. What it says here: orc audit --agent ${agent} --follow`
        : `Start it: orc spawn ${agent}`,
    })
  }
  const screen = (await session.screen?.(query.lines)) ?? ''
  return {
    agent,
    session: session.state,
    screen,
    ...(session.viewCommand === undefined ? {} : { view: [...session.viewCommand] }),
  }
}

/** Nothing of ours starts it, and it has no screen that we see. */
function isRunElsewhere({ config }: Team, agent: string): boolean {
  return config.agents.find(({ name }) => name === agent)?.runtime === 'none'
}

export const showPrompt: RouteHandler<'prompt'> = ({ engine }, { params, me, isOperator }) => {
  const agent = namedAgent(engine.team(), params.agent!)
  if (!isOperator && agent !== me) {
    throw new AppError('FORBIDDEN', `The prompt of ${agent} is for ${agent}`, {
      hint: `Ask for your own: /api/v1/prompts/${me}.`,
    })
  }
  return { agent, prompt: engine.prompt(agent)! }
}

export const explainRules: RouteHandler<'explain'> = ({ engine }, { query }) => {
  const team = engine.team()
  const party = (name: string) => (isOperatorName(name) ? OPERATOR : namedAgent(team, name))
  const { decision, steps } = explain(team.rules, party(query.from), party(query.to), query.action)
  const { approval, ...rest } = decision
  const { approvers, quorum } = approval ?? {}
  return {
    decision: {
      ...rest,
      ...(quorum === undefined
        ? {}
        : { approval: { quorum, ...(approvers === undefined ? {} : { approvers: [...approvers] }) } }),
    },
    steps: steps.map(({ approval: _, ...step }) => step),
  }
}

export const showMatrix: RouteHandler<'rulesMatrix'> = ({ engine }, { query }) => {
  const { rules, names: all } = engine.team()
  const names = all.slice(query.offset, query.offset + query.limit)
  return {
    names,
    total: all.length,
    cells: names.map((from) => names.map((to) => decideSend(rules, from, to).verdict)),
  }
}
