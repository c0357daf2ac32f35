/** What an earlier service left of an agent: the one that goes on, and all that must not. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startOf } from '../process-table.ts'
import { endProcesses, type Leader } from '../processes.ts'
import { IN_SESSION, isSameServer, type ServerIdentity } from './connection.ts'
import { LAUNCH_FILE } from './launch-file.ts'
import { bufferOf, isSpoolFile } from './paste-buffer.ts'
import type { Kept, KeptLaunch } from './saved-state.ts'
import type { Server } from './server.ts'

/** Options of a pane, set before its agent runs: whose it is, and the mark of what was started in it. */
export const AGENT = '@orc_agent'
export const MARK = '@orc_mark'

/** The very process in the very pane. */
export async function findAgain(
  server: Server,
  identity: ServerIdentity,
  kept: Kept | KeptLaunch | undefined,
): Promise<Kept | undefined> {
  if (kept === undefined || !('pane' in kept) || !isSameServer(kept.server, identity)) return undefined
  const [panes] = await server.run([
    ...['list-panes', '-s', '-t', IN_SESSION, '-F', '#{pane_id} #{pane_dead} #{pane_pid}'],
  ])
  const isListed = panes!.lines.includes(`${kept.pane} 0 ${kept.process.pid}`)
  return isListed && (await startOf(kept.process.pid)) === kept.process.startedAt ? kept : undefined
}

export interface ClearingOrder {
  name: string
  folder: string
  earlier: Kept | KeptLaunch | undefined
  /** Goes on. */
  found: Kept | undefined
}

/** Two processes of one agent would share its name, its mail and its files. */
export async function clearAway(server: Server, { name, folder, earlier, found }: ClearingOrder) {
  if (earlier !== undefined && found === undefined) {
    await endProcesses({ mark: earlier.mark, leader: 'process' in earlier ? earlier.process : undefined })
  }
  for (const { pane, pid, mark } of await panesOf(server, name)) {
    if (pane === found?.pane) continue
    await endProcesses({ mark, leader: await leaderOf(pid) })
    await server.run(['kill-pane', '-t', pane]).catch(() => {})
  }
  await removeFiles(server, folder, found === undefined)
}

async function panesOf(server: Server, name: string) {
  const [panes] = await server.run([
    ...['list-panes', '-s', '-t', IN_SESSION],
    ...['-F', `#{pane_id} #{?pane_dead,,#{pane_pid}} #{${MARK}} #{${AGENT}}`],
  ])
  return panes!.lines.flatMap((line) => {
    // The name comes last, since it may hold spaces.
    const [pane, pid, mark, ...words] = line.split(' ')
    if (words.join(' ') !== name || !mark) return []
    return [{ pane: pane!, pid: pid ? Number(pid) : undefined, mark }]
  })
}

async function leaderOf(pid: number | undefined): Promise<Leader | undefined> {
  const startedAt = pid === undefined ? undefined : await startOf(pid)
  return startedAt === undefined ? undefined : { pid: pid!, startedAt }
}

/** Messages on their way into a pane, and a script with a token in it that was never run. */
async function removeFiles(server: Server, folder: string, isToBeLaunched: boolean) {
  const stale = (await readdir(folder)).filter(
    (name) => isSpoolFile(name) || (isToBeLaunched && name === LAUNCH_FILE),
  )
  for (const buffer of stale.filter(isSpoolFile).map(bufferOf))
    await server.run(['delete-buffer', '-b', buffer]).catch(() => {})
  await Promise.all(stale.map((name) => rm(join(folder, name), { force: true })))
}
