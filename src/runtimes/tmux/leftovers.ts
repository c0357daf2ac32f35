/** Finds an agent that an earlier service left running, and removes everything else that service left. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { endProcesses, type GroupLeader, processStartedAt } from '../processes.ts'
import { IN_SESSION, isSameServer, type ServerIdentity } from './connection.ts'
import { LAUNCH_FILE } from './launch-file.ts'
import { bufferNameOf, isBufferFile } from './paste-buffer.ts'
import type { TmuxSavedLaunch, TmuxSavedState } from './saved-state.ts'
import type { TmuxServer } from './server.ts'

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
