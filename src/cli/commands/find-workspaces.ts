import { type Dirent, existsSync, readdirSync, realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { AppError } from '../../base/errors.ts'
import type { DissolvedAgent } from '../../workspaces/dissolve/dissolve.ts'
import { readStatus } from '../../workspaces/status.ts'
import type { WorkspaceProblem } from '../../workspaces/workspaces.ts'
import { findWorktree } from '../../workspaces/worktree/worktree.ts'
import type { OwningRun } from './owning-run.ts'

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
export async function inspect(
  { agents }: FoundFolder,
  run: OwningRun | undefined,
): Promise<DissolvedAgent[]> {
  const states = new Map(run?.shown?.nodes.map(({ name, state }) => [join(run.folder, name), state] as const))
  const inspected: DissolvedAgent[] = []
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
