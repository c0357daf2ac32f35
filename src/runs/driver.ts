import type { AuditDraft } from '../audit/entry.ts'
import type { Clock } from '../base/clock.ts'
import { AppError, reasonOf } from '../base/errors.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Store, Tx } from '../store/store.ts'
import { clearTimer, moveTimer } from '../store/timer-rows.ts'
import type { Timers } from '../store/timers.ts'
import { entriesOf, noted } from './audit-entries.ts'
import { type Effect, isOwed, type Keyed, type OutsideEffect, type StoreEffect } from './core/effect.ts'
import type { RunEvent } from './core/event.ts'
import { reduce } from './core/reduce.ts'
import type { Run } from './core/run-state.ts'
import { commit } from './core/transition.ts'
import type { RunRequests } from './requests.ts'
import type { RunHead } from './run.ts'
import { createRunClock } from './run-timers.ts'
import { type NodeRecord, type RunFacts, updateHead, updateNode, updateRecord } from './store.ts'

/** One run that is going on: what happens to it is told here, and nowhere else is it changed. */
export interface Driver extends RunFacts {
  readonly run: Run
  readonly folder: string
  record(node: string): NodeRecord
  /** `record`: what is to be kept of the agent's workspace together with it. */
  tell(event: RunEvent, record?: NodeRecord): void
  /** For the audit only. */
  note(node: string | null, text: string): void
  /** Every clock is so much later: a halt is over. */
  postpone(ms: number): void
  /** Its row in the table of timers was due. */
  ring(): void
  /** What keeps it from going on that is no agent's doing, for people: a full disk. */
  readonly trouble: string | undefined
  /** What is done outside of the store cannot go on, and why; undefined: it can again. */
  hold(why: string | undefined): void
  readonly isHeld: boolean
  /** Resolves when all that was told is on disk, or with why it cannot be written for now. */
  settled(): Promise<AppError | undefined>
  /** Resolves when all that was told is on disk, however long that takes, or when it is closed. */
  stored(): Promise<void>
  /** Nothing is written any more. */
  close(): Promise<void>
}

export interface DriverOptions {
  store: Store
  timers: Timers
  clock: Clock
  log: Log
  cut: RedactedExcerpt
  requests: RunRequests
  /** What the clocks of runs go by: during a halt, the moment it began. */
  now(): number
  /** Its time is said to be up: looks at its files, and says whether it shows other signs of life. */
  look(driver: Driver, node: string): boolean
  /** After the commit. */
  perform(driver: Driver, effect: Keyed<OutsideEffect>): void
  /** Its trouble is another, or over. */
  troubled(driver: Driver): void
  /** All of it is on disk, and it has ended with its report written. */
  ended(driver: Driver): void
}

type Told = { event: RunEvent; record?: NodeRecord } | { laterMs: number } | { entry: AuditDraft }

/** What is in memory and not on disk yet. */
interface Unstored {
  nodes: Set<string>
  records: Map<string, NodeRecord>
  entries: AuditDraft[]
  effects: Keyed<StoreEffect>[]
  outside: Keyed<OutsideEffect>[]
}

/** For one decision after the other without letting others have their turn. */
const TOGETHER = 200
/** How long what nobody waits for may wait for company. */
const LAZY_MS = 25
/** While the disk is full or the store away. */
const AGAIN_MS = 1000
/** How that trouble begins. */
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
  const clock = createRunClock()
  clock.load(run)
  let told: Told[] = []
  let unstored = nothing()
  let isDeciding = false
  let writing: Promise<void> | undefined
  let closed = false
  let isClosing = false
  let lastNow = 0
  /** How much was told, is decided, and is on disk. */
  let tellings = 0
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

  function push(news: Told) {
    if (closed) return
    told.push(news)
    tellings += 1
    // What happens in the same breath is decided and written together.
    if (!isDeciding) setImmediate(decideAll)
    isDeciding = true
  }

  function decideAll() {
    const batch = told.length <= TOGETHER ? told : told.slice(0, TOGETHER)
    told = batch === told ? [] : told.slice(TOGETHER)
    isDeciding = told.length > 0
    if (isDeciding) setImmediate(decideAll)
    if (closed) return
    for (const news of batch) take(news)
    decided += batch.length
    if (isUrgent()) write()
    else later ??= setTimeout(write, LAZY_MS)
  }

  /** Something waits for it to be on disk. The rest can join what comes next, as each sync holds up all other files. */
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

  function take(news: Told) {
    if ('entry' in news) {
      unstored.entries.push(news.entry)
      return
    }
    if ('laterMs' in news) {
      for (const name of shiftDeadlines(run, news.laterMs)) unstored.nodes.add(name)
      clock.load(run)
      return
    }
    const { event, record } = news
    if (record !== undefined && 'node' in event) {
      records.set(event.node, { ...records.get(event.node), ...record })
      unstored.records.set(event.node, { ...unstored.records.get(event.node), ...record })
    }
    const reduced = reduce(run, event, now())
    if (!reduced.ok) {
      // Late and doubled news: a process that ended after its run was cancelled, a timer that met a change.
      log.debug({ run: facts.id, event: event.type, why: reduced.refusal.message }, 'not taken by the run')
      return
    }
    unstored.entries.push(...entriesOf(run, event, reduced, cut))
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
      // Both are entries of the audit already.
      case 'note':
      case 'run_ended':
        break
      default:
        unstored.outside.push(effect)
    }
  }

  /** What was ordered and is stored by now, unless something has happened meanwhile that makes it needless: it was called off. */
  function performOwed(effects: readonly Keyed<OutsideEffect>[]) {
    for (const effect of effects) if (isOwed(run, effect)) options.perform(driver, effect)
  }

  function reach(upTo: number) {
    stored = upTo
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }

  /** Until something is on disk, or cannot be written. */
  function reaching(all: number): Promise<void> {
    const reached = new Promise<void>((resolve) => waiting.push(resolve))
    if (decided >= all) write()
    return reached
  }

  /** While one transaction is on its way to the disk, the next one gathers. */
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
      if (isOver && isNothing(unstored) && told.length === 0) options.ended(driver)
    }
  }

  /** False: it is closed, and nothing more is written. */
  async function keep(changes: Unstored, head: RunHead, wanted: number | undefined): Promise<boolean> {
    const hasEnded = head.outcome !== null
    if (wanted !== undefined) clock.claim()
    // As they are now: what is written next may be of the same nodes.
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
        // Who waits is not let wait until there is room.
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
        // What it has said by now is told first; a sign of life gives it more time.
        const isAlive =
          (event.type === 'stalled' || event.type === 'timed_out') && options.look(driver, event.node)
        if (isAlive && event.type === 'stalled') {
          const { attempt } = run.nodes.get(event.node)!
          push({ event: { type: 'active', node: event.node, attempt } })
        }
        push({ event })
      }
      // Even where nothing was due: the row is gone, and there may be later ones.
      push({ laterMs: 0 })
    },
    async settled() {
      const all = tellings
      while (stored < all && !closed && fault === undefined) await reaching(all)
      return stored < all ? fault : undefined
    },
    async stored() {
      const all = tellings
      while (stored < all && !closed) await reaching(all)
    },
    async close() {
      isClosing = true
      // What nobody waited for is written all the same.
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
  if (fault.code === 'STORE_FULL') return `${DISK_FULL}: it waits for room`
  return `it cannot be stored, and is tried again: ${fault.message}`
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
