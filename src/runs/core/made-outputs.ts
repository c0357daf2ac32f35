import { type Glob, globsMeet, matchesGlob, parseGlob } from '../../base/glob.ts'
import type { Report } from '../../yaml/problem.ts'
import { ALL_OUTPUTS, UNDECLARED } from '../plan/place.ts'
import type { Dependency, Plan, PlanAgent } from '../plan.ts'

/** Outputs that nobody makes, as far as it can be known: of an agent that declares none, anything may come. */
export function checkOutputs({ agents }: Plan, report: Report): void {
  const producers = new Map(agents.map((agent) => [agent.name, agent]))
  const globs = rememberGlobs()
  for (const { name, dependsOn } of agents) {
    for (const [index, { agent, outputs }] of dependsOn.entries()) {
      const producer = producers.get(agent)
      if (producer === undefined || producer.outputs.length === 0) continue
      for (const [place, output] of outputs.entries()) {
        if (mayMake(producer, output, globs)) continue
        const message = `${agent} does not make ${output}`
        const hint = `It declares ${producer.outputs.slice(0, 10).join(', ')}.`
        report(['agents', name, 'depends_on', index, 'outputs', place], message, hint)
      }
    }
    checkCollisions(name, dependsOn, globs, report)
  }
}

function mayMake(producer: PlanAgent, output: string, globs: (text: string) => Glob): boolean {
  if (output === ALL_OUTPUTS) return true
  const wanted = globs(output)
  return (
    producer.outputs.some((declared) => globsMeet(withAllInIt(globs(declared)), withAllInIt(wanted))) ||
    [...UNDECLARED].some((file) => matchesGlob(wanted, file))
  )
}

/** To name a folder is to name all that is in it, and what is named may be one. */
function withAllInIt(glob: Glob): Glob {
  return glob.isLiteral ? { ...glob, alternatives: glob.alternatives.map((names) => [...names, null]) } : glob
}

/** Two files cannot have one place. Only what is sure to collide is refused here; the copying looks at the rest. */
function checkCollisions(
  name: string,
  dependsOn: readonly Dependency[],
  globs: (text: string) => Glob,
  report: Report,
): void {
  const taken = new Map<string, string>()
  for (const [index, { agent, outputs, copyTo }] of dependsOn.entries()) {
    for (const output of outputs) {
      // All of an outbox has at least a summary.md (S4.7).
      const file = output === ALL_OUTPUTS ? 'outbox/summary.md' : output
      if (!globs(file).isLiteral) continue
      const place = `${copyTo}/${file.slice('outbox/'.length)}`
      const other = taken.get(place)
      if (other !== undefined && other !== agent) {
        const message = `${place} comes from ${other} already`
        report(['agents', name, 'depends_on', index], message, 'Give one of them another "copy_to".')
        break
      }
      taken.set(place, agent)
    }
  }
}

function rememberGlobs(): (text: string) => Glob {
  const known = new Map<string, Glob>()
  return (text) => {
    const remembered = known.get(text)
    if (remembered !== undefined) return remembered
    const parsed = parseGlob(text)
    // What was not a glob was reported and replaced when the plan was resolved.
    if (!parsed.ok) throw new Error(`Not a glob: ${text}`)
    known.set(text, parsed.value)
    return parsed.value
  }
}
