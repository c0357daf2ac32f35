/**
 * A driver is in one of these states:
 * - idle: every event is stored. `tell`, `note`, `postpone` and `ring` lead to collecting.
 * - collecting: events wait to be reduced at the end of the turn (`TOGETHER` at a time, so that a burst of thousands does
 *   not block the service). Leads to writing at once if something waits for the result, else after `LAZY_MS`: agents that
 *   only report progress then share a transaction, and 25 ms more are not visible to people.
 * - writing: one transaction is on its way. New events collect meanwhile, and go into the next one. Leads to idle, or
 *   back to writing if there is more.
 * - blocked: the last write failed. It is retried every `AGAIN_MS`: a second is short for a person who frees disk space,
 *   and long enough not to keep a full disk busy. `trouble` holds the reason; `settled` returns instead of waiting.
 * - held: a full disk blocks an effect outside of the store, such as the report. Independent of the others.
 * - closed: `close` has written the rest, and nothing is accepted any more.
 */
import type { AuditDraft } from '../audit/entry.ts'
import type { Clock } from '../base/clock.ts'
import { AppError, reasonOf } from '../base/errors.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Store, Tx } from '../store/store.ts'
import { clearTimer, moveTimer, type Timers } from '../store/timers.ts'
import {
  createRunTimers,
  type Effect,
  isOwed,
  type Keyed,
  type OutsideEffect,
  type RunEvent,
  type StoreEffect,
} from './core/events-and-effects.ts'
import { reduce } from './core/reduce.ts'
import { commit } from './core/transition.ts'
import type { RunRequests } from './requests.ts'
import type { Run, RunHead } from './run.ts'
import {
  auditEntriesOf,
  type NodeRecord,
  noted,
  type RunFacts,
  updateHead,
  updateNode,
  updateRecord,
} from './store.ts'

/** Drives one open run. Every change of the run goes through `tell`. */
export interface Driver extends RunFacts {
  readonly run: Run
  readonly folder: string
  record(node: string): NodeRecord
  /** `record` is stored in the same transaction as the event. */
  tell(event: RunEvent, record?: NodeRecord): void
  /** Writes an audit entry and changes nothing. */
  note(node: string | null, text: string): void
  /** Shifts all deadlines, after a halt. */
  postpone(ms: number): void
  /** Called when the timer row of the run is due. */
  ring(): void
  /** Why the run is blocked by something other than an agent, for people: a full disk. */
  readonly trouble: string | undefined
  /** True if `trouble` is a full disk. */
  readonly isDiskFull: boolean
  /** Reports that a full disk blocks an effect, with the reason; undefined: no longer. */
  hold(why: string | undefined): void
  readonly isHeld: boolean
  /** Resolves when all events so far are stored, or with the reason why that fails for now. */
  settled(): Promise<AppError | undefined>
  /** Resolves when all events so far are stored, however long that takes, or when the driver is closed. */
  stored(): Promise<void>
  /** Writes what is left and stops. */
  close(): Promise<void>
}

export interface DriverOptions {
  store: Store
  timers: Timers
  clock: Clock
  log: Log
  cut: RedactedExcerpt
  requests: RunRequests
  /** The time for deadlines: during a halt, the moment when it began. */
  now(): number
  /** Called before a deadline counts: reads status.json again, and returns whether the agent shows signs of life. */
  look(driver: Driver, node: string): boolean
  /** Called after the commit. */
  perform(driver: Driver, effect: Keyed<OutsideEffect>): void
  /** Called when `trouble` changes. */
  troubled(driver: Driver): void
  /** Called when the run has ended and everything, with the report, is stored. */
  ended(driver: Driver): void
}

type DriverInput = { event: RunEvent; record?: NodeRecord } | { laterMs: number } | { entry: AuditDraft }

/** Changes in memory that are not stored yet. */
interface Unstored {
  nodes: Set<string>
  records: Map<string, NodeRecord>
  entries: AuditDraft[]
  effects: Keyed<StoreEffect>[]
  outside: Keyed<OutsideEffect>[]
}

/** Events reduced in one go before other work gets its turn. */
const TOGETHER = 200
/** How long changes that nothing waits for may wait for others, to share a transaction. */
const LAZY_MS = 25
/** Retry interval while the disk is full or the store is unavailable. */
const AGAIN_MS = 1000
/** First words of the trouble text for a full disk. */
export const DISK_FULL = 'the disk is full'

/**
 * Reduces events in memory and writes the result, many events in one transaction. Effects start after that transaction
 * is on disk. A failed write is retried until it succeeds, because what happened stays true meanwhile.
 */
export function createDriver(
  facts: RunFacts,
  run: Run,
  records: Map<string, NodeRecord>,
  options: DriverOptions,
): Driver {
  const { store, timers, log, cut, requests } = options
  const key = parseId('run', facts.id)!
  const clock = createRunTimers()
  clock.load(run)
  let inputs: DriverInput[] = []
  let unstored = nothing()
  let isDeciding = false
  let writing: Promise<void> | undefined
  let closed = false
  let isClosing = false
  let lastNow = 0
  /** Counts of inputs that were received, reduced and stored. */
  let received = 0
  let decided = 0
  let stored = 0
  let waiting: (() => void)[] = []
  let later: NodeJS.Timeout | undefined
  /** Why the last write failed, until one succeeds. */
  let fault: AppError | undefined
  let held: string | undefined

  const trouble = () => (fault === undefined ? held : troubleIn(fault))

  function setTrouble(set: () => void) {
    const before = trouble()
    set()
    if (trouble() !== before) options.troubled(driver)
  }

  function now(): number {
    lastNow = Math.max(lastNow, options.now())
    return lastNow
  }

  function push(input: DriverInput) {
    if (closed) return
    inputs.push(input)
    received += 1
    // Reduce and write together what happens in the same turn of the event loop.
    if (!isDeciding) setImmediate(decideAll)
    isDeciding = true
  }

  function decideAll() {
    const batch = inputs.length <= TOGETHER ? inputs : inputs.slice(0, TOGETHER)
    inputs = batch === inputs ? [] : inputs.slice(TOGETHER)
    isDeciding = inputs.length > 0
    if (isDeciding) setImmediate(decideAll)
    if (closed) return
    for (const input of batch) take(input)
    decided += batch.length
    if (isUrgent()) write()
    else later ??= setTimeout(write, LAZY_MS)
  }

  /** True if something waits for the write. Other changes can join a later one, because each sync delays all other files. */
  function isUrgent(): boolean {
    const { outside, effects } = unstored
    return outside.length + effects.length + waiting.length > 0 || run.head.outcome !== null
  }

  function write() {
    clearTimeout(later)
    later = undefined
    writing ??= writeAll().finally(() => {
      writing = undefined
      if (!closed && !isNothing(unstored)) later ??= setTimeout(write, isUrgent() ? 0 : LAZY_MS)
    })
  }

  function take(input: DriverInput) {
    if ('entry' in input) {
      unstored.entries.push(input.entry)
      return
    }
    if ('laterMs' in input) {
      for (const name of shiftDeadlines(run, input.laterMs)) unstored.nodes.add(name)
      clock.load(run)
      return
    }
    const { event, record } = input
    if (record !== undefined && 'node' in event) {
      records.set(event.node, { ...records.get(event.node), ...record })
      unstored.records.set(event.node, { ...unstored.records.get(event.node), ...record })
    }
    const reduced = reduce(run, event, now())
    if (!reduced.ok) {
      // Late or duplicate, such as a process that ended after its run was cancelled.
      log.debug({ run: facts.id, event: event.type, why: reduced.refusal.message }, 'not taken by the run')
      return
    }
    unstored.entries.push(...auditEntriesOf(run, event, reduced, cut))
    commit(run, reduced.state)
    for (const node of reduced.state.nodes) unstored.nodes.add(node.name)
    for (const effect of reduced.effects) sort(effect)
  }

  function sort(effect: Effect) {
    switch (effect.type) {
      case 'set_timer':
      case 'clear_timer':
        clock.take(effect)
        break
      case 'ask_person':
      case 'withdraw':
        unstored.effects.push(effect)
        break
      // Already written as audit entries.
      case 'note':
      case 'run_ended':
        break
      default:
        unstored.outside.push(effect)
    }
  }

  /** Performs stored effects, except those that a later event made obsolete. */
  function performOwed(effects: readonly Keyed<OutsideEffect>[]) {
    for (const effect of effects) if (isOwed(run, effect)) options.perform(driver, effect)
  }

  function reach(upTo: number) {
    stored = upTo
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }

  /** Resolves after the next write, successful or not. */
  function reaching(all: number): Promise<void> {
    const reached = new Promise<void>((resolve) => waiting.push(resolve))
    if (decided >= all) write()
    return reached
  }

  /** Events that come in during a write go into the next one. */
  async function writeAll() {
    for (let rounds = 0; ; rounds++) {
      const wanted = clock.wanted()
      const upTo = decided
      const isDone = isNothing(unstored) && wanted === undefined
      if (isDone) reach(upTo)
      if (isDone || (rounds > 0 && !isUrgent())) return
      const now = unstored
      unstored = nothing()
      const { head } = run
      if (!(await keep(now, head, wanted))) return
      reach(upTo)
      performOwed(now.outside)
      const isOver = head.outcome !== null && !head.reportOwed
      if (isOver && isNothing(unstored) && inputs.length === 0) options.ended(driver)
    }
  }

  /** Returns false if the driver was closed before the write succeeded. */
  async function keep(changes: Unstored, head: RunHead, wanted: number | undefined): Promise<boolean> {
    const hasEnded = head.outcome !== null
    if (wanted !== undefined) clock.claim()
    // Snapshot: the next transaction may change the same nodes.
    const documents = [...changes.nodes].map((name) => run.nodes.get(name)!)
    for (;;) {
      try {
        await store.write(async (tx) => {
          await updateHead(tx, key, head)
          for (const node of documents) await updateNode(tx, key, node)
          for (const [name, record] of changes.records) await updateRecord(tx, key, name, record)
          for (const effect of changes.effects) await carryOut(tx, effect)
          for (const entry of changes.entries) tx.audit(entry)
          if (hasEnded) await clearTimer(tx, 'run', facts.id)
          else if (wanted !== undefined) await moveTimer(tx, 'run', facts.id, wanted)
        })
        break
      } catch (error) {
        if (isClosing) return false
        log.error({ err: error, run: facts.id }, 'a run could not be stored; trying again in a second')
        setTrouble(() => {
          fault = error instanceof AppError ? error : new AppError('STORE_UNAVAILABLE', reasonOf(error))
        })
        // Wake callers now instead of when there is space again.
        reach(stored)
        await new Promise<void>((resolve) => options.clock.after(AGAIN_MS, resolve))
      }
    }
    if (fault !== undefined) {
      setTrouble(() => {
        fault = undefined
      })
    }
    if (wanted !== undefined) clock.arm(wanted)
    if (wanted !== undefined && !hasEnded) timers.setFor(wanted)
    return true
  }

  async function carryOut(tx: Tx, effect: Keyed<StoreEffect>) {
    if (effect.type === 'ask_person') await requests.ask(tx, facts, effect)
    if (effect.type === 'withdraw') await requests.withdraw(tx, facts.id, effect)
  }

  const driver: Driver = {
    ...facts,
    run,
    record: (node) => records.get(node) ?? {},
    get trouble() {
      return trouble()
    },
    get isDiskFull() {
      return fault === undefined ? held !== undefined : fault.code === 'STORE_FULL'
    },
    get isHeld() {
      return held !== undefined
    },
    hold(why) {
      setTrouble(() => {
        held = why
      })
    },
    tell: (event, record) => push({ event, ...(record === undefined ? {} : { record }) }),
    note: (node, text) => push({ entry: noted(facts.id, node, cut(text, 1000)) }),
    postpone: (laterMs) => push({ laterMs }),
    ring() {
      for (const event of clock.ring(options.now())) {
        // Process its latest status first; a sign of life extends the deadline.
        const isAlive =
          (event.type === 'stalled' || event.type === 'timed_out') && options.look(driver, event.node)
        if (isAlive && event.type === 'stalled') {
          const { attempt } = run.nodes.get(event.node)!
          push({ event: { type: 'active', node: event.node, attempt } })
        }
        push({ event })
      }
      // The timer row is gone, so write the next one even if nothing was due.
      push({ laterMs: 0 })
    },
    async settled() {
      const all = received
      while (stored < all && !closed && fault === undefined) await reaching(all)
      return stored < all ? fault : undefined
    },
    async stored() {
      const all = received
      while (stored < all && !closed) await reaching(all)
    },
    async close() {
      isClosing = true
      // Write the changes that were still waiting for others.
      while (writing !== undefined || !isNothing(unstored)) {
        write()
        await writing
      }
      closed = true
      clearTimeout(later)
      reach(stored)
      await writing
    },
  }
  return driver
}

function troubleIn(fault: AppError): string {
  if (fault.code === 'STORE_FULL') return `${DISK_FULL}: the run waits for free space`
  return `the run cannot be stored; Orchub retries: ${fault.message}`
}

function isNothing({ nodes, records, entries, effects, outside }: Unstored): boolean {
  return nodes.size + records.size + entries.length + effects.length + outside.length === 0
}

function nothing(): Unstored {
  return { nodes: new Set(), records: new Map(), entries: [], effects: [], outside: [] }
}

/** Shifts every deadline of a run, and returns the nodes that changed. */
function shiftDeadlines(run: Run, ms: number): string[] {
  if (ms === 0) return []
  if (run.head.deadlineAt !== null) run.head = { ...run.head, deadlineAt: run.head.deadlineAt + ms }
  const changed: string[] = []
  for (const node of run.nodes.values()) {
    if (node.due === null && node.stallAt === null) continue
    run.nodes.set(node.name, {
      ...node,
      due: node.due === null ? null : { ...node.due, at: node.due.at + ms },
      stallAt: node.stallAt === null ? null : node.stallAt + ms,
    })
    changed.push(node.name)
  }
  return changed
}
