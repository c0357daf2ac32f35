import { drawGraph, drawSteps, mermaidOf } from '../../../runs/plan/draw-graph.ts'
import { graphOf, type PlanAgent, stepsOf } from '../../../runs/plan.ts'
import { usage } from '../../errors.ts'
import { counted } from '../../output/layout.ts'
import { paint, plainLine, print, printJson, printRaw } from '../../output/print.ts'
import type { PlanFile } from './plan-file.ts'

/** Prints the order and the graph of a plan. */
export function showPlan(
  { plan, missing }: PlanFile,
  how: { json: boolean; mermaid: boolean; concurrency?: number },
): number {
  const graph = graphOf(plan)
  const { name, goal, agents } = plan
  const { concurrency = plan.concurrency } = how
  if (how.json) {
    if (how.mermaid) throw usage('--json and --mermaid exclude each other', 'Drop one of them.')
    printJson({ name, goal, concurrency, steps: stepsOf(graph), agents: agents.map(facts), missing })
    return 0
  }
  if (how.mermaid) {
    printRaw(mermaidOf(graph))
    return 0
  }
  const width = Math.max(40, process.stdout.columns || 100)
  const byName = new Map(agents.map((agent) => [agent.name, agent]))
  print(
    [
      `${paint('bold', plainLine(name))}: ${counted(agents.length, 'agent')}, at most ${concurrency} at once`,
      ...(goal === '' ? [] : [plainLine(goal)]),
      '',
      drawSteps(graph, { width }),
      '',
      drawGraph(graph, { width, note: (agent) => whoWorks(byName.get(agent)!) }),
    ].join('\n'),
  )
  return 0
}

function facts({ name, runner, dependsOn, outputs, retries, timeoutMs }: PlanAgent) {
  const after = dependsOn.map(({ agent, onFailure }) => ({ agent, on_failure: onFailure }))
  return { name, runner: runner.kind, depends_on: after, outputs, retries, timeout_ms: timeoutMs }
}

function whoWorks({ runner }: PlanAgent): string {
  switch (runner.kind) {
    case 'command':
      return ''
    case 'agent':
      return `[${runner.agent}]`
    case 'program':
      return `[${runner.program}]`
    case 'model':
      return `[model ${runner.model}]`
    case 'files':
      return '[outside agent]'
  }
}
