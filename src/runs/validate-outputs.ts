import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Meter } from '../agents/usage.ts'
import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import { createKeyedLimiter } from '../base/keyed-limiter.ts'
import type { Team } from '../commands/team.ts'
import type { Models } from '../llm/llm.ts'
import type { CheckResult, Judge } from '../tasks/task.ts'
import { runCheck } from '../tasks/validation/check-process.ts'
import { findingsText, resultOf } from '../tasks/validation/checks.ts'
import { findJudge, judgeReport } from '../tasks/validation/judge.ts'
import { collectOutbox, findShortcomings, type Outbox } from '../workspaces/outbox.ts'
import { readStatus } from '../workspaces/status.ts'
import { checkInbox, formatInstructions, type WorkspaceProblem } from '../workspaces/workspaces.ts'
import { summarizeBranch } from '../workspaces/worktree/worktree.ts'
import { hashOutputs, madeOutputs } from './content-hash.ts'
import type { Keyed, OutsideEffect } from './core/effect.ts'
import type { RunEvent, RunEventOf } from './core/event.ts'
import type { Driver } from './driver.ts'
import type { PlanAgent } from './plan.ts'
import { manifestIn, worktreeOf } from './prepare-inbox.ts'
import type { RunMarks } from './processes.ts'
import type { Reviewer, ReviewOrder, ReviewVerdict } from './review-outputs.ts'
import type { RunEvidence } from './run.ts'
import { workspaceOf } from './run-folder.ts'

type Validate = Keyed<Extract<OutsideEffect, { type: 'validate' }>>

interface OutputValidatorOptions {
  clock: Clock
  team(): Team
  models: Models | undefined
  meter: Pick<Meter, 'ownCall'>
  marks: RunMarks
  environment: Readonly<NodeJS.ProcessEnv>
  /** Review by an agent of the team. */
  review: Reviewer
}

const SUMMARY_CHARACTERS = 8000
const PROBLEMS_SHOWN = 5
const JUDGE_MS = { model: 5 * 60_000, agent: 30 * 60_000 }

/** Validates in the order of C22: schema, required outputs, checks, judge. The first failure ends it. */
export function createOutputValidator(options: OutputValidatorOptions) {
  // Test suites that run in parallel only slow each other down.
  const limiter = createKeyedLimiter(Math.max(1, Math.floor(availableParallelism() / 2)))

  return async function validate(driver: Driver, effect: Validate, signal: AbortSignal): Promise<RunEvent> {
    const { node, attempt } = effect
    const agent = driver.run.graph.agents.get(node)!
    const workspace = workspaceOf(driver.place, node)
    const evidence: RunEvidence[] = []
    const refused = (recoverable = true): RunEventOf<'validated'> => ({
      ...{ type: 'validated', node, attempt, passed: false, evidence, recoverable },
      ...{ outputs: [], outputsHash: '', summary: '' },
    })
    const found = (step: RunEvidence['step'], outcome: RunEvidence['outcome'], text: string) => {
      evidence.push({ step, outcome, text })
      return outcome !== 'failed' && outcome !== 'unavailable'
    }

    const record = driver.record(node)
    const inboxFault = await whatChanged(workspace, manifestIn(record), signal)
    const schemaFault = statusFault(workspace) ?? inboxFault
    if (!found('schema', schemaFault === undefined ? 'passed' : 'failed', schemaFault ?? '')) return refused()

    const worktree = worktreeOf(record)
    if (worktree !== undefined) {
      const summed = await summarizeBranch(worktree)
      if (!summed.ok) {
        found('outputs', 'failed', textOf(summed.error))
        return refused()
      }
      for (const note of summed.value.notes.slice(0, PROBLEMS_SHOWN)) driver.note(node, note)
    }
    const first = await look(workspace, agent, agent.checks.length === 0, signal)
    if (!first.ok) {
      found('outputs', 'failed', first.why)
      return refused()
    }
    found('outputs', 'passed', `${first.outbox.outputs.length} files`)
    for (const { message } of first.outbox.leftOut.slice(0, PROBLEMS_SHOWN))
      driver.note(node, `does not count: ${message}`)

    const checks = await runChecks(driver, agent, workspace, signal)
    const broken = checks.find(({ passed }) => !passed)
    const checksText = findingsText({ checks })
    if (checks.length === 0) found('checks', 'skipped', 'there are none')
    else if (
      !found(
        'checks',
        broken === undefined ? 'passed' : 'failed',
        broken === undefined ? checksText : failedText(broken),
      )
    ) {
      return refused()
    }
    // Checks may have changed the outbox, so collect it again.
    const last = checks.length === 0 ? first : await look(workspace, agent, true, signal)
    if (!last.ok) {
      found('outputs', 'failed', `after the checks: ${last.why}`)
      return refused()
    }
    const outputs = madeOutputs(last.outbox)
    const summary = (last.outbox.summary ?? '').slice(0, SUMMARY_CHARACTERS).toWellFormed()
    const files = outputs.map(({ path, bytes }) => `${path} (${bytes} bytes)`)
    const report = `${summary}\n\nFiles in the outbox:\n${files.slice(0, 200).join('\n')}`
    const claim = { key: `${driver.id}/${node}/review ${attempt}`, workspace, report, evidence: checksText }
    const judged = await judge(agent, claim, signal)
    if (!found('judge', judged.outcome, judged.text)) return refused()
    return {
      ...{ type: 'validated', node, attempt, passed: true, evidence, recoverable: true },
      ...{ outputs, outputsHash: hashOutputs(outputs), summary },
    }
  }

  async function runChecks(
    driver: Driver,
    { name, checks }: PlanAgent,
    workspace: string,
    signal: AbortSignal,
  ): Promise<CheckResult[]> {
    if (checks.length === 0) return []
    const { clock, environment, marks } = options
    return await limiter.run(workspace, async () => {
      const results: CheckResult[] = []
      for (const check of checks) {
        const mark = marks.of(driver.id, name, `check ${randomBytes(6).toString('hex')}`)
        const ran = await runCheck({ ...check, cwd: workspace, environment, mark }, clock, signal)
        results.push(resultOf(check.name, ran))
        if (!results.at(-1)!.passed) break
      }
      return results
    })
  }

  async function judge(agent: PlanAgent, claim: ReviewedWork, signal: AbortSignal): Promise<ReviewVerdict> {
    const { config } = options.team()
    const away = (text: string): ReviewVerdict => ({ outcome: 'unavailable', text })
    const judge = judgeOf(options.team(), agent)
    if (judge === undefined) return { outcome: 'skipped', text: 'there is no judge' }
    if (judge instanceof AppError) return away(judge.message)
    const instructions = formatInstructions(agent.name, agent.instructions)
    const timeoutMs = config.tasks.judgeMs ?? JUDGE_MS[judge.kind]
    if (judge.kind === 'agent') {
      const reviewer = judge.name
      const isOwn = agent.runner.kind === 'agent' && options.team().resolve(agent.runner.agent) === reviewer
      if (isOwn) return { outcome: 'skipped', text: `${reviewer} does not judge its own work` }
      return await options.review({ ...claim, reviewer, instructions, timeoutMs }, signal)
    }
    const model = judge.name
    if (options.models === undefined || !Object.hasOwn(config.models, model)) {
      return away(`orc.yaml has no model "${model}"`)
    }
    const call = options.meter.ownCall('judge')
    if (call === undefined) return away('the spending limit of the service is reached (limits.spend)')
    const late = new AbortController()
    const cancel = options.clock.after(timeoutMs, () => late.abort())
    try {
      const judged = await judgeReport(
        options.models,
        model,
        {
          task: instructions,
          report: claim.report,
          evidence: claim.evidence,
        },
        { ...call, signal: AbortSignal.any([signal, late.signal]) },
      )
      if (late.signal.aborted) return away(`the judge ${model} did not answer in time`)
      if (!judged.ok) return away(`the judge ${model} failed (${judged.code}): ${judged.message}`)
      return { outcome: judged.completed ? 'passed' : 'failed', text: judged.reason }
    } finally {
      cancel()
    }
  }
}

export type OutputValidator = ReturnType<typeof createOutputValidator>

type ReviewedWork = Pick<ReviewOrder, 'key' | 'workspace' | 'report' | 'evidence'>

/** Undefined: no judge. */
function judgeOf(team: Team, { judge }: PlanAgent): Judge | AppError | undefined {
  if (judge === 'off') return undefined
  return judge === 'default' ? team.config.tasks.judge : findJudge(team, judge.name)
}

type CheckedOutbox = { ok: true; outbox: Outbox } | { ok: false; why: string }

async function look(
  workspace: string,
  agent: PlanAgent,
  content: boolean,
  signal: AbortSignal,
): Promise<CheckedOutbox> {
  const collected = await collectOutbox(workspace, {
    ...{ content, signal },
    // Find oversized outputs before any check runs.
    sizeCounts: true,
  })
  if (!collected.ok) return { ok: false, why: textOf(collected.error) }
  const outbox = collected.value
  const short = findShortcomings(outbox, { outputs: agent.outputs })
  if (short.length > 0) return { ok: false, why: textOf(short) }
  return { ok: true, outbox }
}

function statusFault(workspace: string): string | undefined {
  const read = readStatus(workspace)
  return read.ok ? undefined : read.error.message
}

/** C21: work counts only if the inbox is unchanged. */
async function whatChanged(
  workspace: string,
  manifest: ReturnType<typeof manifestIn>,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (manifest === undefined) return undefined
  const checked = await checkInbox(workspace, manifest, { signal })
  if (!checked.ok) return textOf(checked.error)
  if (checked.value.length === 0) return undefined
  const shown = checked.value.slice(0, PROBLEMS_SHOWN).map(({ path, change }) => `${path} (${change})`)
  return `it changed its inbox, which is read-only: ${shown.join(', ')}`
}

function textOf(problems: readonly WorkspaceProblem[]): string {
  const shown = problems.slice(0, PROBLEMS_SHOWN).map(({ message }) => message)
  const more = problems.length - shown.length
  return shown.join('; ') + (more > 0 ? `; and ${more} more` : '')
}

function failedText({ name, why, output }: CheckResult): string {
  const printed = output.trim()
  return `the check "${name}" failed (${why})${printed === '' ? '' : `: ${printed.slice(-500)}`}`
}
