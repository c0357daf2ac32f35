import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'

/** What is started in a process group of its own. */
export interface LaunchOrder {
  /** For the shell. */
  readonly script: string
  readonly cwd: string
  /** Set besides what the launcher was started with. */
  readonly variables: Readonly<Record<string, string>>
  readonly logFile: string
}

export interface Launched {
  /** Of the process that leads the group; undefined: it never began. */
  readonly pid: Promise<number | undefined>
  /** `isKnown` false: the launcher went first. */
  readonly exited: Promise<Exit>
}

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  readonly isKnown: boolean
}

export interface Launcher {
  /** Undefined: there is nothing to spare for another shell. */
  launch(order: LaunchOrder): Launched | undefined
  /** What it started goes on. */
  close(): void
}

interface Order extends LaunchOrder {
  pid(value: number | undefined): void
  exit(value: Exit): void
}

/** One shell that carries out one order after the other. */
interface Slot {
  readonly number: number
  readonly orders: Writable
  order: Order | undefined
}

/** Shells that share a process. */
interface Bank {
  slots: Slot[]
  /** Runs while none of them has an order. */
  idle: NodeJS.Timeout | undefined
}

/** Bash can give a process a group of its own by itself; other shells take setsid, which is one more program to start. */
const BASH = ['/bin/bash', '/usr/bin/bash'].find((path) => existsSync(path))
const SETSID = ['/usr/bin/setsid', '/bin/setsid'].find((path) => existsSync(path))
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [128 + number, name]))

export const canLaunch = BASH !== undefined || SETSID !== undefined

const NEWS = 3
/** Where orders come in: as many commands at once, before another bank of shells is opened. */
const FIRST = 4
const SLOTS = 8
const IDLE_MS = 30_000

/**
 * Each reads one order after the other, byte by byte as shells do, so that nothing of the next one is taken; starts what it
 * says, and tells how that ended. Jobs have groups of their own only while they are started: otherwise one that is
 * held still would count as ended.
 */
const BANK = `
work() {
  while IFS= read -r orc_lines; do
    orc_order=
    while [ "$orc_lines" -gt 0 ]; do
      IFS= read -r orc_line || exit 0
      orc_order="$orc_order$orc_line
"
      orc_lines=$((orc_lines - 1))
    done
    ${BASH === undefined ? '' : 'set -m'}
    ( eval "$orc_order"; exit 1 ) &
    ${BASH === undefined ? '' : 'set +m'}
    wait $!
    echo "e $1 $?" >&${NEWS}
  done
}
${slotNumbers()
  .map((slot) => `work ${slot} <&${slot} ${closing()} &`)
  .join('\n')}
exec ${closing()}
wait`

function slotNumbers(): number[] {
  return Array.from({ length: SLOTS }, (_, index) => FIRST + index)
}

function closing(): string {
  return slotNumbers()
    .map((slot) => `${slot}<&-`)
    .join(' ')
}

/**
 * Shells that start processes for the service. For each child node copies the tables of all its own memory, and stands
 * still meanwhile: with a heap of 300 MB that is tens of milliseconds, where a shell takes less than one.
 */
export function createLauncher(
  environment: Readonly<Record<string, string>>,
  idleMs: number = IDLE_MS,
): Launcher {
  const banks = new Set<Bank>()

  function openBank(): Bank | undefined {
    const child = spawnBank(environment)
    if (child === undefined) return undefined
    const bank: Bank = { slots: [], idle: undefined }
    const gone = () => {
      banks.delete(bank)
      clearTimeout(bank.idle)
      for (const slot of bank.slots) lose(slot)
    }
    // At once: without descriptors or processes to spare it fails later, and has no pipes.
    child.on('error', gone)
    // Its last words come before the end of the pipe; the processes that it leaves may hold that open.
    child.on('exit', () => setImmediate(gone))
    if (child.pid === undefined) return undefined
    bank.slots = slotNumbers().map((number): Slot => {
      const orders = child.stdio[number] as Socket
      const slot = { number, orders, order: undefined }
      // Nobody else has the other end: its shell is gone.
      orders.on('error', () => {}).on('close', () => giveUp(bank, slot))
      orders.resume()
      return slot
    })
    banks.add(bank)
    let rest = ''
    const news = child.stdio[NEWS] as Readable
    news.on('error', () => {})
    news.setEncoding('latin1').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) hear(bank, line)
    })
    // It must not keep a service alive that is about to end.
    child.unref()
    return bank
  }

  function giveUp(bank: Bank, slot: Slot) {
    bank.slots = bank.slots.filter((one) => one !== slot)
    setImmediate(() => lose(slot))
  }

  function hear(bank: Bank, line: string) {
    const [what, number, value] = line.split(' ')
    const slot = bank.slots.find((one) => one.number === Number(number))
    if (slot?.order === undefined) return
    if (what === 'p') slot.order.pid(Number(value))
    if (what !== 'e') return
    end(slot, Number(value))
    if (bank.slots.every(({ order }) => order === undefined)) startIdling(bank)
  }

  /** What a crowd needed goes after it; one bank stays. */
  function startIdling(bank: Bank) {
    clearTimeout(bank.idle)
    bank.idle = setTimeout(() => {
      if (banks.size === 1) return
      banks.delete(bank)
      dismiss(bank)
    }, idleMs).unref()
  }

  function freeSlot(): Slot | undefined {
    for (const bank of banks) {
      const free = bank.slots.find(({ order }) => order === undefined)
      if (free === undefined) continue
      clearTimeout(bank.idle)
      return free
    }
    return openBank()?.slots[0]
  }

  return {
    launch(wanted) {
      const slot = freeSlot()
      if (slot === undefined) return undefined
      const pid = Promise.withResolvers<number | undefined>()
      const exited = Promise.withResolvers<Exit>()
      slot.order = { ...wanted, pid: pid.resolve, exit: exited.resolve }
      const text = textOf(wanted, slot.number)
      slot.orders.write(`${text.split('\n').length}\n${text}\n`)
      return { pid: pid.promise, exited: exited.promise }
    },
    close() {
      for (const bank of banks) {
        clearTimeout(bank.idle)
        dismiss(bank)
      }
    },
  }
}

function spawnBank(environment: Readonly<Record<string, string>>): ChildProcess | undefined {
  // -p: nothing of the environment is taken for its own settings.
  const [shell, ...options] = BASH === undefined ? ['/bin/sh', '-c'] : [BASH, '-p', '-c']
  try {
    return spawn(shell!, [...options, BANK], {
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', ...slotNumbers().map(() => 'pipe' as const)],
      env: environment,
    })
  } catch {
    return undefined
  }
}

/** Without orders to come its shells end. */
function dismiss({ slots }: Bank) {
  for (const { orders } of slots) orders.end()
}

function end(slot: Slot, code: number) {
  const signal = SIGNALS.get(code)
  // Where it could not even begin.
  slot.order?.pid(undefined)
  slot.order?.exit({ code: signal === undefined ? code : null, signal: signal ?? null, isKnown: true })
  slot.order = undefined
}

function lose(slot: Slot) {
  slot.order?.pid(undefined)
  slot.order?.exit({ code: null, signal: null, isKnown: false })
  slot.order = undefined
}

/** The slot's child becomes the shell of the command, which first says its pid. */
function textOf({ script, cwd, variables, logFile }: LaunchOrder, slot: number): string {
  const set = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`)
  const inside = `echo "p ${slot} $$" >&${NEWS}; exec ${NEWS}>&-\n${script}`
  const shell = `${BASH === undefined ? `${SETSID} ` : ''}/bin/sh -c ${quote(inside)}`
  return `cd ${quote(cwd)} && ${set.join(' ')} exec ${shell} </dev/null >>${quote(logFile)} 2>&1`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
