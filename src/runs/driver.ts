/**
 * A driver is in one of these states:
 * - idle: every event is stored. `tell`, `note`, `postpone` and `onTimer` lead to collecting.
 * - collecting: events wait to be reduced at the end of this turn of the event loop. Leads to writing at once if a caller
 *   or an effect waits for the result. Otherwise it waits up to `BATCH_MS` for more events: agents that only report
 *   progress then share a transaction, and people don't notice a delay of 25 ms.
 * - writing: a transaction is in progress. New events are collected for the next one. Leads to idle, or back to writing.
 * - blocked: the last write failed. It is retried every `RETRY_MS`: a second is short for a person who frees disk space,
 *   and long enough not to keep a full disk busy. `trouble` holds the reason; `settled` returns instead of waiting.
 * - waiting for disk space: a full disk blocks an effect outside of the store, such as writing the report. This state is
 *   independent of the others.
 * - closed: `close` has written the remaining changes. Further events are dropped.
 */
import type { AuditDraft } from '../audit/entry.ts'
import { type Clock, sleep } from '../base/clock.ts'
import { AppError, reasonOf } from '../base/errors.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Store, Tx } from '../store/store.ts'
import { clearTimer, moveTimer, type Timers } from '../store/timers.ts'
import {
  createRunTimers,
  type Effect,
  isPending,
  type Keyed,
  type OutsideEffect,
  type RunEvent,
  type StoreEffect,
} from './core/events-and-effects.ts'
import { reduce } from './core/reduce.ts'
import { commit } from './core/transition.ts'
import type { RunRequests } from './requests.ts'
import { isRunOpen, type Run, type RunHead } from './run.ts'
import {
  auditEntriesOf,
  type NodeRecord,
  noted,
  type RunFacts,
  updateHead,
  updateNode,
  updateRecord,
} from './store.ts'

/** Drives one open run: applies its events, stores the result, and starts the effects. */
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
  onTimer(): void
  /** Why the run is blocked by something other than an agent, such as a full disk. Shown to people. */
  readonly trouble: string | undefined
  /** True if `trouble` is a full disk. */
  readonly isDiskFull: boolean
  /** Says that a full disk blocks an effect, with the text for people. Undefined: the effect continues. */
  setWaitingForDisk(why: string | undefined): void
  readonly isWaitingForDisk: boolean
  /** Resolves when all events so far are stored, or with the error if the write fails. */
  settled(): Promise<AppError | undefined>
  /** Resolves when all events so far are stored, however long that takes, or when the driver is closed. */
  stored(): Promise<void>
  /** Writes the remaining changes and stops. */
  close(): Promise<void>
}

export interface DriverOptions {
  store: Store
  timers: Timers
  clock: Clock
  log: Log
  cut: RedactedExcerpt
  requests: RunRequests
  /** The time for deadlines. During a halt, this is the time when the halt began. */
  now(): number
  /** Called before a deadline counts: reads status.json once more, and returns whether the agent is active. */
  checkActivity(driver: Driver, node: string): boolean
  /** Called after the commit. */
  perform(driver: Driver, effect: Keyed<OutsideEffect>): void
  /** Called when `trouble` changes. */
  troubled(driver: Driver): void
  /** Called when the run has ended, its report is written, and all of it is stored. */
  ended(driver: Driver): void
}

type DriverInput = { event: RunEvent; record?: NodeRecord } | { laterMs: number } | { entry: AuditDraft }

/** Changes in memory that are not stored yet. */
interface Unstored {
  nodes: Set<string>
  records: Map<string, NodeRecord>
  entries: AuditDraft[]
  effects: StoreEffect[]
  outside: Keyed<OutsideEffect>[]
}

/** Longest delay of changes that nothing waits for. Several of them then share a transaction. */
const BATCH_MS = 25
/** Retry interval while the disk is full or the store is unavailable. */
const RETRY_MS = 1000
/** Texts about a full disk begin with these words. */
export const DISK_FULL = 'the disk is full'

/**
 * Reduces events in memory and writes the result, many events in one transaction. Effects start after that transaction
 * is on disk. A failed write is retried until it succeeds, because events cannot be undone.
 */
export function createDriver(
  facts: RunFacts,
  run: Run,
  records: Map<string, NodeRecord>,
  options: DriverOptions,
): Driver {
  const { store, timers, log, cut, requests } = options
  const key = parseId('run', facts.id)!
  const runTimers = createRunTimers(run)
  let inputs: DriverInput[] = []
  let unstored = noChanges()
  let writing: Promise<void> | undefined
  let closed = false
  let isClosing = false
  let lastNow = 0
  /** Counts of inputs that were received, reduced and stored. */
  let received = 0
  let reduced = 0
  let stored = 0
  /** Callers that wait for the next write. */
  let waiting: (() => void)[] = []
  let batchTimer: NodeJS.Timeout | undefined
  /** Why the last write failed, until one succeeds. */
  let fault: AppError | undefined
  let waitingForDisk: string | undefined

  const trouble = () => (fault === undefined ? waitingForDisk : troubleIn(fault))

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
    received += 1
    // Reduce and write together what happens in the same turn of the event loop.
    if (inputs.push(input) === 1) setImmediate(reduceAll)
  }

  function reduceAll() {
    if (closed) return
    const batch = inputs
    inputs = []
    for (const input of batch) apply(input)
    reduced += batch.length
    if (isUrgent()) write()
    else batchTimer ??= setTimeout(write, BATCH_MS)
  }

  /** True if something waits for the write. Other changes are delayed, because each sync slows down all other writes. */
  function isUrgent(): boolean {
    const { outside, effects } = unstored
    return outside.length + effects.length + waiting.length > 0 || run.head.outcome !== null
  }

  function write() {
    clearTimeout(batchTimer)
    batchTimer = undefined
    writing ??= writeAll().finally(() => {
      writing = undefined
      if (!closed && !isEmpty(unstored)) batchTimer ??= setTimeout(write, isUrgent() ? 0 : BATCH_MS)
    })
  }

  function apply(input: DriverInput) {
    if ('entry' in input) {
      unstored.entries.push(input.entry)
      return
    }
    if ('laterMs' in input) {
      for (const name of shiftDeadlines(run, input.laterMs)) unstored.nodes.add(name)
      runTimers.reset()
      return
    }
    const { event, record } = input
    if (record !== undefined && 'node' in event) {
      records.set(event.node, { ...records.get(event.node), ...record })
      unstored.records.set(event.node, { ...unstored.records.get(event.node), ...record })
    }
    const result = reduce(run, event, now())
    if (!result.ok) {
      // Late or duplicate, such as a process that ended after its run was cancelled.
      log.debug({ run: facts.id, event: event.type, why: result.refusal.message }, 'the run refused an event')
      return
    }
    unstored.entries.push(...auditEntriesOf(run, event, result, cut))
    commit(run, result.state)
    runTimers.changed(result.state)
    for (const node of result.state.nodes) unstored.nodes.add(node.name)
    for (const effect of result.effects) addEffect(effect)
  }

  function addEffect(effect: Effect) {
    switch (effect.type) {
      case 'ask_person':
      case 'withdraw':
        unstored.effects.push(effect)
        break
      // Notes are already written as audit entries.
      case 'note':
        break
      default:
        unstored.outside.push(effect)
    }
  }

  /** Performs stored effects, except those that a later event made obsolete. */
  function performPending(effects: readonly Keyed<OutsideEffect>[]) {
    for (const effect of effects) if (isPending(run, effect)) options.perform(driver, effect)
  }

  function markStored(upTo: number) {
    stored = upTo
    const resolved = waiting
    waiting = []
    for (const resolve of resolved) resolve()
  }

  /** Resolves after the next write, successful or not. */
  function nextWrite(all: number): Promise<void> {
    const written = new Promise<void>((resolve) => waiting.push(resolve))
    if (reduced >= all) write()
    return written
  }

  /** Events that come in during a write go into the next one. */
  async function writeAll() {
    for (let rounds = 0; ; rounds++) {
      const wanted = runTimers.wanted()
      const upTo = reduced
      const isDone = isEmpty(unstored) && wanted === undefined
      if (isDone) markStored(upTo)
      if (isDone || (rounds > 0 && !isUrgent())) return
      const changes = unstored
      unstored = noChanges()
      const { head } = run
      if (!(await writeChanges(changes, head, wanted))) return
      markStored(upTo)
      performPending(changes.outside)
      if (!isRunOpen(head) && isEmpty(unstored) && inputs.length === 0) options.ended(driver)
    }
  }

  /** Returns false if the driver was closed before the write succeeded. */
  async function writeChanges(
    changes: Unstored,
    head: RunHead,
    wanted: number | undefined,
  ): Promise<boolean> {
    const hasEnded = head.outcome !== null
    if (wanted !== undefined) runTimers.claim()
    // Snapshot: the next transaction may change the same nodes.
    const documents = [...changes.nodes].map((name) => run.nodes.get(name)!)
    for (;;) {
      try {
        await store.write(async (tx) => {
          updateHead(tx, key, head)
          for (const node of documents) updateNode(tx, key, node)
          for (const [name, record] of changes.records) updateRecord(tx, key, name, record)
          for (const effect of changes.effects) await carryOut(tx, effect)
          for (const entry of changes.entries) tx.audit(entry)
          if (hasEnded) clearTimer(tx, 'run', facts.id)
          else if (wanted !== undefined) moveTimer(tx, 'run', facts.id, wanted)
        })
        break
      } catch (error) {
        if (isClosing) return false
        log.error({ err: error, run: facts.id }, 'storing a run failed; Orchub retries in a second')
        setTrouble(() => {
          fault = error instanceof AppError ? error : new AppError('STORE_UNAVAILABLE', reasonOf(error))
        })
        // Wake callers now instead of when there is space again.
        markStored(stored)
        await sleep(options.clock, RETRY_MS)
      }
    }
    if (fault !== undefined) {
      setTrouble(() => {
        fault = undefined
      })
    }
    if (wanted !== undefined) runTimers.arm(wanted)
    if (wanted !== undefined && !hasEnded) timers.setFor(wanted)
    return true
  }

  async function carryOut(tx: Tx, effect: StoreEffect) {
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
      return fault === undefined ? waitingForDisk !== undefined : fault.code === 'STORE_FULL'
    },
    get isWaitingForDisk() {
      return waitingForDisk !== undefined
    },
    setWaitingForDisk(why) {
      setTrouble(() => {
        waitingForDisk = why
      })
    },
    tell: (event, record) => push({ event, ...(record === undefined ? {} : { record }) }),
    note: (node, text) => push({ entry: noted(facts.id, node, cut(text, 1000)) }),
    postpone: (laterMs) => push({ laterMs }),
    onTimer() {
      for (const event of runTimers.takeDue(options.now())) {
        // Process its latest status first: activity extends the deadline.
        const isActive =
          (event.type === 'stalled' || event.type === 'timed_out') &&
          options.checkActivity(driver, event.node)
        if (isActive && event.type === 'stalled') {
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
      while (stored < all && !closed && fault === undefined) await nextWrite(all)
      return stored < all ? fault : undefined
    },
    async stored() {
      const all = received
      while (stored < all && !closed) await nextWrite(all)
    },
    async close() {
      isClosing = true
      // Changes may still wait for their batch.
      while (writing !== undefined || !isEmpty(unstored)) {
        write()
        await writing
      }
      closed = true
      clearTimeout(batchTimer)
      markStored(stored)
      await writing
    },
  }
  return driver
}

function troubleIn(fault: AppError): string {
  if (fault.code === 'STORE_FULL') return `${DISK_FULL}: the run waits for free space`
  return `the run cannot be stored; Orchub retries: ${fault.message}`
}

function isEmpty({ nodes, records, entries, effects, outside }: Unstored): boolean {
  return nodes.size + records.size + entries.length + effects.length + outside.length === 0
}

function noChanges(): Unstored {
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
