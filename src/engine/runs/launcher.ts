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
  /** A new file. */
  readonly logFile: string
  /** For the shell that waits for it, with its exit code as `$1` and its pid as `$2`: by whatever way it ended, and whether anybody is there to be told. */
  readonly atEnd?: string
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

/** The shell of a command that only waits for the word to begin. Without a service to give it, it ends. */
export interface Ready {
  /** Undefined: its shell is gone, and nothing has begun. */
  go(): Launched | undefined
  cancel(): void
}

export interface Launcher {
  /** Undefined: there is nothing to spare for another shell. */
  launch(order: LaunchOrder): Launched | undefined
  /** All but the command itself: from the word to its begin there is neither fork nor exec. */
  ready(order: LaunchOrder): Ready | undefined
  /** What it started goes on. */
  close(): void
}

interface Order extends LaunchOrder {
  hasBegun: boolean
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

/**
 * Bash can give a process a group of its own by itself; other shells take setsid, which is one more program to start. That of
 * macOS is of 2007, and cannot read what it is told by the byte.
 */
const BASH =
  process.platform === 'darwin' ? undefined : ['/bin/bash', '/usr/bin/bash'].find((path) => existsSync(path))
const SETSID = ['/usr/bin/setsid', '/bin/setsid'].find((path) => existsSync(path))
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [128 + number, name]))

export const canLaunch = BASH !== undefined || SETSID !== undefined

const NEWS = 3
/** Where orders come in: as many commands at once, before another bank of shells is opened. */
const FIRST = 4
const SLOTS = 8
/** Plain shells know descriptors of one digit only. */
const PLAIN_SLOTS = 6
const IDLE_MS = 30_000
const GO = 'go'
const NO = 'no'
/** The exit code of one whose command was never begun: one that hardly any command has. */
const UNBEGUN = 222

/**
 * Each reads one order after the other, so that nothing of the next one is taken: bash as many bytes as it is told at once,
 * others line by line, a byte at a time. It starts what the order says, and tells how that ended. A job that waits reads on
 * from there: the word to begin. Where it could not even begin, that word is left, and skipped. Jobs have groups of their own
 * only while they are started: otherwise one that is held still would count as ended, and with `wait -f` bash 5.2 may wait
 * without rest for one that it has no record of. Shells give such jobs nothing to read, unless it is named.
 */
function bankOf(hasBash: boolean): string {
  const numbers = slotNumbers(hasBash)
  const closing = (all: readonly number[]) => all.map((slot) => `${slot}<&-`).join(' ')
  const works = numbers.map((slot) => {
    const closed = hasBash ? numbers : numbers.filter((other) => other !== slot)
    return `work ${slot} <&${slot} ${closing(closed)} &`
  })
  return `
${hasBash ? 'export -n LC_ALL' : ''}
work() {
  while IFS= read -r orc_size; do
    case $orc_size in ${GO}|${NO}) continue ;; esac
    ${hasBash ? READ_BYTES : READ_LINES}
    eval "$orc_order"
    ${hasBash ? 'set -m' : ''}
    ( orc_begin; exit ${UNBEGUN} ) <&${hasBash ? '0' : '$1'} &
    ${hasBash ? 'set +m' : ''}
    wait $!
    orc_code=$?
    [ $orc_code -eq ${UNBEGUN} ] || orc_end $orc_code $!
    echo "e $1 $orc_code" >&${NEWS}
  done
}
${works.join('\n')}
exec ${closing(numbers)}
wait`
}

const READ_BYTES = 'IFS= read -r -N "$orc_size" orc_order || exit 0'
const READ_LINES = `
    orc_order=
    while [ "$orc_size" -gt 0 ]; do
      IFS= read -r orc_line || exit 0
      orc_order="$orc_order$orc_line
"
      orc_size=$((orc_size - 1))
    done`

function slotNumbers(hasBash: boolean): number[] {
  return Array.from({ length: hasBash ? SLOTS : PLAIN_SLOTS }, (_, index) => FIRST + index)
}

/**
 * Shells that start processes for the service. For each child node copies the tables of all its own memory, and stands
 * still meanwhile: with a heap of 300 MB that is tens of milliseconds, where a shell takes less than one.
 */
export function createLauncher(
  environment: Readonly<Record<string, string>>,
  idleMs: number = IDLE_MS,
  bash: string | null = BASH ?? null,
): Launcher {
  const banks = new Set<Bank>()
  const hasBash = bash !== null

  function openBank(): Bank | undefined {
    const child = spawnBank(environment, bash)
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
    bank.slots = slotNumbers(hasBash).map((number): Slot => {
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

  /** Its last words may be on their way. */
  function giveUp(bank: Bank, slot: Slot) {
    setImmediate(() => {
      bank.slots = bank.slots.filter((one) => one !== slot)
      lose(slot)
    })
  }

  function hear(bank: Bank, line: string) {
    const [what, number, value] = line.split(' ')
    const slot = bank.slots.find((one) => one.number === Number(number))
    if (slot?.order === undefined) return
    if (what === 'p') {
      slot.order.hasBegun = true
      slot.order.pid(Number(value))
    }
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
      const free = bank.slots.find(({ order, orders }) => order === undefined && !orders.destroyed)
      if (free === undefined) continue
      clearTimeout(bank.idle)
      return free
    }
    return openBank()?.slots[0]
  }

  function give(
    wanted: LaunchOrder,
    waits: boolean,
  ): { slot: Slot; order: Order; launched: Launched } | undefined {
    const slot = freeSlot()
    if (slot === undefined) return undefined
    const pid = Promise.withResolvers<number | undefined>()
    const exited = Promise.withResolvers<Exit>()
    const order = { ...wanted, hasBegun: false, pid: pid.resolve, exit: exited.resolve }
    slot.order = order
    const text = `${textOf(wanted, waits, slot.number, hasBash, environment.LC_ALL)}\n`.replaceAll('\0', '')
    const size = hasBash ? Buffer.byteLength(text) : text.split('\n').length - 1
    slot.orders.write(`${size}\n${text}`)
    return { slot, order, launched: { pid: pid.promise, exited: exited.promise } }
  }

  return {
    launch: (wanted) => give(wanted, false)?.launched,
    ready(wanted) {
      const given = give(wanted, true)
      if (given === undefined) return undefined
      const { slot, order, launched } = given
      const isThere = () => slot.order === order
      let isSaid = false
      return {
        go() {
          if (isSaid || !isThere()) return undefined
          isSaid = true
          slot.orders.write(`${GO}\n`)
          return launched
        },
        cancel() {
          if (!isSaid && isThere()) slot.orders.write(`${NO}\n`)
          isSaid = true
        },
      }
    },
    close() {
      for (const bank of banks) {
        clearTimeout(bank.idle)
        dismiss(bank)
      }
    },
  }
}

function spawnBank(
  environment: Readonly<Record<string, string>>,
  bash: string | null,
): ChildProcess | undefined {
  const hasBash = bash !== null
  // -p: nothing of the environment is taken for its own settings.
  const [shell, ...options] = bash === null ? ['/bin/sh', '-c'] : [bash, '-p', '-c']
  try {
    return spawn(shell!, [...options, bankOf(hasBash)], {
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', ...slotNumbers(hasBash).map(() => 'pipe' as const)],
      // So that it counts bytes. Its own alone: the commands have what is passed on.
      env: { ...environment, LC_ALL: 'C' },
    })
  } catch {
    return undefined
  }
}

/** Without orders to come its shells end. */
function dismiss({ slots }: Bank) {
  for (const { orders } of slots) orders.end()
}

function end(slot: Slot, told: number) {
  const code = slot.order?.hasBegun === false && told === UNBEGUN ? 1 : told
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

/** The slot's child becomes the shell of the command, which first says its pid, and may wait for the word. */
function textOf(
  { script, cwd, variables, logFile, atEnd = ':' }: LaunchOrder,
  waits: boolean,
  slot: number,
  hasBash: boolean,
  locale: string | undefined,
): string {
  const own = localeOf(locale, hasBash)
  const set = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`)
  const wait = waits
    ? `IFS= read -r orc_word && [ "$orc_word" = ${GO} ] || exit ${UNBEGUN}; unset orc_word; `
    : ''
  const inside = `${own.inside}echo "p ${slot} $$" >&${NEWS}; exec ${NEWS}>&-\n${wait}exec </dev/null\n${script}`
  const shell = `${hasBash ? '' : `${SETSID} `}/bin/sh -c ${quote(inside)}`
  const closing = hasBash ? '' : ` ${slot}<&-`
  // The log is new, or it does not begin: a file or a link that somebody else has put there is not written to, and a pipe, which would hold
  // it up, not opened. As `command`, since plain shells would end where that fails, and say it as if the command had. Opened once more to append.
  const log = quote(logFile)
  const opened = `[ ! -e ${log} ] && set -C && command exec >${log} && set +C`
  const begin = `${own.before}cd ${quote(cwd)} && ${opened} && ${set.join(' ')} command exec ${shell} >>/dev/fd/1 2>&1${closing}`
  return `orc_begin() {\n${begin}\n}\norc_end() {\n${atEnd}\n}`
}

/** Bash would load all of a locale that it is told of, which takes it longer than the start of a command. */
function localeOf(locale: string | undefined, hasBash: boolean): { before: string; inside: string } {
  if (locale !== undefined) return { before: '', inside: `export LC_ALL=${quote(locale)}\n` }
  return { before: hasBash ? '' : 'unset LC_ALL; ', inside: '' }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
