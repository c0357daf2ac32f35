import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

/** In the environment of everything an agent starts, unless it takes it out on purpose. */
export const SESSION_MARK = 'ORC_SESSION'

const LOOK_AGAIN_MS = 25
const KILL_ROUNDS = 80

interface Entry {
  readonly pid: number
  readonly parent: number
  readonly group: number
  /** With it, a pid that was given to another process meanwhile is told apart. */
  readonly started: string
  readonly isMarked: boolean
}

/**
 * Ends all that belongs to one launch of an agent: the processes that bear its mark, the process group of `pid`, and
 * their descendants. Asks first (SIGTERM), then kills. Returns the pids that would not go, normally none.
 * `pid` only while it surely is the agent's: after a reboot the number may be anyone's.
 */
export async function endEverything(
  mark: string,
  pid: number | undefined,
  graceMs: number,
): Promise<number[]> {
  const known = new Set<string>()
  const left = async () => belonging(await listProcesses(mark), pid, known)

  let running = await left()
  // Continued, since a stopped process would not hear the first signal.
  for (const signal of ['SIGTERM', 'SIGCONT'] as const) send(running, signal)
  const deadline = performance.now() + graceMs
  while (running.length > 0 && performance.now() < deadline) {
    await sleep(LOOK_AGAIN_MS)
    running = await left()
  }
  for (let round = 0; running.length > 0 && round < KILL_ROUNDS; round++) {
    send(running, 'SIGKILL')
    await sleep(LOOK_AGAIN_MS)
    running = await left()
  }
  return running
}

/** `known` remembers who belonged: a child whose parent has ended can no longer be told by descent. */
function belonging(entries: readonly Entry[], pid: number | undefined, known: Set<string>): number[] {
  const mine = new Set<Entry>()
  const add = (entry: Entry) => {
    if (mine.has(entry) || entry.pid === process.pid) return
    mine.add(entry)
    for (const child of entries) if (child.parent === entry.pid) add(child)
  }
  for (const entry of entries) {
    if (entry.isMarked || entry.pid === pid || entry.group === pid || known.has(keyOf(entry))) add(entry)
  }
  for (const entry of mine) known.add(keyOf(entry))
  return [...mine].map((entry) => entry.pid)
}

const keyOf = (entry: Entry) => `${entry.pid} ${entry.started}`

function send(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It ended meanwhile, or it is not ours to signal: the next look tells.
    }
  }
}

async function listProcesses(mark: string): Promise<Entry[]> {
  if (process.platform !== 'linux') return await listByPs()
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const entries = await Promise.all(pids.map((pid) => readEntry(pid, mark)))
  return entries.filter((entry) => entry !== undefined)
}

async function readEntry(pid: string, mark: string): Promise<Entry | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may hold anything; the fields after it may not.
    const [state, parent, group, ...others] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (state === 'Z' || state === 'X') return undefined
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    return {
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      started: others[16] ?? '',
      isMarked: environment.split('\0').includes(`${SESSION_MARK}=${mark}`),
    }
  } catch {
    return undefined
  }
}

/** Without /proc the environment of others is not to be seen: group and descent have to do. */
export async function listByPs(): Promise<Entry[]> {
  const columns = 'pid=,ppid=,pgid=,stat=,lstart='
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', columns], { maxBuffer: 64 << 20 })
  return stdout.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.*?)\s*$/.exec(line)
    if (match === null || match[4]!.startsWith('Z')) return []
    const [pid, parent, group] = match.slice(1, 4).map(Number) as [number, number, number]
    return [{ pid, parent, group, started: match[5]!, isMarked: false }]
  })
}
