import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Processes that run with that HOME. Some programs leave helpers behind that outlive their terminal and belong to no
 * process group of theirs, but they keep the environment.
 */
export async function processesOf(home: string | undefined): Promise<number[]> {
  // Or all that the user runs would be found, and ended.
  if (!home || home === process.env.HOME) throw new Error('The agent has no HOME of its own')
  const found: number[] = []
  // Without /proc, nothing is found and nothing is ended.
  for (const entry of await readdir('/proc').catch(() => [])) {
    const pid = Number(entry)
    if (!Number.isInteger(pid) || pid === process.pid) continue
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
    if (environment.split('\0').includes(`HOME=${home}`)) found.push(pid)
  }
  return found
}

export async function endProcessesOf(home: string | undefined): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (const pid of await processesOf(home)) end(pid, signal)
    for (let n = 0; n < 20 && (await processesOf(home)).length > 0; n++) await sleep(50)
  }
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // Gone already.
  }
}
