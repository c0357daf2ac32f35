import { type Dirent, existsSync, readdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { findRunProcesses } from '../../../runs/process-marks.ts'
import { readStatus } from '../../../workspaces/status.ts'
import type { FinishedAgent } from '../../../workspaces/survey.ts'
import type { WorkspaceProblem } from '../../../workspaces/workspaces.ts'
import { findWorktree } from '../../../workspaces/worktree/worktree.ts'
import { reachRuns } from '../../connection/client.ts'
import { findTeamLocation, searchUpwards, type TeamLocation } from '../../connection/connection.ts'
import { locationForPlan } from '../../connection/start-service.ts'
import type { RunShown } from '../runs/run-text.ts'

export interface FoundFolder {
  /** Absolute, without links. */
  path: string
  agents: { name: string; workspace: string }[]
  /** True if the folder is a workspace itself, false if it contains workspaces. */
  isOne: boolean
}

/** Finds a workspace, or all workspaces in a folder such as that of a run. */
export function findWorkspaces(named: string): FoundFolder {
  const path = realpathSync(resolve(named))
  if (isWorkspace(path)) return { path, agents: [{ name: basename(path), workspace: path }], isOne: true }
  const agents = readdirSync(path, { withFileTypes: true })
    .filter((entry: Dirent) => entry.isDirectory() && isWorkspace(join(path, entry.name)))
    .map(({ name }) => ({ name, workspace: join(path, name) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
  if (agents.length > 0) return { path, agents, isOne: false }
  throw new AppError('NOT_FOUND', `${named} contains no workspace`, {
    hint: 'Name a workspace (a folder with inbox/, outbox/ and status.json) or a folder of workspaces, such as runs/run_1.',
  })
}

function isWorkspace(path: string): boolean {
  return ['inbox', 'outbox', 'status.json'].every((part) => existsSync(join(path, part)))
}

/** Reads the state of each workspace, from its run or else from its files, and its worktree. */
export async function inspect({ agents }: FoundFolder, run: OwningRun | undefined): Promise<FinishedAgent[]> {
  const states = new Map(run?.shown?.nodes.map(({ name, state }) => [join(run.folder, name), state] as const))
  const inspected: FinishedAgent[] = []
  for (const { name, workspace } of agents) {
    const state = states.get(workspace)
    const status = readStatus(workspace)
    const { worktree, unseen } = await findWorktree(workspace)
    inspected.push({
      name,
      workspace,
      ...(state === undefined ? {} : { state }),
      // status.json is out of date if the agent was killed or timed out.
      isRunning: state === undefined && status.ok && status.value.status.state === 'running',
      worktree,
      unseenWorktrees: unseen,
    })
  }
  return inspected
}

/** Problems with files or the disk as one error. */
export function refused(problems: readonly WorkspaceProblem[], hint: string): AppError {
  const code = problems[0]!.code === 'missing' ? 'NOT_FOUND' : 'CONFLICT'
  return new AppError(code, problems.map(({ message }) => message).join('\n'), { hint })
}

/** The run that a workspace belongs to. */
export interface OwningRun {
  id: string
  /** The real path of its folder. */
  folder: string
  /** Undefined if neither the service nor the store could be read. */
  shown?: RunShown
  /** True if a running service drives it and can stop it. */
  isDriven: boolean
  /** Live processes by agent, found even if the service was killed. */
  processes: ReadonlyMap<string, readonly number[]>
}

/** Undefined if no run owns the workspace. The run's state outranks status.json, which a command need not update (S4.2). */
export async function findOwningRun(location: TeamLocation, path: string): Promise<OwningRun | undefined> {
  const folder = folderOfRun(path)
  const [id] = /^run_\d+/.exec(basename(folder ?? '')) ?? []
  if (folder === undefined || id === undefined) return undefined
  let owning: OwningRun | undefined
  for (const team of teamsFor(location, folder)) {
    const found = await askForRun(team, id)
    // A run with the same id in another folder: this one belongs to another team, or its state was deleted.
    if (found !== undefined && !isSameFolder(found.shown.place, folder)) continue
    const { stateFolder } = team
    const processes = stateFolder === undefined ? new Map() : await findRunProcesses(stateFolder, id)
    if (found !== undefined) return { id, folder, ...found, processes }
    if (processes.size > 0) owning = { id, folder, isDriven: false, processes }
  }
  return owning
}

function folderOfRun(path: string): string | undefined {
  if (/^run_\d+(\.\d+)?$/.test(basename(path))) return path
  return path === dirname(path) ? undefined : folderOfRun(dirname(path))
}

/** The team that other commands use here, and the one around the folder if it differs. */
function teamsFor(location: TeamLocation, folder: string): TeamLocation[] {
  const team = locationForPlan(location, folder)
  const around = searchUpwards(folder)
  return around === undefined || around === team.configFile ? [team] : [team, findTeamLocation(around)]
}

function isSameFolder(one: string, other: string): boolean {
  return one === other || (existsSync(one) && realpathSync(one) === other)
}

async function askForRun(location: TeamLocation, id: string) {
  try {
    return await reachRuns(
      location,
      async (client) => ({ shown: await client.run(id), isDriven: true }),
      async (stored) => ({ shown: await stored.show(id), isDriven: false }),
    )
  } catch (error) {
    // The files can be shown without access to the service or the store.
    if (error instanceof AppError || (error as { code?: unknown }).code !== undefined) return undefined
    throw error
  }
}
