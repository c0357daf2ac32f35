import { hash } from 'node:crypto'
import type { Outbox } from '../workspaces/outbox.ts'
import { type Graph, type PlanAgent, topologicalOrder } from './plan.ts'
import type { OutputFile } from './run.ts'

interface HashedFile {
  readonly path: string
  readonly sha256: string
}

/** Everything that an agent's work depends on. */
interface Inputs {
  readonly agent: PlanAgent
  /** Files in its inbox: its inputs, and outputs of its dependencies. */
  readonly files: readonly HashedFile[]
  /** Dependencies without outputs. */
  readonly missing: readonly string[]
}

/** Decides whether an agent runs again. Independent of the order of the files. */
export function hashInputs({ agent, files, missing }: Inputs): string {
  return digest(['inputs', definitionOf(agent), sortedFiles(files), [...missing].sort()])
}

/** Decides whether the dependents of an agent run again. */
export function hashOutputs(outputs: readonly Pick<OutputFile, 'path' | 'sha256'>[]): string {
  return digest(['outputs', sortedFiles(outputs)])
}

/** The part of an agent's definition that affects its work. Retries, timeouts and recovery do not. */
function definitionOf(agent: PlanAgent): unknown {
  const { runner, template, instructions, inputs, outputs, checks, judge, worktree, dependsOn } = agent
  return canonical({
    runner,
    template,
    instructions,
    inputs: inputs.map(({ to, description }) => ({ to, description })),
    outputs,
    checks: checks.map(({ name, command }) => ({ name, command })),
    judge,
    worktree,
    dependsOn: dependsOn.map(({ agent: name, outputs: wanted, copyTo }) => ({ name, wanted, copyTo })),
  })
}

function sortedFiles(files: readonly HashedFile[]): [string, string][] {
  return files
    .map(({ path, sha256 }): [string, string] => [path, sha256])
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
}

/** Sorts the keys of objects. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, canonical(inner)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function digest(value: unknown): string {
  return hash('sha256', JSON.stringify(value))
}

interface Staleness {
  /** Agents whose own inputs changed. */
  readonly runs: ReadonlySet<string>
  /** Agents that depend on one that runs: they run if its outputs change. */
  readonly mayRun: ReadonlySet<string>
}

/** Predicts which agents a resumed run starts, for people. `changed`: agents whose own inputs changed. */
export function staleNodes(graph: Graph, changed: ReadonlySet<string>): Staleness {
  const runs = new Set<string>()
  const mayRun = new Set<string>()
  for (const name of topologicalOrder(graph)) {
    if (changed.has(name)) runs.add(name)
    else if (graph.needs.get(name)!.some(({ from }) => runs.has(from) || mayRun.has(from))) mayRun.add(name)
  }
  return { runs, mayRun }
}

/** Outputs of an outbox that was collected with its content. */
export function madeOutputs({ outputs }: Pick<Outbox, 'outputs'>): OutputFile[] {
  return outputs.map(({ path, size, sha256 }) => ({ path: `outbox/${path}`, bytes: size, sha256: sha256! }))
}
