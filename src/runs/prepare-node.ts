import { hash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Result } from '../base/result.ts'
import type { Config } from '../config/config.ts'
import { SESSION_MARK } from '../runtimes/processes.ts'
import { collectOutbox, type Outbox } from '../workspaces/outbox.ts'
import {
  createWorkspace,
  type InboxManifest,
  isWithin,
  nameProblems,
  type OutputsWanted,
  PROTOCOL_FILES,
  type ProblemCode,
  prepareInbox,
  renewSkill,
  type Withheld,
  type WorkspaceProblem,
  type WorkspaceWanted,
} from '../workspaces/workspaces.ts'
import { addWorktree, type Worktree } from '../workspaces/worktree/worktree.ts'
import type { Keyed, OutsideEffect, RunEvent } from './core/events-and-effects.ts'
import type { Driver } from './driver.ts'
import { manifestText } from './plan/read-plan.ts'
import { type Dependency, MESSAGES, type PlanAgent } from './plan.ts'
import type { RunMarks } from './process-marks.ts'
import type { OutputFile } from './run.ts'
import { correctionsOf, workspaceOf } from './run-folder.ts'
import type { NodeRecord } from './store.ts'

type Prepare = Keyed<Extract<OutsideEffect, { type: 'prepare' }>>

interface Prepared {
  readonly event: RunEvent
  readonly record?: NodeRecord
}

/** A retry may not meet these problems again. */
const TRANSIENT: ReadonlySet<ProblemCode> = new Set([
  'changed',
  'disk_full',
  'unreadable',
  'read_only',
  'torn',
])

export interface PrepareOptions {
  markOf: RunMarks['of']
  /** Files below the user's folders that no agent may get. */
  withheldFrom(driver: Driver): readonly Withheld[]
}

/** Creates the workspace if necessary, and fills its inbox with input files, outputs of dependencies and corrections. */
export async function prepareNode(
  driver: Driver,
  effect: Prepare,
  { markOf, withheldFrom }: PrepareOptions,
  signal: AbortSignal,
): Promise<Prepared> {
  const { node, preparation, sources, missing, hasPreviousResult } = effect
  const agent = driver.run.graph.agents.get(node)!
  const workspace = workspaceOf(driver.runFolder, node)
  /** `record`: a worktree that was created before the failure must still be stored. */
  const failed = (problems: readonly WorkspaceProblem[], record: NodeRecord = {}): Prepared => {
    const why = nameProblems(problems)
    const recoverable = problems.every(({ code }) => TRANSIENT.has(code))
    return { event: { type: 'copy_failed', node, preparation, why, recoverable }, record }
  }
  const made = await makeWorkspace(driver, agent, workspace, markOf)
  if (!made.ok) return failed(made.error)
  // Any agent can write to `_fixed`, so its files count only after a person or a fixer reported a correction.
  const { corrected } = driver.run.nodes.get(node)!
  const corrections = corrected ? correctionsOf(driver.runFolder, node) : undefined
  const prepared = await prepareInbox({
    workspace,
    task: titleOf(agent),
    instructions: agent.instructions,
    inputs: agent.inputs.map(({ path, to, description }) => ({
      path: resolve(driver.folder, path),
      to,
      description,
    })),
    dependencies: sources.map((source) => outputsFrom(driver, source)),
    outputs: agent.outputs,
    ...(agent.dependsOn.length === 0 ? {} : { dependenciesFile: manifestText(agent) }),
    withheld: () => withheldFrom(driver),
    ...(corrections === undefined ? {} : { corrections }),
    signal,
  })
  if (!prepared.ok) return failed(prepared.error, made.value)
  const { manifest, leftOut } = prepared.value
  const inbox = JSON.stringify(manifest)
  for (const { message } of leftOut.slice(0, 20)) driver.note(node, `left out of its inbox: ${message}`)
  // Orchub writes these files from the agent's definition, which the hash covers already.
  const files = manifest.inputs.filter(({ path }) => !PROTOCOL_FILES.has(path))
  const inputsHash = hashInputs({ agent, files, missing })
  const outputsHash = hasPreviousResult ? await hashOutbox(workspace, signal) : null
  return {
    event: { type: 'inputs_copied', node, preparation, inputsHash, outputsHash },
    record: { inbox, ...made.value },
  }
}

/** Title of the instructions. */
function titleOf({ name, instructions: { objective } }: PlanAgent): string {
  const line = objective.split('\n')[0]!.trim()
  return line === '' ? name : line.length <= 100 ? line : `${line.slice(0, 99)}…`
}

function wantedOf(driver: Driver, agent: PlanAgent, workspace: string): WorkspaceWanted {
  const { name, template, worktree, instructions } = agent
  const objective = instructions.objective || `${name}, an agent of ${driver.run.graph.plan.name}`
  const wanted = { path: workspace, name, template, objective, hasWorktree: worktree }
  const messages = driver.run.graph.plan.messages ? { messages: `../${MESSAGES}` } : {}
  return { ...wanted, ...messages }
}

type MadeWorkspace = Result<NodeRecord, readonly WorkspaceProblem[]>

async function makeWorkspace(
  driver: Driver,
  agent: PlanAgent,
  workspace: string,
  markOf: RunMarks['of'],
): Promise<MadeWorkspace> {
  const { name, worktree } = agent
  const wanted = wantedOf(driver, agent, workspace)
  const made = existsSync(workspace) ? await renewSkill(wanted) : await createWorkspace(wanted)
  if (!made.ok) return made
  if (!worktree || driver.record(name).worktree !== undefined) return { ok: true, value: {} }
  const added = await addWorktree({
    workspace,
    repository: driver.folder,
    branch: `orc/${driver.id}/${name}`,
    variables: { [SESSION_MARK]: markOf(driver.id, name, 'worktree') },
  })
  return added.ok ? { ok: true, value: { worktree: JSON.stringify(added.value) } } : added
}

export function worktreeOf({ worktree }: NodeRecord): Worktree | undefined {
  return worktree === undefined ? undefined : (JSON.parse(worktree) as Worktree)
}

export function manifestIn({ inbox }: NodeRecord): InboxManifest | undefined {
  return inbox === undefined ? undefined : (JSON.parse(inbox) as InboxManifest)
}

/** Validated outputs of another agent, for an inbox. */
export function outputsFrom(
  driver: Driver,
  { agent, outputs, copyTo }: Pick<Dependency, 'agent' | 'outputs' | 'copyTo'>,
): OutputsWanted {
  const validated = driver.run.nodes.get(agent)!.result?.outputs.map(({ path, sha256 }) => ({
    path: path.slice('outbox/'.length),
    sha256,
  }))
  const wanted = { workspace: workspaceOf(driver.runFolder, agent), agent, outputs, copyTo }
  return validated === undefined ? wanted : { ...wanted, validated }
}

async function hashOutbox(workspace: string, signal: AbortSignal): Promise<string | null> {
  const collected = await collectOutbox(workspace, { content: true, signal })
  return collected.ok ? hashOutputs(madeOutputs(collected.value)) : null
}

/** Files that are never copied into an inbox, even if an input folder contains them. */
export function withheldFrom(
  { folder, runFolder }: Pick<Driver, 'folder' | 'runFolder'>,
  { stateFolder, store }: Pick<Config, 'stateFolder' | 'store'>,
): Withheld[] {
  const secret = (what: string) => (path: string) => ({ path, what, isSecret: true })
  const ofStore = store.engine === 'sqlite' ? ['', '-wal', '-shm'].map((end) => `${store.file}${end}`) : []
  return [
    // A plan inside the state folder, such as the demo's, has its inputs there.
    ...(isWithin(realpathSync(folder), stateFolder)
      ? ['operator.token', 'agents']
          .map((name) => join(stateFolder, name))
          .map(secret('holds tokens of the service'))
      : [secret('is the state folder of the service, which holds its tokens')(stateFolder)]),
    ...ofStore.map(secret('is the store of the service')),
    { path: dirname(runFolder), what: 'holds the runs of this plan', isSecret: false },
    { path: runFolder, what: 'is the folder of this run', isSecret: false },
  ]
}

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

/** An agent runs again if this hash changes. The order of the files does not matter. */
export function hashInputs({ agent, files, missing }: Inputs): string {
  return digest(['inputs', definitionOf(agent), sortedFiles(files), [...missing].sort()])
}

/** The dependents of an agent run again if this hash changes. */
export function hashOutputs(outputs: readonly Pick<OutputFile, 'path' | 'sha256'>[]): string {
  return digest(['outputs', sortedFiles(outputs)])
}

/** The part of an agent's definition that affects its work, without retries, timeouts and recovery. */
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

/** Outputs of an outbox that was collected with its content. */
export function madeOutputs({ outputs }: Pick<Outbox, 'outputs'>): OutputFile[] {
  return outputs.map(({ path, size, sha256 }) => ({ path: `outbox/${path}`, bytes: size, sha256: sha256! }))
}
