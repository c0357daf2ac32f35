import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** Timeouts for processes to end; longer after a kill, for a busy machine. */
const ENDING_MS = 1_000
const KILLING_MS = 30_000
const LOOK_MS = 50

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

/** Some of them end by themselves when another one is gone. */
export async function signalProcessesOf(
  home: string | undefined,
  signal: NodeJS.Signals,
  spared?: number,
): Promise<void> {
  for (const pid of await processesOf(home)) {
    if (pid === spared) continue
    try {
      process.kill(pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** Repeats until nothing is left, because a process may just start another one. */
export async function killProcessesOf(home: string | undefined): Promise<void> {
  await signalProcessesOf(home, 'SIGKILL')
  const left = await leftAfter(home, KILLING_MS, () => signalProcessesOf(home, 'SIGKILL'))
  if (left.length > 0) throw new Error(`What runs with ${home} cannot be killed: ${left.join(', ')}`)
}

export async function endProcessesOf(home: string | undefined): Promise<void> {
  await signalProcessesOf(home, 'SIGTERM')
  await leftAfter(home, ENDING_MS)
  await killProcessesOf(home)
}

async function leftAfter(
  home: string | undefined,
  ms: number,
  meanwhile?: () => Promise<void>,
): Promise<number[]> {
  const until = Date.now() + ms
  for (;;) {
    const left = await processesOf(home)
    if (left.length === 0 || Date.now() > until) return left
    await sleep(LOOK_MS)
    await meanwhile?.()
  }
}
