import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ShellShape } from '../protocol/registry.ts'

const SERVICE_FILE = 'service.json'

interface ServiceAnnouncement {
  url: string
  /** The service was started for runs only and stops after the last one. */
  for_runs?: true
  /** The registered commands, so that the CLI can send one without loading schemas or making a second request. */
  commands: Record<string, ShellShape>
}

/**
 * Tells the CLI where the service of this state folder listens and which commands it accepts. The file contains no
 * secret and stays behind when the service is killed.
 */
export function announceService(stateFolder: string, announcement: ServiceAnnouncement): { close(): void } {
  const file = join(stateFolder, SERVICE_FILE)
  writeFileSync(`${file}.new`, JSON.stringify({ pid: process.pid, ...announcement }))
  renameSync(`${file}.new`, file)
  return {
    close() {
      // A newer service may have replaced the file; keep it then.
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

const PORT_FILE = 'port'

/**
 * The port the service used last, for a service configured to pick a free one. Agents that outlive the service keep
 * the address they were started with, so their hooks and tools must find it there again.
 */
export function lastPort(stateFolder: string): number | undefined {
  try {
    const port = Number(readFileSync(join(stateFolder, PORT_FILE), 'utf8'))
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
  } catch {
    return undefined
  }
}

export function rememberPort(stateFolder: string, port: number): void {
  writeFileSync(join(stateFolder, PORT_FILE), String(port))
}
