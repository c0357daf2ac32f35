import type { Sessions } from '../agents/sessions.ts'
import type { UsageTracker } from '../agents/usage-and-limits.ts'
import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import type { Log } from '../base/log.ts'
import {
  type CommandAnswer,
  type CommandCall,
  type CommandEntry,
  commandEntry,
  receiptOf,
} from '../commands/commands.ts'
import type { HaltState } from '../commands/halt-state.ts'
import type { Team } from '../commands/team.ts'
import type { Models } from '../llm/llm.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { HumanRequestRow } from '../people/people.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import { cancelRun, resumeRun, sendToRun, startRun } from './api.ts'
import { createAttempts, orderOf } from './attempts.ts'
import { pendingEffects } from './core/events-and-effects.ts'
import { createDriver, type Driver, type DriverOptions } from './driver.ts'
import { createRunEffects } from './effects.ts'
import { withheldFrom } from './prepare-node.ts'
import { createRunMarks, endEarlier, sweepRun } from './process-marks.ts'
import { askedByRun, createRunRequests, decisionEvent, findAsked } from './requests.ts'
import { createResumeAfterRestart } from './resume-after-restart.ts'
import type { Run } from './run.ts'
import { createFixerRunner } from './run-fixer.ts'
import { createRunMessages, type OutgoingRunMessage } from './run-messages.ts'
import { createRunStarter, type ResumeOrder, type RunOrder } from './start-run.ts'
import { type NodeRecord, noSuchRun, type RunFacts, runIds, type SeenRun, seeStoredRun } from './store.ts'
import { createOutputValidator } from './validate-outputs.ts'
import { createCommandWorkers } from './workers/command.ts'
import { createLauncher } from './workers/launcher.ts'
import { createMemberWorkers, type MemberTasks } from './workers/member.ts'
import { createModelWorkers } from './workers/model.ts'
import type { TemporaryAgents } from './workers/temporary-agents.ts'
import { outsiders, type WorkerKinds } from './workers/worker.ts'

export type { ResumeOrder, RunOrder, SeenRun }

/** All runs of one service: starts, resumes, cancels and shows them, and performs what their core decides. */
export interface Runs {
  /** Starting and resuming are part of the transaction of the command that orders them. */
  start(order: RunOrder, call: CommandCall): CommandAnswer
  resume(id: string, order: ResumeOrder, call: CommandCall): CommandAnswer
  cancel(id: string, by: string, reason: string): Promise<{ run_id: string; cancelled: boolean }>
  /** Returns undefined for an unknown id. */
  see(id: string): Promise<SeenRun | undefined>
  list(which: 'open' | 'all', limit: number): Promise<SeenRun[]>
  /** The request that asks people about an agent. */
  requestOf(run: string, node: string, ask: number): Promise<HumanRequestRow | undefined>
  /** Sends a message from a person to an agent of a run with messages/ (S4.16). */
  send(id: string, message: OutgoingRunMessage, by: string): Promise<{ run_id: string; file: string }>
  /** Runs that are blocked by something other than an agent, such as a full disk, with the reason. */
  troubles(): readonly { run: string; text: string; isFull: boolean }[]
  /** Reports changes of `troubles`; undefined means that the run continues. Returns a function that stops listening. */
  onTrouble(listener: (run: string, text: string | undefined) => void): () => void
  /** Why a running agent is blocked, if that is visible: its program does not start, or it asks a question. */
  blockedBy(run: SeenRun, node: string): string | undefined
  /** Applies a person's answer to a request of a run, and returns a confirmation. Throws if the run no longer waits for it. */
  decided(tx: Tx, row: HumanRequestRow, answer: string, by: string): string
  halt(): void
  endHalt(haltedMs: number): void
  /** Loads the open runs. Call it before the agents of the team start. */
  open(): Promise<void>
  /** Continues the open runs. Call it once the service can be reached. */
  begin(): Promise<void>
  /** `leave`: processes that can outlive the service keep running for the next service to find. */
  close(how: 'leave' | 'end'): Promise<void>
}

interface RunsOptions {
  store: Store
  timers: Timers
  clock: Clock
  log: Log
  haltState: HaltState
  redact(text: string): string
  team(): Team
  models: Models | undefined
  usageTracker: UsageTracker
  /** Environment variables for commands and checks. */
  environment: Readonly<NodeJS.ProcessEnv>
  tasks: MemberTasks
  temporaryAgents: TemporaryAgents
  /** Each runtime checks the settings of the programs that a plan starts in it. */
  runtimes: readonly Runtime[]
  mailboxes: Mailboxes
  sessions(): Sessions
}

export function createRuns(options: RunsOptions): Runs {
  const { store, timers, clock, log, haltState, team } = options
  const drivers = new Map<string, Driver>()
  /** Sweeps that end the leftover processes of runs that have ended. */
  const sweeps = new Set<Promise<void>>()
  const cut = (text: string, most?: number) => redactedExcerpt(options.redact, text, most)
  const requests = createRunRequests(cut)
  const marks = createRunMarks(team().config.stateFolder)
  const troubleListeners = new Set<(run: string, text: string | undefined) => void>()
  let closed = false

  const now = () => haltState.halted()?.at ?? clock.now()
  const isHalted = () => haltState.halted() !== undefined

  const launcher = createLauncher()
  const members = createMemberWorkers({ ...options, isHalted })
  const workers: WorkerKinds = {
    command: createCommandWorkers({ ...options, marks, launcher, leftovers: () => restart.leftovers() }),
    files: outsiders,
    agent: members,
    model: createModelWorkers(options),
    program: members,
  }
  const attempts = createAttempts({
    ...{ clock, log, workers, inform },
    endEarlier: (run, node, attempt) => endEarlier(run, node, attempt, marks),
  })
  const withheld = (driver: Driver) => withheldFrom(driver, team().config)
  const fixing = createFixerRunner({ clock, workers, withheldFrom: withheld })
  const validate = createOutputValidator({ ...options, marks })
  const effects = createRunEffects({
    ...{ log, clock, attempts, fixing, validate, now, marks },
    withheldFrom: withheld,
  })

  const mail = createRunMessages({
    ...{ store, clock, log, cut, mailboxes: options.mailboxes },
    nameOf(driver, node) {
      const { attempt, alive } = driver.run.nodes.get(node)!
      const name = alive ? members.nameOf(orderOf(driver, node, attempt)) : undefined
      return name !== undefined && team().names.includes(name) ? name : undefined
    },
  })

  const driverOptions: DriverOptions = {
    ...{ store, timers, clock, log, cut, requests, now },
    checkActivity(driver, node) {
      const { attempt } = driver.run.nodes.get(node)!
      attempts.look(driver, node, attempt)
      return attempts.showsLife(driver, node, attempt)
    },
    perform(driver, effect) {
      // Before the start `begin` performs all pending effects, and during a halt the end of the halt does.
      if (restart.hasBegun() && !closed && !isHalted()) effects.perform(driver, effect, true)
    },
    troubled({ id, trouble }) {
      for (const listener of troubleListeners) listener(id, trouble)
    },
    ended(driver) {
      if (drivers.get(driver.id) !== driver) return
      drivers.delete(driver.id)
      mail.end(driver.id)
      void driver.close()
      const sweep = sweepRun(driver.id, marks, log).finally(() => sweeps.delete(sweep))
      sweeps.add(sweep)
    },
  }

  function drive(facts: RunFacts, run: Run, records: Map<string, NodeRecord>): Driver {
    const driver = createDriver(facts, run, records, driverOptions)
    drivers.set(facts.id, driver)
    if (restart.hasBegun()) mail.follow(driver)
    return driver
  }

  function inform(driver: Driver, node: string, text: string) {
    driver.note(node, text)
    const notice = { type: 'ask_person', node, ask: 0, text, awaits: false, expiresAt: null } as const
    store
      .write((tx) => requests.ask(tx, driver, notice))
      .catch((error: unknown) =>
        log.error({ err: error, run: driver.id }, 'storing a notice to people failed'),
      )
  }

  async function see(id: string): Promise<SeenRun | undefined> {
    const driver = drivers.get(id)
    if (driver !== undefined && (await driver.settled()) === undefined) return driver
    // While a write fails, show the stored state: a crash would lose anything newer.
    const stored = await seeStoredRun(store, id)
    return driver === undefined || stored === undefined ? stored : { ...stored, trouble: driver.trouble }
  }

  async function mustFind(id: string): Promise<SeenRun & { records?: Map<string, NodeRecord> }> {
    const seen = await see(id)
    if (seen !== undefined) return seen
    throw noSuchRun(id)
  }

  function abandon(driver: Driver) {
    void driver.close()
    if (drivers.get(driver.id) !== driver) return
    drivers.delete(driver.id)
    mail.end(driver.id)
  }

  const orders = createRunStarter({
    ...{ store, now, team, drivers, drive, abandon, mustFind },
    runtimes: options.runtimes,
  })

  const restart = createResumeAfterRestart({
    ...{ store, log, drivers, drive, marks, mail, effects, isHalted },
    temporaryAgents: options.temporaryAgents,
  })

  timers.on('run', async (tx, id) => tx.afterCommit(() => drivers.get(id)?.onTimer()))

  return {
    async start(order, call) {
      refuseDuringHalt()
      return await orders.start(order, call)
    },
    async resume(id, order, call) {
      refuseDuringHalt()
      return await orders.resume(id, order, call)
    },
    async cancel(id, by, reason) {
      const driver = drivers.get(id)
      if (driver === undefined) {
        await mustFind(id)
        return { run_id: id, cancelled: false }
      }
      const { outcome, cancelled } = driver.run.head
      const isNew = outcome === null && cancelled === null
      if (isNew) driver.tell({ type: 'cancelled', by, reason })
      // A run that has ended may still wait for disk space to write its report.
      const isGivenUp = outcome !== null && effects.cancelReport(driver, `cancelled by ${by}: ${reason}`)
      const fault = await driver.settled()
      if (fault === undefined) return { run_id: id, cancelled: isNew || isGivenUp }
      const isCancelled = isNew || cancelled !== null
      const what = isCancelled ? 'is cancelled' : 'has ended'
      throw new AppError(fault.code, `${id} ${what}, but this cannot be stored yet: ${fault.message}`, {
        hint: `Orchub retries every second${isCancelled ? '; the agents stop once the cancellation is stored' : ''}.`,
        cause: fault,
      })
    },

    see,
    async list(which, limit) {
      const seen = await Promise.all((await runIds(store, which, limit)).map(see))
      return seen.filter((one) => one !== undefined)
    },
    async requestOf(run, node, ask) {
      // The request is stored with the question, so wait for that write.
      await drivers.get(run)?.settled()
      return await findAsked(store, { run, node, ask })
    },
    async send(id, message, by) {
      await mustFind(id)
      const driver = drivers.get(id)
      if (driver === undefined) {
        throw new AppError('CONFLICT', `${id} has ended`, { hint: `Resume it first: orc run --resume ${id}` })
      }
      return { run_id: id, file: await mail.send(driver, message, by) }
    },
    troubles: () =>
      [...drivers.values()].flatMap(({ id, trouble, isDiskFull }) =>
        trouble === undefined ? [] : [{ run: id, text: trouble, isFull: isDiskFull }],
      ),
    onTrouble(listener) {
      troubleListeners.add(listener)
      return () => troubleListeners.delete(listener)
    },
    blockedBy(seen, node) {
      const { state, attempt } = seen.run.nodes.get(node)!
      if (state !== 'running') return undefined
      const agent = members.nameOf(orderOf(seen, node, attempt))
      const session = agent === undefined ? undefined : options.sessions().session(agent)
      if (session?.state === 'initializing') return `its program to start (orc attach ${agent})`
      if (session?.state === 'waiting_input')
        return `an answer to its question (orc inbox, orc attach ${agent})`
      return undefined
    },

    decided(tx, row, answer, by) {
      const { run, node, ask } = askedByRun(row)
      const driver = drivers.get(run)
      const known = driver?.run.nodes.get(node)
      if (driver === undefined || known?.state !== 'asking' || known.asks !== ask) {
        throw new AppError('CONFLICT', `${run} no longer needs this decision`, {
          hint: `See its state: orc run show ${run}`,
        })
      }
      const event = decisionEvent(row, answer, by)
      tx.afterCommit(() => driver.tell(event))
      return `${run} continues: ${node}, ${answer}`
    },

    halt() {
      effects.halt()
      attempts.freeze(true)
      fixing.freeze(true)
    },
    endHalt(haltedMs) {
      for (const driver of drivers.values()) driver.postpone(haltedMs)
      void effects.afterHalt().then(async () => {
        if (isHalted() || closed) return
        attempts.freeze(false)
        fixing.freeze(false)
        for (const driver of drivers.values()) {
          // Once everything is stored, effects that finished during the halt are no longer pending.
          void driver.stored().then(() => {
            if (isHalted() || closed) return
            for (const effect of pendingEffects(driver.run)) effects.perform(driver, effect, false)
          })
        }
      })
    },

    open: restart.open,
    begin: restart.begin,

    async close(how) {
      closed = true
      await attempts.close(how)
      await fixing.close(how)
      await effects.close()
      await mail.close()
      await Promise.all([...drivers.values()].map((driver) => driver.close()))
      await Promise.all(sweeps)
      members.close()
      launcher.close()
    },
  }

  function refuseDuringHalt() {
    if (isHalted()) throw haltState.refusal()
  }
}

/** The commands by which people start, resume, cancel and write to runs. */
export const runCommands = (runs: Pick<Runs, 'start' | 'resume' | 'cancel' | 'send'>): CommandEntry[] => [
  commandEntry(startRun, { perform: (call, order) => runs.start(order, call) }),
  commandEntry(resumeRun, { perform: (call, { id, ...order }) => runs.resume(id, order, call) }),
  commandEntry(cancelRun, {
    async perform({ speaker }, { id, reason }) {
      const by = speaker.person!
      const details = await runs.cancel(id, by, reason ?? `${by} cancelled it`)
      return receiptOf(cancelRun, details.cancelled ? `${id} cancelled` : `${id} had ended already`, details)
    },
  }),
  commandEntry(sendToRun, {
    async perform({ speaker }, { id, to, kind, content }) {
      const details = await runs.send(id, { to, type: kind, content }, speaker.person!)
      return receiptOf(sendToRun, `messages/${details.file} written`, details)
    },
  }),
]
