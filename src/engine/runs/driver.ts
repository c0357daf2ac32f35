import { parseId } from '../../model/identifier.ts'
import type { AuditDraft } from '../../model/audit-entry.ts'
import type { RunNode } from '../../model/run.ts'
import { commit } from '../../runs/decision.ts'
import { decide } from '../../runs/decide.ts'
import type { Effect, Keyed, OutsideEffect, StoreEffect } from '../../runs/effect.ts'
import type { Happening } from '../../runs/happening.ts'
import type { Run } from '../../runs/run.ts'
import { type NodeRecord, type RunFacts, updateHead, updateNode, updateRecord } from '../../store/runs.ts'
import type { Store, Tx } from '../../store/store.ts'
import { clearTimer, moveTimer } from '../../store/timers.ts'
import type { Clock, Log } from '../surroundings.ts'
import type { Excerpt } from '../excerpts.ts'
import type { Timers } from '../timers.ts'
import { createRunClock } from './clock.ts'
import { shiftRun } from './later.ts'
import { entriesOf, noted } from './record.ts'
import type { RunRequests } from './requests.ts'

/** One run that is going on: what happens to it is told here, and nowhere else is it changed. */
export interface Driver extends RunFacts {
  readonly run: Run
  readonly folder: string
  record(node: string): NodeRecord
  /** `record`: what is to be kept of the agent's workspace together with it. */
  tell(event: Happening, record?: NodeRecord): void
  /** For the audit only. */
  note(node: string | null, text: string): void
  /** Every clock is so much later: a halt is over. */
  postpone(ms: number): void
  /** Its row in the table of timers was due. */
  ring(): void
  /** Resolves when all that was told is on disk. */
  settled(): Promise<void>
  /** Nothing is written any more. */
  close(): Promise<void>
}

export interface DriverOptions {
  store: Store
  timers: Timers
  clock: Clock
  log: Log
  cut: Excerpt
  requests: RunRequests
  /** What the clocks of runs go by: during a halt, the moment it began. */
  now(): number
  /** After the commit. */
  perform(driver: Driver, effect: Keyed<OutsideEffect>): void
  /** All of it is on disk, and it has ended with its report written. */
  ended(driver: Driver): void
}

type Told = { event: Happening; record?: NodeRecord } | { laterMs: number } | { entry: AuditDraft }

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
/** While the disk is full or the store away. */
const AGAIN_MS = 1000

/**
 * Decides in memory and writes what came of it, many happenings to one transaction; what is to be done outside is done
 * once that is on disk. If it cannot be written, it is tried again until it can: what has happened stays true meanwhile.
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
  let pumping: Promise<void> | undefined
  let closed = false
  let lastNow = 0

  function now(): number {
    lastNow = Math.max(lastNow, options.now())
    return lastNow
  }

  function push(news: Told) {
    if (closed) return
    told.push(news)
    pumping ??= pump().finally(() => {
      pumping = undefined
    })
  }

  async function pump() {
    // What happens in the same breath is decided and written together.
    await new Promise((resolve) => setImmediate(resolve))
    while (told.length > 0 && !closed) {
      const batch = told.length <= TOGETHER ? told : told.slice(0, TOGETHER)
      told = batch === told ? [] : told.slice(TOGETHER)
      for (const news of batch) take(news)
      await keep()
    }
  }

  function take(news: Told) {
    if ('entry' in news) {
      unstored.entries.push(news.entry)
      return
    }
    if ('laterMs' in news) {
      for (const name of shiftRun(run, news.laterMs)) unstored.nodes.add(name)
      clock.load(run)
      return
    }
    const { event, record } = news
    if (record !== undefined && 'node' in event) {
      records.set(event.node, { ...records.get(event.node), ...record })
      unstored.records.set(event.node, { ...unstored.records.get(event.node), ...record })
    }
    const decision = decide(run, event, now())
    if (!decision.ok) {
      // Late and doubled news: a process that ended after its run was cancelled, a timer that met a change.
      log.debug({ run: facts.id, event: event.type, why: decision.message }, 'not taken by the run')
      return
    }
    unstored.entries.push(...entriesOf(run, event, decision, cut))
    commit(run, decision)
    for (const node of decision.nodes) unstored.nodes.add(node.name)
    for (const effect of decision.effects) sort(effect)
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

  async function keep() {
    const { nodes, entries, effects, outside, records: changed } = unstored
    const wanted = clock.wanted()
    const isIdle = nodes.size + entries.length + effects.length + changed.size === 0 && wanted === undefined
    if (isIdle && outside.length === 0) return
    const documents: RunNode[] = [...nodes].map((name) => run.nodes.get(name)!)
    const { head } = run
    const hasEnded = head.outcome !== null
    try {
      if (!isIdle) {
        await store.write(async (tx) => {
          await updateHead(tx, key, head)
          for (const node of documents) await updateNode(tx, key, node)
          for (const [name, record] of changed) await updateRecord(tx, key, name, record)
          for (const effect of effects) await carryOut(tx, effect)
          for (const entry of entries) tx.audit(entry)
          if (hasEnded) await clearTimer(tx, 'run', facts.id)
          else if (wanted !== undefined) await moveTimer(tx, 'run', facts.id, wanted)
        })
      }
    } catch (error) {
      if (closed) return
      log.error({ err: error, run: facts.id }, 'a run could not be stored; trying again in a second')
      await new Promise<void>((resolve) => options.clock.after(AGAIN_MS, resolve))
      return await keep()
    }
    unstored = nothing()
    if (wanted !== undefined && !hasEnded) {
      clock.arm(wanted)
      timers.setFor(wanted)
    }
    for (const effect of outside) options.perform(driver, effect)
    if (hasEnded && !head.reportOwed && told.length === 0) options.ended(driver)
  }

  async function carryOut(tx: Tx, effect: Keyed<StoreEffect>) {
    if (effect.type === 'ask_person') await requests.ask(tx, facts.id, effect)
    if (effect.type === 'withdraw') await requests.withdraw(tx, facts.id, effect)
  }

  const driver: Driver = {
    ...facts,
    run,
    record: (node) => records.get(node) ?? {},
    tell: (event, record) => push({ event, ...(record === undefined ? {} : { record }) }),
    note: (node, text) => push({ entry: noted(facts.id, node, cut(text, 1000)) }),
    postpone: (laterMs) => push({ laterMs }),
    ring() {
      for (const event of clock.ring(options.now())) push({ event })
      // Even where nothing was due: the row is gone, and there may be later ones.
      push({ laterMs: 0 })
    },
    async settled() {
      while (pumping !== undefined) await pumping
    },
    async close() {
      closed = true
      await pumping
    },
  }
  return driver
}

function nothing(): Unstored {
  return { nodes: new Set(), records: new Map(), entries: [], effects: [], outside: [] }
}
