import { ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import {
  askPeople,
  findRunRequest,
  type HumanRequestRow,
  type RequestForm,
  withdrawHumanRequest,
} from '../people/people.ts'
import type { RequestOwner } from '../people/verdicts.ts'
import type { Reader, Tx } from '../store/store.ts'
import type { RunEvent, StoreEffect } from './core/events-and-effects.ts'
import { DECISIONS, type PersonDecision } from './run.ts'
import { correctionsIn, workspaceOf } from './run-folder.ts'
import type { RunFacts } from './store.ts'

/** Identifies the question of a run that a human request is about. */
interface AskedByRun {
  run: string
  node: string
  ask: number
}

/** Limits the notices of each run; the report lists all failures. */
const NOTICES = 10

type AskEffect = Extract<StoreEffect, { type: 'ask_person' }>
type WithdrawEffect = Extract<StoreEffect, { type: 'withdraw' }>

/** Human requests of runs (S4.12, C9). */
export function createRunRequests(cut: RedactedExcerpt) {
  const notices = new Map<string, number>()

  /** True for the first notices of a run. */
  function isHeard(run: string): boolean {
    const count = (notices.get(run) ?? 0) + 1
    notices.set(run, count)
    return count <= NOTICES
  }

  return {
    async ask(
      tx: Tx,
      { id: run, runFolder }: Pick<RunFacts, 'id' | 'runFolder'>,
      effect: AskEffect,
    ): Promise<void> {
      const { node, ask, text, awaits, expiresAt } = effect
      // The commit may be a retry of one that was stored although its response was lost.
      if (awaits && (await findRunRequest(tx, contextOf({ run, node, ask })))?.state === 'open') return
      if (!awaits && !isHeard(run)) return
      const form: RequestForm = awaits ? { choices: DECISIONS } : {}
      await askPeople(tx, {
        kind: 'escalation',
        purpose: awaits ? 'run' : 'notice',
        asker: ORCHESTRATOR,
        question: `${run}: ${text}`,
        reason: awaits ? howTo(runFolder, node) : `${run} continues without it if its plan allows that`,
        context: contextOf({ run, node, ask }),
        expiresAt,
        form,
        text: cut(`${run}: ${text}`, 1000),
        about: () => ({ awaits, run_id: run, node }),
      })
    },

    async withdraw(tx: Tx, run: string, { node, ask }: WithdrawEffect): Promise<void> {
      const row = await findRunRequest(tx, contextOf({ run, node, ask }))
      if (row === undefined || row.state !== 'open') return
      const data = { kind: row.kind, run_id: run, node }
      await withdrawHumanRequest(tx, row, { why: cut(row.question, 1000), data })
    },
  }
}

/** Finds the request for a question. */
export function findAsked(reader: Reader, asked: AskedByRun): Promise<HumanRequestRow | undefined> {
  return findRunRequest(reader, contextOf(asked))
}

export type RunRequests = ReturnType<typeof createRunRequests>

const CHOICES =
  'retry: try again. fixed: try again with the inputs that you corrected. skip: continue without it. fail: let it fail'

/** The person may see only this text, so it explains the choices and names the folders. */
function howTo(runFolder: string, node: string): string {
  const where = `Correct the inputs where the plan takes them from, or in ${correctionsIn(runFolder, node)}`
  return `${CHOICES}. ${where}, under their paths in the inbox. Its workspace: ${workspaceOf(runFolder, node)}`
}

export function askedByRun({ context }: Pick<HumanRequestRow, 'context'>): AskedByRun {
  return JSON.parse(context) as AskedByRun
}

function contextOf({ run, node, ask }: AskedByRun): string {
  return JSON.stringify({ run, node, ask })
}

function decisionIn(answer: string): PersonDecision {
  const decision = DECISIONS.find((one) => one === answer)
  if (decision !== undefined) return decision
  throw new AppError('INVALID_COMMAND', `"${answer.slice(0, 50)}" is not one of the choices`, {
    hint: CHOICES,
  })
}

export function decisionEvent(row: HumanRequestRow, answer: string, by: string): RunEvent {
  const { node, ask } = askedByRun(row)
  return { type: 'person_decided', node, ask, decision: decisionIn(answer), by }
}

/** Continues agents of a run after a person's decision. */
export function runRequestOwner(
  runs: () => { decided(tx: Tx, row: HumanRequestRow, answer: string, by: string): string },
): RequestOwner {
  return {
    async about(_, row) {
      const { run, node } = askedByRun(row)
      return { run_id: run, node }
    },
    decided: (tx, row, { comment, by }) => runs().decided(tx, row, comment ?? '', by),
  }
}
