import { AppError } from '../model/errors.ts'
import { endHalt, keepDisturbed, keepHalt, postponeClocks, readHalt } from '../store/halt.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Mailroom } from './mailroom.ts'
import { post } from './post.ts'
import type { Runs } from './runs.ts'
import type { Halting, Interrupted, Sessions } from './sessions.ts'
import { describeHalt, type Halted, type Standstill } from './standstill.ts'
import type { Clock, Log } from './surroundings.ts'
import type { Tasks } from './tasks.ts'
import type { Team } from './team.ts'
import type { Timers } from './timers.ts'

/**
 * A person stops everything, at once, and lets it go on later (issue 4, §4). While it lasts no delivery is handed out,
 * no agent is started, no timer, check or judge acts, and agents' commands are refused; clocks stand still.
 */
export interface Halt {
  current(): Halted | undefined
  /** Takes effect before it returns its promise; resolves when it is on disk and the agents were interrupted. */
  stop(by: string, reason: string | undefined): Promise<Stopped>
  go(by: string): Promise<GoneOn | undefined>
  /** An agent was refused something, or came to rest with a task undone: it is told when it may go on. */
  disturbed(agent: string): void
  /** What an earlier process left: before anything acts. */
  open(): Promise<void>
}

export interface Stopped {
  halted: Halted
  /** It was stopped before; those still busy were interrupted once more. */
  already: boolean
  interrupts: readonly Interrupted[]
}

export interface GoneOn {
  halted: Halted
  lastedMs: number
  /** Agents that are told to go on. */
  told: readonly string[]
}

export interface HaltOptions {
  store: Store
  clock: Clock
  log: Log
  standstill: Standstill
  timers: Timers
  mailroom: Mailroom
  sessions: Sessions
  tasks: Tasks
  runs: Pick<Runs, 'halt' | 'goOn'>
  team(): Team
}

/** A program takes its time to stop; whoever pressed the button wants an answer. */
const PATIENCE_MS = 5000

export function createHalt(options: HaltOptions): Halt {
  const { store, clock, log, standstill, timers, mailroom, sessions, tasks, runs, team } = options
  /** Interrupted, or refused something: they must hear when it is over. */
  let disturbed = new Set<string>()
  let stored: Promise<void> = Promise.resolve()
  let isStored = false
  /** Counted, so that a stop that comes while everything is about to go on has the last word. */
  let stops = 0

  async function stop(by: string, reason: string | undefined): Promise<Stopped> {
    const already = standstill.halted() !== undefined
    stops += 1
    if (!already) begin({ by, reason, at: clock.now() })
    // Not after the disk: nothing that waits there may come between.
    const interrupting = sessions.halt(by)
    for (const { agent, isBusy } of interrupting) if (isBusy) disturbed.add(agent)
    if (!isStored) stored = keep()
    await stored
    const outcomes = await Promise.all(interrupting.map(inTime))
    const interrupts = outcomes.filter((outcome) => outcome !== undefined)
    return { halted: standstill.halted() ?? { by, reason, at: clock.now() }, already, interrupts }
  }

  function begin(halted: Halted) {
    standstill.begin(halted)
    disturbed = new Set()
    isStored = false
    tasks.halt()
    runs.halt()
  }

  async function keep() {
    const halted = standstill.halted()!
    try {
      await store.write(async (tx) => {
        const isNew = (await readHalt(tx)) === undefined
        await keepHalt(tx, rowOf(halted))
        if (isNew)
          tx.audit(entry('halted', halted.by, describeHalt(halted), { reason: halted.reason ?? null }))
      }, 'first')
      isStored = true
    } catch (error) {
      log.error({ err: error }, 'everything is stopped, but that could not be stored')
      const { code, message } = error instanceof AppError ? error : { code: 'INTERNAL' as const, message: '' }
      throw new AppError(code, `Everything is stopped, but it could not be written down: ${message}`, {
        hint: 'After a restart of the service it would go on. Try again, or end the service: orc down.',
        cause: error,
      })
    }
  }

  /** One that hangs is told of as what it is. */
  function inTime({ agent, done }: Halting): Promise<Interrupted | undefined> {
    return new Promise((resolve) => {
      const late = { agent, stopped: false, evidence: `no answer within ${PATIENCE_MS / 1000} s` }
      const cancel = clock.after(PATIENCE_MS, () => resolve(late))
      void done.then((interrupted) => {
        cancel()
        if (interrupted !== undefined) disturb(agent)
        resolve(interrupted)
      })
    })
  }

  async function go(by: string): Promise<GoneOn | undefined> {
    const mine = stops
    // Its own row is written first, or this would leave it behind.
    await stored.catch(() => {})
    const gone = await store.write(async (tx) => {
      const halted = standstill.halted()
      // Of two at once, the second finds nothing left.
      if (halted === undefined || !(await isThere(tx))) return undefined
      if (stops !== mine) return stoppedAgain()
      const lastedMs = Math.max(0, tx.now - halted.at)
      await endHalt(tx)
      await postponeClocks(tx, lastedMs)
      await tasks.postpone(tx, lastedMs)
      standstill.endIn(tx)
      const told = [...disturbed].filter((agent) => team().resolve(agent) !== undefined).sort()
      for (const to of told) await post(tx, mailroom, { to, ...goOnMessage(halted, by) })
      tx.audit(
        entry('resumed', by, `${by} let everything go on`, { halted_by: halted.by, ms: lastedMs, told }),
      )
      tx.afterCommit(() => release(mine, halted))
      return { halted, lastedMs, told }
    }, 'first')
    if (gone instanceof AppError) throw gone
    return gone
  }

  /** A halt that could not be stored is only in memory, and ends all the same. */
  async function isThere(tx: Tx): Promise<boolean> {
    return !isStored || (await readHalt(tx)) !== undefined
  }

  function release(mine: number, before: Halted) {
    standstill.end()
    if (stops !== mine) {
      begin({ ...before, at: clock.now() })
      stored = keep()
      stored.catch(() => {})
      return
    }
    isStored = false
    disturbed = new Set()
    timers.start().catch((error: unknown) => log.error({ err: error }, 'timers did not go on'))
    // Before deliveries flow: what ordered an interrupt must not hit the turn that begins now.
    tasks.goOn()
    runs.goOn(Math.max(0, clock.now() - before.at))
    sessions.goOn()
    mailroom.goOn()
  }

  function rowOf({ by, reason, at }: Halted) {
    return { halted_by: by, reason: reason ?? null, at, agents: JSON.stringify([...disturbed].sort()) }
  }

  function disturb(agent: string) {
    const halted = standstill.halted()
    if (halted === undefined || disturbed.has(agent)) return
    disturbed.add(agent)
    store
      .write((tx) => keepDisturbed(tx, rowOf(halted).agents))
      .catch((error: unknown) => log.error({ err: error }, 'whom to tell of the end could not be stored'))
  }

  return {
    current: standstill.halted,
    stop,
    go,
    disturbed: disturb,
    async open() {
      const row = await readHalt(store)
      if (row === undefined) return
      standstill.begin({ by: row.halted_by, reason: row.reason ?? undefined, at: row.at })
      disturbed = new Set(JSON.parse(row.agents) as string[])
      isStored = true
    },
  }
}

function goOnMessage(halted: Halted, by: string) {
  return {
    title: 'Go on',
    content: `${describeHalt(halted)}. ${by} lets the work go on now: go on where you were. What you said meanwhile was refused and not done; say it again if it still holds.`,
    priority: 'normal' as const,
  }
}

function entry(what: string, actor: string, text: string, data: Record<string, unknown>) {
  return { type: `team.${what}`, class: 'public' as const, actor, text, data }
}

function stoppedAgain(): AppError {
  return new AppError('CONFLICT', 'Everything was stopped once more in the meantime', {
    hint: 'orc status tells by whom and why; then orc go again.',
  })
}
