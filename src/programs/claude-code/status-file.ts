import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { isRunning } from '../../base/process.ts'
import { watchFile } from '../file-watch.ts'
import type { FollowerLog } from '../line-follower.ts'

/** Claude Code's own status in `sessions/PID.json`. */
export const ClaudeStatus = z.looseObject({
  sessionId: z.string(),
  /** Missing at first. Known values: idle, busy, waiting. */
  status: z.string().optional(),
  /** For example `permission prompt`, `dialog open`, `input needed`. */
  waitingFor: z.string().optional(),
  version: z.string().catch(''),
  startedAt: z.number().catch(0),
  statusUpdatedAt: z.number().catch(0),
})
export type ClaudeStatus = z.output<typeof ClaudeStatus>

export interface StatusFile {
  /** Reads it now. Undefined while there is none. */
  read(): Promise<ClaudeStatus | undefined>
  close(): void
}

interface StatusFileOptions {
  readonly file: string
  onStatus(status: ClaudeStatus): void
  readonly log: FollowerLog
}

/** The file is written in place, so a read may see half of it. */
const TORN_READ_MS = 20
const TORN_READS = 10

/** Reports the program's status whenever it changes, by file events. */
export function followStatus({ file, onStatus, log }: StatusFileOptions): StatusFile {
  let closed = false
  let reads: Promise<unknown> = Promise.resolve()
  let wanted = false
  const events = watchFile({
    file,
    changed: () => {
      // Every time, because the file may have been replaced.
      events.attach()
      tell()
    },
    failed: (error) => log.warn({ file, err: error }, 'cannot watch the status file of an agent'),
  })
  events.attach()
  tell()

  function tell() {
    if (wanted) return
    wanted = true
    reads = reads.then(async () => {
      wanted = false
      const status = await readStatus(file)
      if (status !== undefined && !closed) onStatus(status)
    })
  }

  return {
    read: () => readStatus(file),
    close() {
      closed = true
      events.close()
    },
  }
}

/**
 * The newest file that names the session, for programs started through a wrapper. A killed program leaves its
 * last state behind, which must not be taken for the next one's.
 */
export async function findStatusFile(folder: string, sessionId: string): Promise<string | undefined> {
  const names = await readdir(folder).catch(() => [])
  let newest: { file: string; startedAt: number } | undefined
  for (const name of names) {
    const pid = /^(\d+)\.json$/.exec(name)?.[1]
    if (pid === undefined || !isRunning(Number(pid))) continue
    const file = join(folder, name)
    const status = await readStatus(file)
    if (status?.sessionId !== sessionId) continue
    if (newest === undefined || status.startedAt > newest.startedAt)
      newest = { file, startedAt: status.startedAt }
  }
  return newest?.file
}

async function readStatus(file: string): Promise<ClaudeStatus | undefined> {
  for (let tries = 0; tries < TORN_READS; tries++) {
    try {
      const parsed = ClaudeStatus.safeParse(JSON.parse(await readFile(file, 'utf8')))
      if (parsed.success) return parsed.data
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== undefined) return undefined
    }
    await new Promise((resolve) => setTimeout(resolve, TORN_READ_MS))
  }
  return undefined
}
