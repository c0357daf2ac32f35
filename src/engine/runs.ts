import { hash } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { formatProblems } from '../config.ts'
import { AppError, reasonOf } from '../model/errors.ts'
import type { Plan } from '../model/plan.ts'
import type { Models } from '../models/model.ts'
import { pendingEffects } from '../runs/effect.ts'
import { readPlan } from '../runs/plan.ts'
import { resumeRun } from '../runs/resume.ts'
import { createRun, type Run } from '../runs/run.ts'
import { HAS_MARKS, type ProcessFacts } from '../runtimes/process-table.ts'
import { endProcesses } from '../runtimes/processes.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import type { HumanRequestRow } from '../store/human-requests.ts'
import { findReceipt, keepReceipt } from '../store/idempotency.ts'
import {
  insertRun,
  type NodeRecord,
  openRunIds,
  type RunFacts,
  readNodes,
  replaceRun,
  runIds,
} from '../store/runs.ts'
import type { Store, Tx } from '../store/store.ts'
import { createExcerpts } from './excerpts.ts'
import type { Mailroom } from './mailroom.ts'
import type { Meter } from './meter.ts'
import { claimPlace } from './run-place.ts'
import { createAttempts, orderOf } from './runs/attempts.ts'
import { createComingUp } from './runs/coming-up.ts'
import { createCommandWorkshop, createFilesWorkshop } from './runs/command-workshop.ts'
import { deliverReport } from './runs/delivered.ts'
import { createDriver, type Driver, type DriverOptions } from './runs/driver.ts'
import { createFixing } from './runs/fixing.ts'
import type { GuestBook } from './runs/guests.ts'
import { createHeldOutputs } from './runs/held-outputs.ts'
import { createRunMail, type Letter } from './runs/mail.ts'
import { createRunMarks } from './runs/mark.ts'
import { createMemberWorkshop, type MemberTasks } from './runs/member-workshop.ts'
import { createModelWorkshop } from './runs/model-workshop.ts'
import { createOutside } from './runs/outside.ts'
import { askedByRun, createRunRequests, decisionIn } from './runs/requests.ts'
import { createReviewing } from './runs/reviewing.ts'
import { createValidating } from './runs/validating.ts'
import type { Workshops } from './runs/worker.ts'
import type { Sessions } from './sessions.ts'
import type { Standstill } from './standstill.ts'
import { noSuchRun, type SeenRun, seeStoredRun } from './stored-runs.ts'
import type { Clock, Log } from './surroundings.ts'
import type { Team } from './team.ts'
import type { Timers } from './timers.ts'

export interface RunOrder {
  /** The text of plan.yaml. */
  readonly plan: string
  readonly folder: string
  readonly name?: string
  readonly concurrency?: number
}

export interface ResumeOrder {
  readonly plan?: string
  readonly folder?: string
  readonly concurrency?: number
  readonly fresh?: boolean
}

export type { SeenRun }

/** Plans being carried out: `src/runs` decides, and what it says is stored and done. */
export interface Runs {
  start(order: RunOrder, by: string, idempotencyKey?: string): Promise<{ run_id: string }>
  resume(
    id: string,
    order: ResumeOrder,
    by: string,
  ): Promise<{ run_id: string; round: number; resumed: boolean }>
  cancel(id: string, by: string, reason: string): Promise<{ run_id: string; cancelled: boolean }>
  /** Undefined: there is none of that name. */
  see(id: string): Promise<SeenRun | undefined>
  list(which: 'open' | 'all', limit: number): Promise<SeenRun[]>
  /** The request that asks people about an agent. */
  requestOf(run: string, node: string, ask: number): Promise<HumanRequestRow | undefined>
  /** A person says something to an agent of a run that has messages/ (S4.16). */
  send(id: string, letter: Letter, by: string): Promise<{ run_id: string; file: string }>
  /** What keeps an agent at work from going on, where that can be seen: a program that does not come up, a question. */
  heldUp(run: SeenRun, node: string): string | undefined
  /** A person's word on a request of a run. Throws what cannot be done. */
  decided(tx: Tx, row: HumanRequestRow, answer: string, by: string): string
  halt(): void
  goOn(haltedMs: number): void
  /** Reads what was going on: before the team's agents are looked at. */
  open(): Promise<void>
  /** The service can be reached: what was going on goes on. */
  begin(): Promise<void>
  /** `leave`: processes that can outlive the service go on, and are found again. */
  close(how: 'leave' | 'end'): Promise<void>
}

export interface RunsOptions {
  store: Store
  timers: Timers
  clock: Clock
  log: Log
  standstill: Standstill
  redact(text: string): string
  team(): Team
  models: Models | undefined
  meter: Meter
  /** What commands and checks find around them. */
  environment: Readonly<NodeJS.ProcessEnv>
  tasks: MemberTasks
  guests: GuestBook
  /** They check the settings of the programs that a plan starts. */
  runtimes: readonly Runtime[]
  mailroom: Mailroom
  sessions(): Sessions
}

export function createRuns(options: RunsOptions): Runs {
  const { store, timers, clock, log, standstill, team } = options
  const drivers = new Map<string, Driver>()
  const cut = createExcerpts(options.redact)
  const requests = createRunRequests(cut)
  const marks = createRunMarks(team().config.stateFolder)
  let leftovers: Promise<ReadonlyMap<string, readonly ProcessFacts[]>> = Promise.resolve(new Map())
  let begun = false
  let closed = false

  const now = () => standstill.halted()?.at ?? clock.now()
  const isHalted = () => standstill.halted() !== undefined

  const comingUp = createComingUp({ store, clock, sessions: options.sessions, isHalted })
  const member = createMemberWorkshop({
    ...{ store, log, team, comingUp },
    ...{ tasks: options.tasks, guests: options.guests, sessions: options.sessions },
  })
  const command = createCommandWorkshop({
    ...{ clock, log, marks, environment: options.environment },
    leftovers: () => leftovers,
  })
  const workshops: Workshops = {
    command,
    files: createFilesWorkshop(),
    agent: member,
    model: createModelWorkshop({ log, team, models: options.models, meter: options.meter }),
    program: member,
  }
  const deliver = deliverReport
  const attempts = createAttempts({ clock, log, workshops, deliver, inform })
  const fixing = createFixing({ clock, workshops, deliver })
  const held = createHeldOutputs()
  const validate = createValidating({
    ...{ clock, team, models: options.models, meter: options.meter, marks, held },
    environment: options.environment,
    review: createReviewing({ store, clock, tasks: options.tasks }),
  })
  const outside = createOutside({
    ...{ log, attempts, fixing, validate, now, marks, held },
    expect(driver, node) {
      const order = orderOf(driver, node, 1)
      if (order.runner.kind === 'command' && driver.isFresh && !isHalted() && !closed) command.expect(order)
    },
  })

  const mail = createRunMail({
    ...{ store, clock, log, cut, mailroom: options.mailroom },
    nameOf(driver, node) {
      const { attempt, alive } = driver.run.nodes.get(node)!
      const name = alive ? member.nameOf(orderOf(driver, node, attempt)) : undefined
      return name !== undefined && team().names.includes(name) ? name : undefined
    },
  })

  const driverOptions: DriverOptions = {
    ...{ store, timers, clock, log, cut, requests, now },
    look(driver, node) {
      const { attempt } = driver.run.nodes.get(node)!
      attempts.look(driver, node, attempt)
      return attempts.showsLife(driver, node, attempt)
    },
    // A first attempt of a command: if a power cut takes the commit, it takes the command, too, and both are begun again.
    mayBeginEarly: (driver, effect) =>
      HAS_MARKS &&
      driver.isFresh &&
      effect.type === 'start_attempt' &&
      effect.attempt === 1 &&
      driver.run.graph.agents.get(effect.node)!.runner.kind === 'command',
    perform(driver, effect) {
      // Before that, `begin` sees to all of it; in a halt, the end of it does.
      if (begun && !closed && !isHalted()) outside.perform(driver, effect, true)
    },
    ended(driver) {
      if (drivers.get(driver.id) !== driver) return
      drivers.delete(driver.id)
      command.expectNone(driver.id)
      mail.end(driver.id)
      void driver.close()
      void sweep(driver.id)
    },
  }

  function drive(facts: RunFacts, run: Run, records: Map<string, NodeRecord>, isFresh = false): Driver {
    const driver = createDriver(facts, run, records, isFresh, driverOptions)
    drivers.set(facts.id, driver)
    if (begun) mail.follow(driver)
    return driver
  }

  function inform(driver: Driver, node: string, text: string) {
    driver.note(node, text)
    const notice = { type: 'ask_person', node, ask: 0, text, awaits: false, expiresAt: null } as const
    store
      .write((tx) => requests.ask(tx, driver.id, notice))
      .catch((error: unknown) => log.error({ err: error, run: driver.id }, 'people could not be told'))
  }

  /** First attempts that a power cut took back may have left an exit code; it is of no attempt that is known. */
  function forgetUnstored(driver: Driver) {
    const never = [...driver.run.nodes.values()].filter(({ attempt }) => attempt === 0)
    command.forget(never.map(({ name }) => orderOf(driver, name, 1)))
  }

  /** Whatever of a run left its group and its parents still bears its mark. */
  async function sweep(run: string) {
    try {
      for (const mark of (await marks.find()).keys()) {
        if (mark.includes(`/${run}/`)) await endProcesses({ mark })
      }
    } catch (error) {
      log.error({ err: error, run }, 'what a run left behind could not be ended')
    }
  }

  function planOf(text: string, folder: string, order: { name?: string; concurrency?: number }): Plan {
    checkFolder(folder)
    const { config } = team()
    const read = readPlan(text, {
      ...(order.name === undefined ? {} : { name: order.name }),
      team: {
        agents: config.agents.map(({ name }) => name),
        models: Object.keys(config.models),
        checkProgram: ({ program, runtime, with: settings }) =>
          options.runtimes.find(({ name }) => name === runtime)?.check({ program, settings }) ?? [],
      },
    })
    if (!read.ok) {
      throw new AppError('PLAN_INVALID', formatProblems(read.problems, 'plan.yaml'), {
        hint: read.problems[0]!.hint,
        data: { problems: read.problems },
      })
    }
    const { plan } = read
    const { concurrency = plan.concurrency } = order
    return { ...plan, concurrency }
  }

  async function see(id: string): Promise<SeenRun | undefined> {
    const driver = drivers.get(id)
    if (driver === undefined) return await seeStoredRun(store, id)
    await driver.settled()
    return driver
  }

  async function mustSee(id: string): Promise<SeenRun & { records?: Map<string, NodeRecord> }> {
    const seen = await see(id)
    if (seen !== undefined) return seen
    throw noSuchRun(id)
  }

  /** An answer that came in while the run was not told of it: the service was killed in between. */
  async function heedAnswers(driver: Driver) {
    for (const { name, state, asks } of driver.run.nodes.values()) {
      if (state !== 'asking') continue
      const row = await requests.find(store, { run: driver.id, node: name, ask: asks })
      if (row?.state === 'answered') tellDecision(driver, row, row.comment ?? '', row.decided_by ?? '')
    }
  }

  function tellDecision(driver: Driver, row: HumanRequestRow, answer: string, by: string) {
    const { node, ask } = askedByRun(row)
    driver.tell({ type: 'person_decided', node, ask, decision: decisionIn(answer), by, comment: '' })
  }

  timers.on('run', async (tx, id) => tx.afterCommit(() => drivers.get(id)?.ring()))

  return {
    async start(order, by, idempotencyKey) {
      mayBegin()
      const { folder } = order
      const digest = hash(
        'sha256',
        JSON.stringify(['run', order.plan, folder, order.name, order.concurrency]),
      )
      const plan = planOf(order.plan, folder, order)
      let started: { facts: RunFacts; run: Run } | undefined
      let claimed: { id: string; place: string } | undefined
      const answer = await store.write(async (tx) => {
        started = undefined
        const earlier = idempotencyKey === undefined ? undefined : await findReceipt(tx, by, idempotencyKey)
        if (earlier !== undefined) {
          return earlier.digest === digest ? (JSON.parse(earlier.receipt) as { run_id: string }) : conflict()
        }
        const id = `run_${await tx.nextKey('run')}`
        // A transaction may be tried again.
        if (claimed?.id !== id) claimed = { id, place: placeFor(folder, id) }
        const facts: RunFacts = { id, folder, place: claimed.place, by }
        const run = createRun({ id, plan, now: now() })
        await insertRun(tx, store.daemon, { ...facts, plan, head: run.head }, run.nodes.values())
        tx.audit({
          type: 'run.ordered',
          class: 'internal',
          actor: by,
          text: `${id}: ${by} starts ${plan.name} (${plan.agents.length} agents) in ${folder}`,
          data: { run_id: id, name: plan.name, folder },
        })
        const receipt = { run_id: id }
        if (idempotencyKey !== undefined) {
          await keepReceipt(tx, by, idempotencyKey, { digest, receipt: JSON.stringify(receipt) })
        }
        started = { facts, run }
        return receipt
      })
      if (answer instanceof AppError) throw answer
      if (started !== undefined) {
        const driver = drive(started.facts, started.run, new Map(), true)
        driver.tell({ type: 'begun' })
        await driver.settled()
      }
      return answer
    },

    async resume(id, order, by) {
      mayBegin()
      const seen = await mustSee(id)
      const { run, folder: before } = seen
      if (run.head.outcome === null || run.head.reportOwed) {
        return { run_id: id, round: run.head.round, resumed: false }
      }
      const folder = order.folder ?? before
      const { concurrency = run.graph.plan.concurrency } = order
      const plan =
        order.plan === undefined
          ? { ...run.graph.plan, concurrency }
          : planOf(order.plan, folder, { ...order, name: run.graph.plan.name })
      const resumed = resumeRun(run, { plan, now: now() })
      if (!resumed.ok) throw new AppError('CONFLICT', resumed.message, { hint: `orc run show ${id}` })
      const next = resumed.run
      if (order.fresh === true) {
        for (const node of next.nodes.values()) next.nodes.set(node.name, { ...node, kept: null })
      }
      // Of two at once, the second finds it going on.
      if (drivers.has(id)) return { run_id: id, round: run.head.round + 1, resumed: false }
      const records =
        seen.records ?? new Map((await readNodes(store, id)).map(({ node, record }) => [node.name, record]))
      const driver = drive({ id, folder, place: seen.place, by: seen.by }, next, records)
      try {
        await store.write(async (tx) => {
          await replaceRun(tx, { id, folder, plan, head: next.head }, next.nodes)
          tx.audit({
            type: 'run.resumed',
            class: 'internal',
            actor: by,
            text: `${id}: ${by} takes it up again, round ${next.head.round}`,
            data: { run_id: id, round: next.head.round },
          })
        })
      } catch (error) {
        drivers.delete(id)
        throw error
      }
      forgetUnstored(driver)
      driver.tell({ type: 'begun' })
      await driver.settled()
      return { run_id: id, round: next.head.round, resumed: true }
    },

    async cancel(id, by, reason) {
      const { run } = await mustSee(id)
      const driver = drivers.get(id)
      if (driver === undefined || run.head.outcome !== null || run.head.cancelled !== null) {
        return { run_id: id, cancelled: false }
      }
      driver.tell({ type: 'cancelled', by, reason })
      await driver.settled()
      return { run_id: id, cancelled: true }
    },

    see,
    async list(which, limit) {
      const seen = await Promise.all((await runIds(store, which, limit)).map(see))
      return seen.filter((one) => one !== undefined)
    },
    async requestOf(run, node, ask) {
      // Who has seen that it asks finds what it asks.
      await drivers.get(run)?.settled()
      return await requests.find(store, { run, node, ask })
    },
    async send(id, letter, by) {
      await mustSee(id)
      const driver = drivers.get(id)
      if (driver === undefined) {
        throw new AppError('CONFLICT', `${id} has ended`, { hint: `orc run --resume ${id}` })
      }
      return { run_id: id, file: await mail.send(driver, letter, by) }
    },
    heldUp(seen, node) {
      const { state, attempt } = seen.run.nodes.get(node)!
      if (state !== 'running') return undefined
      const agent = member.nameOf(orderOf(seen, node, attempt))
      const session = agent === undefined ? undefined : options.sessions().session(agent)
      if (session?.state === 'initializing') return `its program to come up (orc attach ${agent})`
      if (session?.state === 'waiting_input')
        return `an answer to what it asks (orc inbox, orc attach ${agent})`
      return undefined
    },

    decided(tx, row, answer, by) {
      const { run, node, ask } = askedByRun(row)
      const driver = drivers.get(run)
      const known = driver?.run.nodes.get(node)
      if (driver === undefined || known?.state !== 'asking' || known.asks !== ask) {
        throw new AppError('CONFLICT', `${run} does not wait for this any more`, {
          hint: `orc run show ${run}`,
        })
      }
      decisionIn(answer)
      tx.afterCommit(() => tellDecision(driver, row, answer, by))
      return `${run} goes on: ${node}, ${answer}`
    },

    halt() {
      outside.halt()
      attempts.freeze(true)
      fixing.freeze(true)
    },
    goOn(haltedMs) {
      for (const driver of drivers.values()) driver.postpone(haltedMs)
      void outside.afterHalt().then(async () => {
        if (isHalted() || closed) return
        attempts.freeze(false)
        fixing.freeze(false)
        for (const driver of drivers.values()) {
          // What is done already is told by then, so that it is not owed any more.
          await driver.settled()
          if (isHalted() || closed) return
          for (const effect of pendingEffects(driver.run)) outside.perform(driver, effect, false)
        }
      })
    },

    async open() {
      for (const id of await openRunIds(store, store.daemon)) {
        const kept = await seeStoredRun(store, id)
        if (kept === undefined) continue
        const { folder, place, by, run, records } = kept
        const driver = drive({ id, folder, place, by }, run, records)
        for (const { name, attempt, alive } of run.nodes.values()) {
          const order = orderOf(driver, name, attempt)
          if (alive && order.runner.kind === 'program') options.guests.expect(order)
        }
      }
    },

    async begin() {
      const found = await marks.find()
      leftovers = Promise.resolve(found)
      await endUnwanted(found.keys())
      begun = true
      for (const driver of drivers.values()) {
        forgetUnstored(driver)
        mail.follow(driver)
        const { head } = driver.run
        // Of what is stored, before anything new is ordered; what comes of it is told after the return.
        const owed = isHalted() ? [] : pendingEffects(driver.run)
        if (head.outcome === null) driver.tell({ type: head.begunAt === null ? 'begun' : 'restarted' })
        for (const effect of owed) outside.perform(driver, effect, false)
        driver.ring()
        await heedAnswers(driver)
      }
    },

    async close(how) {
      closed = true
      await attempts.close(how)
      await fixing.close(how)
      await outside.close()
      await mail.close()
      await Promise.all([...drivers.values()].map((driver) => driver.close()))
      member.close()
      comingUp.close()
      command.close()
    },
  }

  /** Checks of an earlier service, and what ended runs left. */
  async function endUnwanted(found: Iterable<string>) {
    const wanted = new Set<string>()
    for (const { id, run } of drivers.values()) {
      for (const { name, attempt, fixes, alive, fixerAlive } of run.nodes.values()) {
        if (alive) wanted.add(marks.of(id, name, `attempt ${attempt}`))
        if (fixerAlive) wanted.add(marks.of(id, name, `fix ${fixes}`))
      }
    }
    const unwanted = [...found].filter((mark) => !wanted.has(mark))
    await Promise.all(
      unwanted.map((mark) =>
        endProcesses({ mark }).catch((error: unknown) =>
          log.error({ err: error, mark }, 'it cannot be ended'),
        ),
      ),
    )
  }

  function mayBegin() {
    const refusal = standstill.halted() === undefined ? undefined : standstill.refusal()
    if (refusal !== undefined) throw refusal
  }
}

function checkFolder(folder: string) {
  const isFolder = isAbsolute(folder) && existsSync(folder) && statSync(folder).isDirectory()
  if (isFolder) return
  throw new AppError('INVALID_REQUEST', `${folder.slice(0, 200)} is not a folder`, {
    hint: 'Give the whole path of a folder on the machine of the service: that of the plan.',
  })
}

function placeFor(folder: string, id: string): string {
  try {
    return claimPlace(folder, id)
  } catch (error) {
    throw new AppError('INVALID_REQUEST', `There is no place for a run in ${folder}: ${reasonOf(error)}`, {
      hint: 'A run keeps its workspaces in runs/ beside its plan: the service must be able to write there.',
      cause: error,
    })
  }
}

function conflict(): AppError {
  return new AppError('IDEMPOTENCY_CONFLICT', 'The idempotency key came before with something else', {
    hint: 'Use a new key for each run, and the same key only to repeat the same request.',
  })
}
