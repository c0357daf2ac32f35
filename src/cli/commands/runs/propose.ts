import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { type FoundWorkspace, planFromManifests, planText, readPlan } from '../../../runs/plan/read-plan.ts'
import {
  isExpectedAnyway,
  parseInstructions,
  type ReadInstructions,
  readInboxTexts,
  type WorkspaceResult,
} from '../../../workspaces/workspaces.ts'
import { formatProblems, type Problem } from '../../../yaml/problem.ts'
import { openClient } from '../../connection/client.ts'
import { exitCode, usage } from '../../errors.ts'
import { showWorking } from '../../output/layout.ts'
import { complain, plain, print, printJson, remark } from '../../output/print.ts'
import { readText } from '../../standard-input.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { findWorkspaces, refused } from '../workspaces/find.ts'

export const verb: Verb = {
  name: 'run propose',
  summary: 'let a model propose a plan.yaml, or derive one from workspaces; runs nothing',
  details:
    'Prints the plan, or writes it to the file named with --out. If the plan has mistakes, it lists them and exits with 1.\n' +
    'The model is --model or runs.planner in orc.yaml.\n' +
    'With --from FOLDER it needs no model and no service: it derives the plan from inbox/dependencies.json and\n' +
    'inbox/instructions.md of the workspaces in FOLDER. Add who does the work, and input files from elsewhere.',
  arguments: [{ name: 'GOAL', optional: true, rest: true }],
  options: [
    { name: 'out', short: 'o', value: 'FILE', summary: 'write the plan to this file' },
    { name: 'force', summary: 'replace an existing file' },
    {
      name: 'from',
      value: 'FOLDER',
      summary: 'derive it from the workspaces in this folder, such as runs/run_1',
    },
    { name: 'model', value: 'MODEL', summary: 'a model from orc.yaml' },
  ],
  examples: [
    'orc run propose "Compare the three fastest JSON parsers" -o plan.yaml',
    'orc run propose - < goal.txt',
    'orc run propose --from runs/run_1 -o plan.yaml',
  ],
  async run(invocation) {
    const { words, option, flag, json } = invocation
    const from = option('from')
    if (from !== undefined && (words.length > 0 || option('model') !== undefined)) {
      throw usage('--from uses no model', 'Drop GOAL and --model, or drop --from.')
    }
    const proposed = from === undefined ? await propose(invocation) : await planFrom(from)
    const file = option('out')
    if (file !== undefined) write(file, proposed.plan, flag('force'))
    const { problems } = proposed
    if (json) printJson({ ...proposed, ...(file === undefined ? {} : { file }) })
    else {
      if (file === undefined) print(plain(proposed.plan.trimEnd()))
      if (problems.length > 0) complain(plain(formatProblems(problems, file ?? 'plan.yaml')))
      remark(nextStep(file, problems.length))
    }
    return exitCode(problems.length > 0 ? 'error' : 'ok')
  },
}

async function propose({ words, json, location, given }: Invocation) {
  const goal = await readText(words, () =>
    usage('GOAL is missing', 'Usage: orc run propose GOAL…, or orc run propose --from FOLDER'),
  )
  const working = json ? undefined : showWorking('Planning')
  const client = await openClient(location)
  return await client.proposePlan({ goal, ...given('model') }).finally(() => working?.end())
}

function nextStep(file: string | undefined, problems: number): string {
  if (file === undefined) return 'Nothing runs yet. --out FILE saves the plan.'
  return problems > 0
    ? `Wrote ${file}. Fix the mistakes, then: orc run ${file} --dry-run`
    : `Wrote ${file}. Review it, then: orc run ${file} --dry-run`
}

function write(file: string, text: string, force: boolean): void {
  try {
    writeFileSync(file, text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new AppError('CONFLICT', `${file} already exists`, { hint: '--force replaces it.' })
  }
}

/** Derives a plan from the workspaces in a folder (S4.13): dependencies, files handed over, and instructions. */
async function planFrom(folder: string): Promise<{ plan: string; problems: readonly Problem[] }> {
  const { path, agents } = findWorkspaces(folder)
  const found: FoundWorkspace[] = []
  for (const { name, workspace } of agents) {
    const read = await readWorkspace(name, workspace)
    if (!read.ok) throw refused(read.error, 'An inbox may contain only regular files.')
    found.push(read.value)
  }
  const planned = planFromManifests(found)
  if (!planned.ok) {
    const problems = planned.error.map(({ path: location, message }) => ({
      ...{ code: 'invalid' as const, path: location, message: `${location}: ${message}` },
    }))
    throw refused(problems, planned.error[0]!.hint)
  }
  const plan = planText({ name: basename(path), ...planned.value })
  const read = readPlan(plan, {})
  return { plan, problems: read.ok ? [] : read.error }
}

async function readWorkspace(name: string, workspace: string): Promise<WorkspaceResult<FoundWorkspace>> {
  const read = await readInboxTexts(name, workspace)
  if (!read.ok) return read
  const parsed = parseInstructions(read.value.instructions ?? '')
  const instructions = parsed.ok ? asWritten(parsed.value) : undefined
  const definition = instructions === undefined ? {} : { definition: { instructions } }
  return { ok: true, value: { name, manifest: read.value.dependencies, ...definition } }
}

/** Leaves out the lines that every run writes again: the inputs, and the outputs expected of everyone. */
function asWritten({
  task,
  instructions,
}: ReadInstructions): NonNullable<FoundWorkspace['definition']>['instructions'] {
  const { objective, context, requirements, successCriteria, constraints } = instructions
  const expected = instructions.outputExpectations.filter((line) => !isExpectedAnyway(line))
  const lists = {
    requirements,
    success_criteria: successCriteria,
    constraints,
    output_expectations: expected,
  }
  const given = Object.entries(lists).filter(([, items]) => items.length > 0)
  if (objective === '' && context === '' && given.length === 0) return undefined
  return {
    objective: objective || task || 'Not specified',
    ...(context === '' ? {} : { context }),
    ...Object.fromEntries(given.map(([key, items]) => [key, [...items]])),
  }
}
