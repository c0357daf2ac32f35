import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ShellShape } from '../protocol/registry.ts'

const SERVICE_FILE = 'service.json'

interface ServiceNote {
  url: string
  /** The service exists for runs only, and ends with the last of them. */
  for_runs?: true
  /** The commands it takes: with them a short command needs neither the schemas nor a second request. */
  commands: Record<string, ShellShape>
}

/**
 * Tells the command line where the service of this state folder listens and what it understands. Holds no secret. The
 * file stays behind when the service is killed.
 */
export function announceService(stateFolder: string, note: ServiceNote): { close(): void } {
  const file = join(stateFolder, SERVICE_FILE)
  writeFileSync(`${file}.new`, JSON.stringify({ pid: process.pid, ...note }))
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
