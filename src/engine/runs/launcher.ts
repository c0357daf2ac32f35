import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'

/** What is started in a session of its own. */
export interface LaunchOrder {
  /** For the shell. */
  readonly script: string
  readonly cwd: string
  /** Set besides what the launcher was started with. */
  readonly variables: Readonly<Record<string, string>>
  readonly logFile: string
}

export interface Launched {
  /** Of the process that leads the session; undefined: it never began. */
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
  launch(order: LaunchOrder): Launched
  /** What it started goes on. */
  close(): void
}

interface Order {
  readonly text: string
  pid(value: number | undefined): void
  exit(value: Exit): void
}

/** A place in which one spare shell waits for its order. */
interface Slot {
  readonly orders: Writable
  /** Which spare is in it; undefined: none. */
  spare: number | undefined
  order: Order | undefined
}

const SETSID = ['/usr/bin/setsid', '/bin/setsid'].find((path) => existsSync(path))
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [128 + number, name]))

export const canLaunch = SETSID !== undefined

const NEWS = 3
const SLOTS = [4, 5, 6, 7]

/** Reads one order, byte by byte as shells do, so that nothing of the next one is taken; then becomes what it says. */
const SPARE = `
IFS= read -r orc_lines || exit 0
orc_order=
while [ "$orc_lines" -gt 0 ]; do
  IFS= read -r orc_line || exit 1
  orc_order="$orc_order$orc_line
"
  orc_lines=$((orc_lines - 1))
done
echo "p $1 $$" >&${NEWS}
eval "$orc_order"
exit 1`

/** For each line a spare, in a session of its own already; its parent waits for its end. */
const MAIN = `
while read -r slot spare; do
  ( ${SETSID} /bin/sh -c ${quote(SPARE)} spare "$spare" <&"$slot" ${SLOTS.map((fd) => `${fd}<&-`).join(' ')}
    echo "e $spare $?" >&${NEWS} ) </dev/null &
done`

/**
 * Shells that start processes for the service. For each child node copies the tables of all its own memory, and stands
 * still meanwhile: with a heap of 300 MB that is tens of milliseconds, where a shell takes less than one. A few wait
 * ready, forked and in their sessions, so that an order costs one exec.
 */
export function createLauncher(environment: Readonly<Record<string, string>>): Launcher {
  let shell: ChildProcess | undefined
  let slots: Slot[] = []
  const waiting: Order[] = []
  /** By the number of their spare: those that have begun. */
  const begun = new Map<number, Order>()
  let count = 0

  function start(): ChildProcess {
    const started = spawn('/bin/sh', ['-c', MAIN], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore', 'pipe', ...SLOTS.map(() => 'pipe' as const)],
      env: environment,
    })
    slots = SLOTS.map((fd) => {
      const orders = started.stdio[fd] as Writable
      orders.on('error', () => {})
      return { orders, spare: undefined, order: undefined }
    })
    let rest = ''
    const news = started.stdio[NEWS] as Readable
    news.setEncoding('latin1').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) hear(line)
    })
    const gone = () => {
      if (shell !== started) return
      shell = undefined
      const lost = [...begun.values(), ...slots.flatMap(({ order }) => order ?? []), ...waiting.splice(0)]
      begun.clear()
      for (const order of lost) lose(order)
    }
    started.on('error', gone)
    // Its last words come before the end of the pipe; the processes that it leaves may hold that open.
    started.on('exit', () => setImmediate(gone))
    started.stdin!.on('error', () => {})
    // It must not keep a service alive that is about to end.
    started.unref()
    return started
  }

  function hear(line: string) {
    const [what, spare, number] = line.split(' ') as [string, string, string]
    if (what === 'p') begin(Number(spare), Number(number))
    if (what === 'e') end(Number(spare), Number(number))
  }

  /** It has taken its order: the next spare takes its place. */
  function begin(spare: number, pid: number) {
    const slot = slots.find((one) => one.spare === spare)
    if (slot?.order === undefined) return
    begun.set(spare, slot.order)
    slot.order.pid(pid)
    slot.order = undefined
    fill(slot)
    const next = waiting.shift()
    if (next !== undefined) give(slot, next)
  }

  function end(spare: number, code: number) {
    const order = begun.get(spare)
    begun.delete(spare)
    const signal = SIGNALS.get(code)
    order?.exit({ code: signal === undefined ? code : null, signal: signal ?? null, isKnown: true })
    // One that went without having begun: its order may be half read.
    const slot = slots.find((one) => one.spare === spare)
    if (slot === undefined) return
    slot.spare = undefined
    if (slot.order !== undefined) lose(slot.order)
    slot.order = undefined
  }

  function fill(slot: Slot) {
    slot.spare = ++count
    shell!.stdin!.write(`${SLOTS[slots.indexOf(slot)]} ${slot.spare}\n`)
  }

  function give(slot: Slot, order: Order) {
    if (slot.spare === undefined) fill(slot)
    slot.order = order
    slot.orders.write(`${order.text.split('\n').length}\n${order.text}\n`)
  }

  return {
    launch({ script, cwd, variables, logFile }) {
      shell ??= start()
      const pid = Promise.withResolvers<number | undefined>()
      const exited = Promise.withResolvers<Exit>()
      const set = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`)
      const run = `${set.join(' ')} exec /bin/sh -c ${quote(script)} </dev/null >>${quote(logFile)} 2>&1 ${NEWS}>&-`
      const text = `cd ${quote(cwd)} && ${run}`
      const order = { text, pid: pid.resolve, exit: exited.resolve }
      const free = slots.find((slot) => slot.order === undefined)
      if (free === undefined) waiting.push(order)
      else give(free, order)
      return { pid: pid.promise, exited: exited.promise }
    },
    close() {
      shell?.stdin?.end()
      for (const { orders } of slots) orders.end()
    },
  }
}

function lose(order: Order) {
  order.pid(undefined)
  order.exit({ code: null, signal: null, isKnown: false })
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
