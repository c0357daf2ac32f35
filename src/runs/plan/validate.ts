import { foldName, RESERVED_NAMES } from '../../base/agent.ts'
import { type Glob, globsMeet, matchesGlob, parseGlob } from '../../base/glob.ts'
import { didYouMean } from '../../base/suggestion.ts'
import type { Report } from '../../yaml/problem.ts'
import {
  ALL_OUTPUTS,
  type Dependency,
  findCycles,
  graphOf,
  MESSAGES,
  type Plan,
  type PlanAgent,
  type PlanTeam,
  type Runner,
  UNDECLARED,
} from '../plan.ts'

/** Limits the suggestions for unknown names, because each one compares all names. */
const SUGGESTIONS = 10

/** Reports mistakes that concern several entries. */
export function validatePlan(plan: Plan, team: PlanTeam, report: Report): void {
  checkNames(plan, report)
  checkDependencies(plan, report)
  checkFixers(plan, team, report)
  checkTeam(plan, team, report)
  checkOutputs(plan, report)
  const graph = graphOf(plan)
  for (const cycle of findCycles(graph)) {
    const [first, next] = cycle as [string, string]
    const at = graph.agents.get(first)!.dependsOn.findIndex(({ agent }) => agent === next)
    const shown = cycle.length > 12 ? [...cycle.slice(0, 11), '…'] : cycle
    report(
      ['agents', first, 'depends_on', at],
      `${first} waits for itself: ${[...shown, first].join(' → ')}`,
      'Remove one of these dependencies.',
    )
  }
}

function checkNames({ agents, fixers, messages }: Plan, report: Report): void {
  const taken = new Map<string, string>()
  const named = [
    ...agents.map(({ name }) => ['agents', name] as const),
    ...fixers.map(({ name }) => ['fixers', name] as const),
  ]
  for (const [list, name] of named) {
    const folded = foldName(name)
    const other = taken.get(folded)
    if (RESERVED_NAMES.has(folded)) {
      report([list, name], `"${name}" is a reserved name`, 'Choose another name.', 'key')
    } else if (other !== undefined) {
      report(
        [list, name],
        `"${name}" is already taken by "${other}"`,
        'Names must differ by more than upper and lower case.',
        'key',
      )
    }
    taken.set(folded, name)
    if (messages && list === 'agents' && folded === MESSAGES) {
      report([list, name], `"${name}" is the name of the folder for messages`, 'Choose another name.', 'key')
    }
  }
  if (agents.length === 0) report(['agents'], 'The plan has no agents', 'Name at least one agent.')
}

function checkDependencies({ agents }: Plan, report: Report): void {
  const names = new Set(agents.map(({ name }) => name))
  let suggestions = SUGGESTIONS
  for (const { name, dependsOn } of agents) {
    const places = new Set<string>()
    for (const [index, { agent, copyTo }] of dependsOn.entries()) {
      const path = ['agents', name, 'depends_on', index]
      if (agent === name) {
        report(path, `${name} waits for itself`, 'Remove this dependency.')
      } else if (!names.has(agent)) {
        const hint = 'Name one of the agents of this plan.'
        report(
          path,
          `There is no agent "${agent}"`,
          suggestions-- > 0 ? didYouMean(agent, names, hint) : hint,
        )
      }
      const place = `${agent} ${copyTo}`
      if (places.has(place)) {
        report(
          path,
          `${agent} is listed twice`,
          'Put all its outputs into one entry, or copy them to two folders.',
        )
      }
      places.add(place)
    }
  }
}

function checkFixers(plan: Plan, { agents: members }: PlanTeam, report: Report): void {
  const fixers = new Set(plan.fixers.map(({ name }) => name))
  for (const { name, runner } of plan.fixers) {
    if (runner.kind !== 'files') continue
    report(['fixers', name], `No runner for "${name}"`, 'Add command, agent, program or model.', 'key')
  }
  for (const { name, fixer, onError } of plan.agents) {
    if (fixer === null) continue
    const path = ['agents', name, 'fixer']
    if (onError !== 'fix')
      report(path, '"fixer" needs "on_error: fix"', 'Add "on_error: fix", or remove "fixer".', 'key')
    if (fixers.has(fixer) || members?.includes(fixer)) continue
    const hint = 'Name one of "fixers".'
    // Without orc.yaml, it may be a member of the team.
    if (members !== undefined)
      report(path, `There is no fixer "${fixer}"`, didYouMean(fixer, [...fixers, ...members], hint))
  }
}

const MODEL_SETTINGS: ReadonlySet<string> = new Set(['prompt'])

function checkTeam(plan: Plan, { agents, models, checkProgram }: PlanTeam, report: Report): void {
  const check = (
    known: readonly string[] | undefined,
    name: string,
    path: readonly string[],
    what: string,
  ) => {
    if (known === undefined || known.includes(name)) return
    report(path, `There is no ${what} "${name}" in orc.yaml`, didYouMean(name, known, `Add it to orc.yaml.`))
  }
  const checkRunner = (runner: Runner, path: readonly string[]) => {
    if (runner.kind === 'agent') check(agents, runner.agent, [...path, 'agent'], 'agent')
    if (runner.kind === 'program') {
      for (const { path: inside, message, hint } of checkProgram?.(runner) ?? []) {
        report([...path, 'with', ...inside], message, hint)
      }
    }
    if (runner.kind !== 'model') return
    check(models, runner.model, [...path, 'model'], 'model')
    for (const key of Object.keys(runner.with)) {
      if (MODEL_SETTINGS.has(key)) continue
      report([...path, 'with', key], `A model has no setting "${key}"`, 'It takes "prompt".', 'key')
    }
  }
  for (const { name, runner } of plan.fixers) checkRunner(runner, ['fixers', name])
  for (const { name, runner, judge } of plan.agents) {
    checkRunner(runner, ['agents', name])
    if (typeof judge === 'object' && agents !== undefined && models !== undefined) {
      check([...models, ...agents], judge.name, ['agents', name, 'judge'], 'model or agent')
    }
  }
}

/** Reports outputs that no agent makes. An agent that declares none may make any. */
function checkOutputs({ agents }: Plan, report: Report): void {
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

/** A literal path may name a folder, which stands for everything in it. */
function withAllInIt(glob: Glob): Glob {
  return glob.isLiteral ? { ...glob, alternatives: glob.alternatives.map((names) => [...names, null]) } : glob
}

/** Reports certain collisions in the inbox; copying finds the others. */
function checkCollisions(
  name: string,
  dependsOn: readonly Dependency[],
  globs: (text: string) => Glob,
  report: Report,
): void {
  const taken = new Map<string, string>()
  for (const [index, { agent, outputs, copyTo }] of dependsOn.entries()) {
    for (const output of outputs) {
      // Every outbox has a summary.md (S4.7).
      const file = output === ALL_OUTPUTS ? 'outbox/summary.md' : output
      if (!globs(file).isLiteral) continue
      const place = `${copyTo}/${file.slice('outbox/'.length)}`
      const other = taken.get(place)
      if (other !== undefined && other !== agent) {
        const message = `${place} already comes from ${other}`
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
    // resolvePlan has replaced invalid globs.
    if (!parsed.ok) throw new Error(`Not a glob: ${text}`)
    known.set(text, parsed.value)
    return parsed.value
  }
}
