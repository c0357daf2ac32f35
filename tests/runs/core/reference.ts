/** A reference model: agents run one after the other, without time, slots and processes. */
import type { Plan, PlanAgent } from '../../../src/runs/plan.ts'
import type { SettledState } from '../../../src/runs/run.ts'
import type { Script, Scripts } from './script.ts'

export interface Expected {
  state: SettledState
  /** Attempts begun, those lost with the machine not counted. */
  attempts: number
}

export function expectedOf(plan: Plan, scripts: Scripts, isAnswered = true): Map<string, Expected> {
  const agents = new Map(plan.agents.map((agent) => [agent.name, agent]))
  const known = new Map<string, Expected>()
  const find = (name: string): Expected => {
    const agent = agents.get(name)!
    const broken = agent.dependsOn.filter((dependency) => visit(dependency.agent).state !== 'completed')
    if (broken.some(({ onFailure }) => onFailure === 'fail')) return { state: 'failed', attempts: 0 }
    if (broken.some(({ onFailure }) => onFailure === 'skip')) return { state: 'skipped', attempts: 0 }
    return play(agent, scripts.get(name)!, isAnswered)
  }
  const visit = (name: string): Expected => {
    if (!known.has(name)) known.set(name, find(name))
    return known.get(name)!
  }
  for (const name of agents.keys()) visit(name)
  return known
}

function play(agent: PlanAgent, script: Script, isAnswered: boolean): Expected {
  const turns = [...script.turns]
  const fixes = [...script.fixes]
  const answers = [...script.answers]
  let attempts = 0
  let fixed = 0
  for (;;) {
    let done = false
    for (let tries = 1; tries <= agent.retries + 1; tries++) {
      const turn = turns.shift() ?? 'ok'
      if (turn !== 'no_inputs') attempts++
      done = turn === 'ok'
      if (done || turn === 'hopeless') break
    }
    if (done) return { state: 'completed', attempts }
    if (agent.onError === 'retry') return { state: 'failed', attempts }
    if (agent.onError === 'skip') return { state: 'skipped', attempts }
    if (agent.onError === 'fix' && agent.fixer !== null && fixed < agent.maxFixes) {
      fixed++
      if (fixes.shift() ?? true) continue
    }
    const answer = isAnswered ? (answers.shift() ?? 'retry') : 'none'
    if (answer === 'skip') return { state: 'skipped', attempts }
    if (answer === 'fail' || answer === 'none') return { state: 'failed', attempts }
  }
}
