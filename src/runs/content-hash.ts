import { hash } from 'node:crypto'
import type { Outbox } from '../workspaces/outbox.ts'
import { type Graph, type PlanAgent, topologicalOrder } from './plan.ts'
import type { OutputFile } from './run.ts'

/** A file in the inbox, by its content. */
export interface HashedFile {
  readonly path: string
  readonly sha256: string
}

/** All that an agent's work depends on. */
export interface Inputs {
  readonly agent: PlanAgent
  /** Its inputs and the outputs of others, as they lie in the inbox. */
  readonly files: readonly HashedFile[]
  /** Dependencies that it goes on without. */
  readonly missing: readonly string[]
}

/** The same for the same inputs, in whatever order they were found; it decides whether an agent is run again. */
export function hashInputs({ agent, files, missing }: Inputs): string {
  return digest(['inputs', definitionOf(agent), sortedFiles(files), [...missing].sort()])
}

/** Of what an agent made: it decides whether those that depend on it are run again. */
export function hashOutputs(outputs: readonly Pick<OutputFile, 'path' | 'sha256'>[]): string {
  return digest(['outputs', sortedFiles(outputs)])
}

/** What was asked for. How often it is tried, for how long and what follows on a failure make no other work of it. */
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

/** Keys in one order, whatever order they were written in. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, canonical(inner)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function digest(value: unknown): string {
  return hash('sha256', JSON.stringify(value))
}

export interface Staleness {
  /** Their own inputs changed: they run. */
  readonly runs: ReadonlySet<string>
  /** They depend on one that runs: they run if its outputs come out differently. */
  readonly mayRun: ReadonlySet<string>
}

/** What a resumed run has before it, for people to see beforehand. `changed`: whose own inputs are other than before. */
export function staleNodes(graph: Graph, changed: ReadonlySet<string>): Staleness {
  const runs = new Set<string>()
  const mayRun = new Set<string>()
  for (const name of topologicalOrder(graph)) {
    if (changed.has(name)) runs.add(name)
    else if (graph.needs.get(name)!.some(({ from }) => runs.has(from) || mayRun.has(from))) mayRun.add(name)
  }
  return { runs, mayRun }
}

/** What an agent has made, as the run knows it. The outbox was collected with its content. */
export function madeOutputs({ outputs }: Pick<Outbox, 'outputs'>): OutputFile[] {
  return outputs.map(({ path, size, sha256 }) => ({ path: `outbox/${path}`, bytes: size, sha256: sha256! }))
}
