import type { z } from 'zod'
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
import type { HaltSchema } from './api.ts'
import {
  endHalt,
  type HaltRow,
  postponeClocks,
  readHalt,
  storeAgentsToNotify,
  storeHaltRow,
} from './store.ts'

/**
 * A person stops everything at once, and lets it continue later. During a halt no delivery is handed out, no agent is
 * started, no timer, check or judge acts, and agents' commands are refused; clocks stand still.
 *
 * States, with the variables that mark them:
 *
 *   running      No halt (`haltState`). `stop` and another daemon's halt lead to `halted`.
 *   halted       In memory only, until the store has the row (`isStored`). A restart would forget it until then.
 *   stored       The row is written; all daemons that share the store adopt it. `go`, or the end of the row, leads back
 *                to `running`. A stop that comes while `go` is being stored wins (`stops`).
 */
export interface Halt {
  current(): Halted | undefined
  /** Takes effect before it returns its promise; resolves when it is on disk and the agents were interrupted. */
  stop(by: string, reason: string | undefined): Promise<HaltResult>
  go(by: string): Promise<EndedHalt | undefined>
  /** Notes that the halt refused the agent's command or left its task undone: the agent gets a message when it ends. */
  affected(agent: string): void
  /** Reads a halt that an earlier process stored. Called before anything acts. */
  open(): Promise<void>
}

interface HaltResult {
  halted: Halted
  /** The team was halted already; agents that were still busy were interrupted again. */
  already: boolean
  interrupts: readonly Interrupted[]
}

interface EndedHalt {
  halted: Halted
  lastedMs: number
  /** Agents that get a message. */
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
  runs: Pick<Runs, 'halt' | 'endHalt'>
  team(): Team
}

/** Longest wait for agents to stop before `stop` answers the person. */
const INTERRUPT_WAIT_MS = 5000

export function createHalt(options: HaltOptions): Halt {
  const { store, clock, log, haltState, timers, mailboxes, sessions, tasks, runs, team } = options
  /** Agents that get a message when the halt ends. */
  let affected = new Set<string>()
  const isShared = store.engine === 'postgres'
  let stored: Promise<void> = Promise.resolve()
  let isStored = false
  /** Counts stops, so that one that comes during `go` wins. */
  let stops = 0
  /** Counts changes of the state in memory: a row read before the last change is outdated. */
  let changes = 0
  let isSyncing = false
  let syncAgain = false

  async function stop(by: string, reason: string | undefined): Promise<HaltResult> {
    const already = haltState.halted() !== undefined
    stops += 1
    if (!already) begin({ by, reason, at: clock.now() })
    // Before the write, so that nothing acts while the halt waits for the disk.
    const interrupting = sessions.halt(by)
    for (const { agent, isInTurn } of interrupting) if (isInTurn) affected.add(agent)
    // On a shared store, another daemon may be ending the halt right now.
    if (!isStored || isShared) stored = storeHalt(haltState.halted()!)
    await stored
    const outcomes = await Promise.all(interrupting.map(waitForInterrupt))
    const interrupts = outcomes.filter((outcome) => outcome !== undefined)
    return { halted: haltState.halted() ?? { by, reason, at: clock.now() }, already, interrupts }
  }

  function begin(halted: Halted) {
    changes += 1
    haltState.begin(halted)
    affected = new Set()
    isStored = false
    tasks.halt()
    runs.halt()
  }

  async function storeHalt(halted: Halted) {
    try {
      const first = await store.write(async (tx) => {
        const own = rowOf(halted, undefined)
        const isThere = (await readHalt(tx, tx.lockRow)) !== undefined
        const row = await storeHaltRow(tx, own)
        const isFirst = row.halted_by === own.halted_by && row.at === own.at && row.reason === own.reason
        if (!isFirst || row.agents !== own.agents) storeAgentsToNotify(tx, rowOf(halted, row).agents)
        if (isFirst && !isThere)
          tx.audit(haltEntry('halted', halted.by, describeHalt(halted), { reason: halted.reason ?? null }))
        return haltedIn(row)
      }, 'first')
      changes += 1
      isStored = true
      // Another daemon halted first, or ended the halt a moment too early.
      if (haltState.halted() === undefined) adopt(first)
      else haltState.begin(first)
      isStored = true
    } catch (error) {
      log.error({ err: error }, 'could not store the halt')
      const { code, message } = error instanceof AppError ? error : { code: 'INTERNAL' as const, message: '' }
      throw new AppError(code, `Everything is stopped, but the halt could not be stored: ${message}`, {
        hint: 'A restart of the service would end the halt. Try again, or stop the service: orc down.',
        cause: error,
      })
    }
  }

  /** Reports an agent that doesn't stop in time as not stopped. */
  function waitForInterrupt({ agent, done }: Halting): Promise<Interrupted | undefined> {
    return new Promise((resolve) => {
      const late = { agent, stopped: false, evidence: `no answer within ${INTERRUPT_WAIT_MS / 1000} s` }
      const cancel = clock.after(INTERRUPT_WAIT_MS, () => resolve(late))
      void done.then((interrupted) => {
        cancel()
        if (interrupted !== undefined) addAffected(agent)
        resolve(interrupted)
      })
    })
  }

  async function go(by: string): Promise<EndedHalt | undefined> {
    const mine = stops
    // Wait for our own row, or it would be written after the halt has ended.
    await stored.catch(() => {})
    const gone = await store.write(async (tx) => {
      const row = await readHalt(tx, tx.lockRow)
      const halted = haltState.halted() ?? (row && haltedIn(row))
      // The second of two concurrent calls finds no halt. A halt that could not be stored ends as well.
      if (halted === undefined || (isStored && row === undefined)) return undefined
      if (stops !== mine) return stoppedAgain()
      const lastedMs = Math.max(0, tx.now - halted.at)
      endHalt(tx)
      postponeClocks(tx, lastedMs)
      await tasks.postpone(tx, lastedMs)
      haltState.endIn(tx)
      const all = new Set([...affected, ...(row === undefined ? [] : agentsIn(row))])
      // Agents of other daemons need not be in this one's team.
      const told = [...all].filter((agent) => isShared || team().resolve(agent) !== undefined).sort()
      for (const to of told) await post(tx, mailboxes, { to, ...resumeMessage(halted, by) })
      tx.audit(haltEntry('resumed', by, `${by} ended the halt`, { halted_by: halted.by, ms: lastedMs, told }))
      tx.afterCommit(() => endAfterCommit(mine, halted))
      return { halted, lastedMs, told }
    }, 'first')
    if (gone instanceof AppError) throw gone
    return gone
  }

  function endAfterCommit(mine: number, before: Halted) {
    haltState.end()
    if (stops !== mine) {
      const again = { ...before, at: clock.now() }
      begin(again)
      stored = storeHalt(again)
      stored.catch(() => {})
      return
    }
    resume(before)
  }

  function resume(before: Halted) {
    changes += 1
    haltState.end()
    isStored = false
    affected = new Set()
    timers
      .start()
      .catch((error: unknown) => log.error({ err: error }, 'could not restart the timers after a halt'))
    // Before deliveries: an interrupt that a task ordered must not hit the turn that begins now.
    tasks.endHalt()
    runs.endHalt(Math.max(0, clock.now() - before.at))
    sessions.endHalt()
    mailboxes.endHalt()
  }

  /** Includes the affected agents of other daemons. */
  function rowOf({ by, reason, at }: Halted, known: HaltRow | undefined): HaltRow {
    const agents = new Set([...affected, ...(known === undefined ? [] : agentsIn(known))])
    return { halted_by: by, reason: reason ?? null, at, agents: JSON.stringify([...agents].sort()) }
  }

  function addAffected(agent: string) {
    const halted = haltState.halted()
    if (halted === undefined || affected.has(agent)) return
    affected.add(agent)
    storeAffected()
  }

  function storeAffected() {
    store
      .write(async (tx) => {
        const row = await readHalt(tx, tx.lockRow)
        if (row !== undefined) storeAgentsToNotify(tx, rowOf(haltedIn(row), row).agents)
      })
      .catch((error: unknown) =>
        log.error({ err: error }, 'could not store which agents to notify at the end of the halt'),
      )
  }

  /** Another daemon wrote to the store: it may have halted the team or ended the halt. */
  async function syncWithStore() {
    syncAgain = true
    if (isSyncing) return
    isSyncing = true
    try {
      while (syncAgain) await readStore()
    } catch (error) {
      log.error({ err: error }, 'could not read the halt from the store')
    } finally {
      isSyncing = false
    }
  }

  async function readStore() {
    syncAgain = false
    const known = changes
    const row = await readHalt(store)
    const here = haltState.halted()
    if (known !== changes) syncAgain = true
    else if (row !== undefined && here === undefined) adopt(haltedIn(row))
    else if (row === undefined && here !== undefined && isStored) resume(here)
  }

  function adopt(halted: Halted) {
    begin(halted)
    isStored = true
    for (const halting of sessions.halt(halted.by)) {
      if (halting.isInTurn) affected.add(halting.agent)
      void waitForInterrupt(halting)
    }
    if (affected.size > 0) storeAffected()
  }

  return {
    current: haltState.halted,
    stop,
    go,
    affected: addAffected,
    async open() {
      store.onOtherDaemons(() => void syncWithStore())
      const row = await readHalt(store)
      if (row === undefined) return
      haltState.begin(haltedIn(row))
      affected = new Set(agentsIn(row))
      isStored = true
    },
  }
}

function haltedIn({ halted_by: by, reason, at }: HaltRow): Halted {
  return { by, reason: reason ?? undefined, at }
}

function agentsIn({ agents }: HaltRow): string[] {
  return JSON.parse(agents) as string[]
}

function resumeMessage(halted: Halted, by: string) {
  return {
    title: 'Go on',
    content: `${describeHalt(halted)}. ${by} resumed the work: continue where you left off. Commands that you sent during the halt were refused; send those again that you still need.`,
    priority: 'normal' as const,
  }
}

function haltEntry(what: string, actor: string, text: string, data: Record<string, unknown>) {
  return { type: `team.${what}`, class: 'public' as const, actor, text, data }
}

function stoppedAgain(): AppError {
  return new AppError('CONFLICT', 'Someone halted the team again while the halt was being ended', {
    hint: 'Check with `orc status` who did and why, then run `orc service go` again.',
  })
}

export function wireHalt({ by, reason, at }: Halted): z.output<typeof HaltSchema> {
  return { by, at: new Date(at).toISOString(), ...(reason === undefined ? {} : { reason }) }
}
