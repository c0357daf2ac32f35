import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const SERVICE_FILE = 'service.json'

/**
 * Tells the command line where the service of this state folder listens, and whether it is only there for runs. Holds
 * no secret. It stays behind when the service is killed.
 */
export function announceService(stateFolder: string, url: string, forRuns: boolean): { close(): void } {
  const file = join(stateFolder, SERVICE_FILE)
  writeFileSync(
    `${file}.new`,
    JSON.stringify({ url, pid: process.pid, ...(forRuns ? { for_runs: true } : {}) }),
  )
  renameSync(`${file}.new`, file)
  return {
    close() {
      // A later service may have taken the place; its note must stay.
      if (readPid(file) === process.pid) rmSync(file, { force: true })
    },
  }
}

function readPid(file: string): number | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid
  } catch {
    return undefined
  }
}
