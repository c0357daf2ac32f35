/** Whether a program has taken in what was written into its terminal. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const LOOKS = 20
const LOOK_EVERY_MS = 25
/** In a row: a single look may fall between two steps of its work. */
const LOOKS_ASLEEP = 3

/**
 * A program that sleeps has nothing to read, or it would have been woken. One that is stopped, or has its hands full,
 * may not have come to it yet, and its screen is an old one. Without /proc nobody can tell, and the screen has to do.
 */
export async function hasReadInput(leader: number): Promise<boolean> {
  let asleep = 0
  for (let look = 0; look < LOOKS && asleep < LOOKS_ASLEEP; look++) {
    if (look > 0) await sleep(LOOK_EVERY_MS)
    const states = statesAtTerminal(leader)
    if (states === undefined) return true
    asleep = states.every((state) => state === 'S' || state === 'I') ? asleep + 1 : 0
  }
  return asleep >= LOOKS_ASLEEP
}

/** Of every thread of what runs in the foreground of the leader's terminal. */
function statesAtTerminal(leader: number): string[] | undefined {
  const of = readStat(`/proc/${leader}/stat`)
  if (of === undefined) return undefined
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const stat = readStat(`/proc/${pid}/stat`)
      return stat?.terminal === of.terminal && stat.group === of.foreground && !/[ZX]/.test(stat.state)
    })
    .flatMap((pid) =>
      threadsOf(pid).map((thread) => readStat(`/proc/${pid}/task/${thread}/stat`)?.state ?? 'S'),
    )
}

function threadsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

function readStat(path: string) {
  try {
    const text = readFileSync(path, 'utf8')
    // The name in brackets may hold anything, brackets too.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0]!, group: fields[2]!, terminal: fields[4]!, foreground: fields[5]! }
  } catch {
    return undefined
  }
}
