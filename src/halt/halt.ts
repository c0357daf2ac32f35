import type { Halting, Interrupted, Sessions } from '../agents/sessions.ts'
import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { describeHalt, type Halted, type HaltState } from '../commands/halt-state.ts'
import type { Team } from '../commands/team.ts'
import { type Mailboxes, post } from '../messages/mailboxes.ts'
import type { Runs } from '../runs/runs.ts'
import type { Store } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import type { Tasks } from '../tasks/tasks.ts'
import {
  endHalt,
  type HaltRow,
  keepDisturbed,
  keepHalt,
  lockHalt,
  postponeClocks,
  readHalt,
} from './store.ts'

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

interface Stopped {
  halted: Halted
  /** It was stopped before; those still busy were interrupted once more. */
  already: boolean
  interrupts: readonly Interrupted[]
}

interface GoneOn {
  halted: Halted
  lastedMs: number
  /** Agents that are told to go on. */
  told: readonly string[]
}

interface HaltOptions {
  store: Store
  clock: Clock
  log: Log
  haltState: HaltState
  timers: Timers
  mailboxes: Mailboxes
  sessions: Sessions
  tasks: Tasks
  runs: Pick<Runs, 'halt' | 'goOn'>
  team(): Team
}

/** A program takes its time to stop; whoever pressed the button wants an answer. */
const PATIENCE_MS = 5000

export function createHalt(options: HaltOptions): Halt {
  const { store, clock, log, haltState, timers, mailboxes, sessions, tasks, runs, team } = options
  /** Interrupted, or refused something: they must hear when it is over. */
  let disturbed = new Set<string>()
  const isShared = store.engine === 'postgres'
  let stored: Promise<void> = Promise.resolve()
  let isStored = false
  /** Counted, so that a stop that comes while everything is about to go on has the last word. */
  let stops = 0
  /** Of what is known here: what was read before the last one is old. */
  let changes = 0
  let isLooking = false
  let lookAgain = false

  async function stop(by: string, reason: string | undefined): Promise<Stopped> {
    const already = haltState.halted() !== undefined
    stops += 1
    if (!already) begin({ by, reason, at: clock.now() })
    // Not after the disk: nothing that waits there may come between.
    const interrupting = sessions.halt(by)
    for (const { agent, isInTurn } of interrupting) if (isInTurn) disturbed.add(agent)
    // On a store that others share, one of them may just let everything go on.
    if (!isStored || isShared) stored = keep(haltState.halted()!)
    await stored
    const outcomes = await Promise.all(interrupting.map(inTime))
    const interrupts = outcomes.filter((outcome) => outcome !== undefined)
    return { halted: haltState.halted() ?? { by, reason, at: clock.now() }, already, interrupts }
  }

  function begin(halted: Halted) {
    changes += 1
    haltState.begin(halted)
    disturbed = new Set()
    isStored = false
    tasks.halt()
    runs.halt()
  }

  async function keep(halted: Halted) {
    try {
      const first = await store.write(async (tx) => {
        const own = rowOf(halted, undefined)
        const isThere = (await lockHalt(tx)) !== undefined
        const row = await keepHalt(tx, own)
        const isFirst = row.halted_by === own.halted_by && row.at === own.at && row.reason === own.reason
        if (!isFirst || row.agents !== own.agents) await keepDisturbed(tx, rowOf(halted, row).agents)
        if (isFirst && !isThere)
          tx.audit(haltEntry('halted', halted.by, describeHalt(halted), { reason: halted.reason ?? null }))
        return haltedIn(row)
      }, 'first')
      changes += 1
      isStored = true
      // Another daemon was first, or let everything go on a moment too early.
      if (haltState.halted() === undefined) follow(first)
      else haltState.begin(first)
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
      const row = await lockHalt(tx)
      const halted = haltState.halted() ?? (row && haltedIn(row))
      // Of two at once, the second finds nothing left. A halt that could not be stored ends all the same.
      if (halted === undefined || (isStored && row === undefined)) return undefined
      if (stops !== mine) return stoppedAgain()
      const lastedMs = Math.max(0, tx.now - halted.at)
      await endHalt(tx)
      await postponeClocks(tx, lastedMs)
      await tasks.postpone(tx, lastedMs)
      haltState.endIn(tx)
      const all = new Set([...disturbed, ...(row === undefined ? [] : agentsIn(row))])
      const told = [...all].filter(isTold).sort()
      for (const to of told) await post(tx, mailboxes, { to, ...goOnMessage(halted, by) })
      tx.audit(
        haltEntry('resumed', by, `${by} let everything go on`, { halted_by: halted.by, ms: lastedMs, told }),
      )
      tx.afterCommit(() => release(mine, halted))
      return { halted, lastedMs, told }
    }, 'first')
    if (gone instanceof AppError) throw gone
    return gone
  }

  /** Agents of other daemons need not be in this one's team. */
  function isTold(agent: string): boolean {
    return isShared || team().resolve(agent) !== undefined
  }

  function release(mine: number, before: Halted) {
    haltState.end()
    if (stops !== mine) {
      const again = { ...before, at: clock.now() }
      begin(again)
      stored = keep(again)
      stored.catch(() => {})
      return
    }
    goOn(before)
  }

  function goOn(before: Halted) {
    changes += 1
    haltState.end()
    isStored = false
    disturbed = new Set()
    timers.start().catch((error: unknown) => log.error({ err: error }, 'timers did not go on'))
    // Before deliveries flow: what ordered an interrupt must not hit the turn that begins now.
    tasks.goOn()
    runs.goOn(Math.max(0, clock.now() - before.at))
    sessions.goOn()
    mailboxes.goOn()
  }

  /** With those whom other daemons have disturbed. */
  function rowOf({ by, reason, at }: Halted, known: HaltRow | undefined): HaltRow {
    const agents = new Set([...disturbed, ...(known === undefined ? [] : agentsIn(known))])
    return { halted_by: by, reason: reason ?? null, at, agents: JSON.stringify([...agents].sort()) }
  }

  function disturb(agent: string) {
    const halted = haltState.halted()
    if (halted === undefined || disturbed.has(agent)) return
    disturbed.add(agent)
    keepWhom()
  }

  function keepWhom() {
    store
      .write(async (tx) => {
        const row = await lockHalt(tx)
        if (row !== undefined) await keepDisturbed(tx, rowOf(haltedIn(row), row).agents)
      })
      .catch((error: unknown) => log.error({ err: error }, 'whom to tell of the end could not be stored'))
  }

  /** Another daemon of the team has written something: it may have stopped everything, or let it go on. */
  async function lookAround() {
    lookAgain = true
    if (isLooking) return
    isLooking = true
    try {
      while (lookAgain) await look()
    } catch (error) {
      log.error({ err: error }, 'whether everything is stopped could not be read')
    } finally {
      isLooking = false
    }
  }

  async function look() {
    lookAgain = false
    const known = changes
    const row = await readHalt(store)
    const here = haltState.halted()
    if (known !== changes) lookAgain = true
    else if (row !== undefined && here === undefined) follow(haltedIn(row))
    else if (row === undefined && here !== undefined && isStored) goOn(here)
  }

  function follow(halted: Halted) {
    begin(halted)
    isStored = true
    for (const halting of sessions.halt(halted.by)) {
      if (halting.isInTurn) disturbed.add(halting.agent)
      void inTime(halting)
    }
    if (disturbed.size > 0) keepWhom()
  }

  return {
    current: haltState.halted,
    stop,
    go,
    disturbed: disturb,
    async open() {
      store.onOthers(() => void lookAround())
      const row = await readHalt(store)
      if (row === undefined) return
      haltState.begin(haltedIn(row))
      disturbed = new Set(agentsIn(row))
      isStored = true
    },
  }
}

export function haltedIn({ halted_by: by, reason, at }: HaltRow): Halted {
  return { by, reason: reason ?? undefined, at }
}

export function agentsIn({ agents }: HaltRow): string[] {
  return JSON.parse(agents) as string[]
}

export function goOnMessage(halted: Halted, by: string) {
  return {
    title: 'Go on',
    content: `${describeHalt(halted)}. ${by} lets the work go on now: go on where you were. What you said meanwhile was refused and not done; say it again if it still holds.`,
    priority: 'normal' as const,
  }
}

export function haltEntry(what: string, actor: string, text: string, data: Record<string, unknown>) {
  return { type: `team.${what}`, class: 'public' as const, actor, text, data }
}

export function stoppedAgain(): AppError {
  return new AppError('CONFLICT', 'Everything was stopped once more in the meantime', {
    hint: 'orc status tells by whom and why; then orc go again.',
  })
}
