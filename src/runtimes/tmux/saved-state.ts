/**
 * The state saved for an agent in a pane. With it, finds an agent that an earlier service left running, and
 * removes everything else that service left.
 */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { endProcesses, type GroupLeader, processStartedAt } from '../processes.ts'
import { IN_SESSION, isSameServer, type ServerIdentity } from './connection.ts'
import { LAUNCH_FILE } from './launch-file.ts'
import { bufferNameOf, isBufferFile } from './paste.ts'
import type { TmuxServer } from './server.ts'

/**
 * Saved before the launch: if the service is killed before the launch completes, the next one finds the
 * processes by their mark and knows the conversation they were to resume.
 */
const TmuxSavedLaunch = z.object({
  mark: z.string(),
  /** Saved state is only valid for the program that wrote it. */
  programName: z.string(),
  program: z.unknown(),
})
export type TmuxSavedLaunch = z.output<typeof TmuxSavedLaunch>

/** Finds an agent again after the service restarts, and its conversation if the agent is gone. */
export const TmuxSavedState = TmuxSavedLaunch.extend({
  pane: z.string().regex(/^%\d+$/),
  /** Pane ids are unique only within one server. */
  server: z.object({ pid: z.int(), startedAt: z.string() }),
  /** Pid plus start time identify the process even if the pid is reused. */
  process: z.object({ pid: z.int(), startedAt: z.string() }),
})
export type TmuxSavedState = z.output<typeof TmuxSavedState>

/** Ignores state saved by another runtime or an incompatible version. */
export function readTmuxSavedState(value: unknown): TmuxSavedState | TmuxSavedLaunch | undefined {
  return TmuxSavedState.safeParse(value).data ?? TmuxSavedLaunch.safeParse(value).data
}

/** Pane options set before the agent runs: the agent's name, and the mark of its processes. */
export const AGENT_OPTION = '@orc_agent'
export const MARK_OPTION = '@orc_mark'

/** Returns the state only if the same process runs in the same pane. */
export async function findRunningPane(
  server: TmuxServer,
  identity: ServerIdentity,
  savedState: TmuxSavedState | TmuxSavedLaunch | undefined,
): Promise<TmuxSavedState | undefined> {
  if (savedState === undefined || !('pane' in savedState) || !isSameServer(savedState.server, identity))
    return undefined
  const [panes] = await server.run([
    ...['list-panes', '-s', '-t', IN_SESSION, '-F', '#{pane_id} #{pane_dead} #{pane_pid}'],
  ])
  const isListed = panes!.lines.includes(`${savedState.pane} 0 ${savedState.process.pid}`)
  return isListed && (await processStartedAt(savedState.process.pid)) === savedState.process.startedAt
    ? savedState
    : undefined
}

interface CleanupRequest {
  name: string
  folder: string
  earlier: TmuxSavedState | TmuxSavedLaunch | undefined
  /** The pane that keeps running. */
  found: TmuxSavedState | undefined
}

/** Two processes of one agent would share its name, mail and files. */
export async function cleanUpAgent(server: TmuxServer, { name, folder, earlier, found }: CleanupRequest) {
  if (earlier !== undefined && found === undefined) {
    await endProcesses({ mark: earlier.mark, leader: 'process' in earlier ? earlier.process : undefined })
  }
  for (const { pane, pid, mark } of await panesOf(server, name)) {
    if (pane === found?.pane) continue
    await endProcesses({ mark, leader: await leaderOf(pid) })
    await server.run(['kill-pane', '-t', pane]).catch(() => {})
  }
  await removeStaleFiles(server, folder, found === undefined)
}

async function panesOf(server: TmuxServer, name: string) {
  const [panes] = await server.run([
    ...['list-panes', '-s', '-t', IN_SESSION],
    ...['-F', `#{pane_id} #{?pane_dead,,#{pane_pid}} #{${MARK_OPTION}} #{${AGENT_OPTION}}`],
  ])
  return panes!.lines.flatMap((line) => {
    // The name comes last because it may contain spaces.
    const [pane, pid, mark, ...words] = line.split(' ')
    if (words.join(' ') !== name || !mark) return []
    return [{ pane: pane!, pid: pid ? Number(pid) : undefined, mark }]
  })
}

async function leaderOf(pid: number | undefined): Promise<GroupLeader | undefined> {
  const startedAt = pid === undefined ? undefined : await processStartedAt(pid)
  return startedAt === undefined ? undefined : { pid: pid!, startedAt }
}

/**
 * Removes message files left on their way into a pane, and an unused launch script, which contains a token.
 */
async function removeStaleFiles(server: TmuxServer, folder: string, isToBeLaunched: boolean) {
  const stale = (await readdir(folder)).filter(
    (name) => isBufferFile(name) || (isToBeLaunched && name === LAUNCH_FILE),
  )
  for (const buffer of stale.filter(isBufferFile).map(bufferNameOf))
    await server.run(['delete-buffer', '-b', buffer]).catch(() => {})
  await Promise.all(stale.map((name) => rm(join(folder, name), { force: true })))
}
