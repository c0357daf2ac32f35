import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = 'port'

/**
 * The port of the last time, for a service that takes any free one: agents that outlived it know the address they
 * were started with, and their hooks and tools must find it there again.
 */
export function lastPort(stateFolder: string): number | undefined {
  try {
    const port = Number(readFileSync(join(stateFolder, FILE), 'utf8'))
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
  } catch {
    return undefined
  }
}

export function rememberPort(stateFolder: string, port: number): void {
  writeFileSync(join(stateFolder, FILE), String(port))
}
