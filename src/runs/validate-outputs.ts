import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { UsageTracker } from '../agents/usage-and-limits.ts'
import type { AuditEntry } from '../audit/entry.ts'
import { OPERATOR } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import { createKeyedLimiter } from '../base/keyed-limiter.ts'
import type { Result } from '../base/result.ts'
import type { Team } from '../commands/team.ts'
import type { Models } from '../llm/llm.ts'
import type { Store } from '../store/store.ts'
import { type CheckResult, isEnd, type Judge, type Task } from '../tasks/task.ts'
import { findTask } from '../tasks/tasks.ts'
import { findingsText, resultOf, runCheck } from '../tasks/validation/checks.ts'
import { findJudge, judgeReport } from '../tasks/validation/judge.ts'
import { collectOutbox, findShortcomings, type Outbox } from '../workspaces/outbox.ts'
import { readStatus } from '../workspaces/status.ts'
import { checkInbox, formatInstructions, nameProblems } from '../workspaces/workspaces.ts'
import { summarizeBranch } from '../workspaces/worktree/worktree.ts'
import type { Keyed, OutsideEffect, RunEvent, RunEventOf } from './core/events-and-effects.ts'
import type { Driver } from './driver.ts'
import type { PlanAgent } from './plan.ts'
import { hashOutputs, madeOutputs, manifestIn, worktreeOf } from './prepare-node.ts'
import type { RunMarks } from './process-marks.ts'
import type { RunEvidence } from './run.ts'
import { workspaceOf } from './run-folder.ts'
import { delegateOnce, type MemberTasks } from './workers/member.ts'

type Validate = Keyed<Extract<OutsideEffect, { type: 'validate' }>>

const PROBLEMS_SHOWN = 5

interface OutputValidatorOptions {
  store: Store
  clock: Clock
  team(): Team
  models: Models | undefined
  usageTracker: Pick<UsageTracker, 'ownCall'>
  marks: RunMarks
  environment: Readonly<NodeJS.ProcessEnv>
  /** For reviews by members of the team. */
  tasks: MemberTasks
}

const SUMMARY_CHARACTERS = 8000
const JUDGE_MS = { model: 5 * 60_000, agent: 30 * 60_000 }

/** Validates in the order of C22: schema, required outputs, checks, judge. The first failure ends it. */
export function createOutputValidator(options: OutputValidatorOptions) {
  // Test suites that run in parallel only slow each other down.
  const limiter = createKeyedLimiter(Math.max(1, Math.floor(availableParallelism() / 2)))

  return async function validate(driver: Driver, effect: Validate, signal: AbortSignal): Promise<RunEvent> {
    const { node, attempt } = effect
    const agent = driver.run.graph.agents.get(node)!
    const workspace = workspaceOf(driver.runFolder, node)
    const evidence: RunEvidence[] = []
    const refused = (): RunEventOf<'validated'> => ({
      ...{ type: 'validated', node, attempt, passed: false, evidence },
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
        found('outputs', 'failed', nameProblems(summed.error))
        return refused()
      }
      for (const note of summed.value.notes.slice(0, PROBLEMS_SHOWN)) driver.note(node, note)
    }
    const first = await collectValid(workspace, agent, agent.checks.length === 0, signal)
    if (!first.ok) {
      found('outputs', 'failed', first.error)
      return refused()
    }
    found('outputs', 'passed', `${first.value.outputs.length} files`)
    for (const { message } of first.value.leftOut.slice(0, PROBLEMS_SHOWN))
      driver.note(node, `not counted as an output: ${message}`)

    const checks = await runChecks(driver, agent, workspace, signal)
    const broken = checks.find(({ passed }) => !passed)
    const checksText = findingsText({ checks })
    if (checks.length === 0) found('checks', 'skipped', 'the plan has none')
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
    const last = checks.length === 0 ? first : await collectValid(workspace, agent, true, signal)
    if (!last.ok) {
      found('outputs', 'failed', `after the checks: ${last.error}`)
      return refused()
    }
    const outputs = madeOutputs(last.value)
    const summary = (last.value.summary ?? '').slice(0, SUMMARY_CHARACTERS).toWellFormed()
    const files = outputs.map(({ path, bytes }) => `${path} (${bytes} bytes)`)
    const report = `${summary}\n\nFiles in the outbox:\n${files.slice(0, 200).join('\n')}`
    const claim = { key: `${driver.id}/${node}/review ${attempt}`, workspace, report, evidence: checksText }
    const judged = await judge(agent, claim, signal)
    if (!found('judge', judged.outcome, judged.text)) return refused()
    return {
      ...{ type: 'validated', node, attempt, passed: true, evidence },
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

  async function judge(agent: PlanAgent, claim: ClaimedWork, signal: AbortSignal): Promise<ReviewVerdict> {
    const { config } = options.team()
    const found = judgeOf(options.team(), agent)
    if (!found.ok) return unavailable(found.error.message)
    const judge = found.value
    if (judge === undefined) return { outcome: 'skipped', text: 'there is no judge' }
    const instructions = formatInstructions(agent.name, agent.instructions)
    const timeoutMs = config.tasks.judgeMs ?? JUDGE_MS[judge.kind]
    if (judge.kind === 'agent') {
      const reviewer = judge.name
      const isOwn = agent.runner.kind === 'agent' && options.team().resolve(agent.runner.agent) === reviewer
      if (isOwn) return { outcome: 'skipped', text: `${reviewer} does not judge its own work` }
      return await reviewByMember(options, { ...claim, reviewer, instructions, timeoutMs }, signal)
    }
    const model = judge.name
    if (options.models === undefined || !Object.hasOwn(config.models, model)) {
      return unavailable(`orc.yaml has no model "${model}"`)
    }
    const call = options.usageTracker.ownCall('judge')
    if (call === undefined) return unavailable('the spending limit of the service is reached (limits.spend)')
    const late = new AbortController()
    const cancel = options.clock.after(timeoutMs, () => late.abort())
    try {
      const judged = await judgeReport(
        options.models,
        model,
        { task: instructions, report: claim.report, evidence: claim.evidence },
        { ...call, signal: AbortSignal.any([signal, late.signal]) },
      )
      if (late.signal.aborted) return unavailable(`the judge ${model} did not answer in time`)
      if (!judged.ok) return unavailable(`the judge ${model} failed (${judged.code}): ${judged.message}`)
      return { outcome: judged.completed ? 'passed' : 'failed', text: judged.reason }
    } finally {
      cancel()
    }
  }
}

export type OutputValidator = ReturnType<typeof createOutputValidator>

type ClaimedWork = Pick<ReviewOrder, 'key' | 'workspace' | 'report' | 'evidence'>

/** Returns undefined if no judge is wanted. */
function judgeOf(team: Team, { judge }: PlanAgent): Result<Judge | undefined> {
  if (judge === 'off') return { ok: true, value: undefined }
  return judge === 'default' ? { ok: true, value: team.config.tasks.judge } : findJudge(team, judge.name)
}

async function collectValid(
  workspace: string,
  agent: PlanAgent,
  content: boolean,
  signal: AbortSignal,
): Promise<Result<Outbox, string>> {
  const collected = await collectOutbox(workspace, {
    ...{ content, signal },
    // Find oversized outputs before any check runs.
    sizeCounts: true,
  })
  if (!collected.ok) return { ok: false, error: nameProblems(collected.error) }
  const short = findShortcomings(collected.value, { outputs: agent.outputs })
  if (short.length > 0) return { ok: false, error: nameProblems(short) }
  return collected
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
  if (!checked.ok) return nameProblems(checked.error)
  if (checked.value.length === 0) return undefined
  const shown = checked.value.slice(0, PROBLEMS_SHOWN).map(({ path, change }) => `${path} (${change})`)
  return `it changed its inbox, which is read-only: ${shown.join(', ')}`
}

function failedText({ name, why, output }: CheckResult): string {
  const printed = output.trim()
  return `the check "${name}" failed (${why})${printed === '' ? '' : `: ${printed.slice(-500)}`}`
}

interface ReviewOrder {
  /** Run, agent and attempt: a reviewer gets the same work only once. */
  readonly key: string
  readonly reviewer: string
  readonly workspace: string
  readonly instructions: string
  readonly report: string
  readonly evidence: string
  readonly timeoutMs: number
}

type ReviewVerdict = Pick<RunEvidence, 'outcome' | 'text'>

const unavailable = (text: string): ReviewVerdict => ({ outcome: 'unavailable', text })

/** Lets a member of the team judge the work of an agent, as a task. */
async function reviewByMember(
  { store, clock, tasks }: Pick<OutputValidatorOptions, 'store' | 'clock' | 'tasks'>,
  review: ReviewOrder,
  signal: AbortSignal,
): Promise<ReviewVerdict> {
  const { key, reviewer, workspace, timeoutMs } = review
  const text = reviewText(review)
  const given = await delegateOnce(store, tasks, key, {
    ...{ agent: reviewer, text, context: { workspace }, timeoutMs },
  })
  if (!given.ok) return unavailable(`${reviewer} cannot judge it: ${given.error}`)
  const task = given.value
  const { promise, resolve, reject } = Promise.withResolvers<ReviewVerdict>()
  const look = async () => {
    const found = await findTask(store, task)
    if (found === undefined) return resolve(unavailable(`${task} is gone`))
    if (isEnd(found.state)) return resolve(verdictOf(found, reviewer))
    // The reviewer gave up. The run decides what follows, so do not leave the question to a person.
    const failure = found.failures.at(-1)
    if (failure === undefined || !found.questions.some(({ kind }) => kind === 'help')) return
    resolve(unavailable(`${reviewer} could not judge it: ${failure.why}`))
    await cancel('it could not be judged')
  }
  const cancel = async (reason: string) => {
    await store.write((tx) => tasks.tell(tx, task, { type: 'cancelled', by: OPERATOR, reason }))
  }
  const stopListening = store.onCommit((entries: readonly AuditEntry[]) => {
    if (entries.some(({ type, data }) => type.startsWith('task.') && data?.task_id === task)) {
      look().catch(reject)
    }
  })
  const stopClock = clock.after(timeoutMs, () => {
    resolve(unavailable(`${reviewer} did not judge it in time`))
    cancel('it was not judged in time').catch(reject)
  })
  // After an abort the task continues, and its key finds it again.
  const aborted = () => resolve(unavailable('the review was interrupted'))
  signal.addEventListener('abort', aborted, { once: true })
  try {
    if (signal.aborted) aborted()
    await look()
    return await promise
  } finally {
    stopListening()
    stopClock()
    signal.removeEventListener('abort', aborted)
  }
}

function reviewText({ workspace, instructions, report, evidence }: Omit<ReviewOrder, 'key'>): string {
  return [
    'Judge whether this work follows its instructions. Look at the files themselves, and change none of them.',
    `They are in ${workspace}: the inputs in inbox/, the results in outbox/.`,
    '',
    'Report this task as completed. Begin the result with ACCEPTED or REJECTED, then explain why in one to three sentences',
    'to the agent that did the work.',
    '',
    'The instructions:',
    instructions,
    'The report of the agent:',
    report,
    ...(evidence === '' ? [] : ['', 'Other evidence:', evidence]),
  ].join('\n')
}

const VERDICT = /^[\s*_#>`"']*(accepted|rejected)\b[\s*_:.,`"'–—-]*/i

function verdictOf({ id, state, result, reason }: Task, reviewer: string): ReviewVerdict {
  if (state !== 'completed')
    return unavailable(`${reviewer} did not judge it (${id} is ${state}): ${reason ?? ''}`)
  const said = result ?? ''
  const verdict = VERDICT.exec(said)
  if (verdict === null) return unavailable(`${reviewer} gave no verdict: ${said.slice(0, 300)}`)
  const why = said.slice(verdict[0].length).trim() || said.trim()
  return verdict[1]!.toLowerCase() === 'accepted'
    ? { outcome: 'passed', text: `${reviewer}: ${why}` }
    : { outcome: 'failed', text: `${reviewer} rejected it: ${why}` }
}
