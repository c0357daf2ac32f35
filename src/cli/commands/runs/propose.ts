import { writeFileSync } from 'node:fs'
import { AppError } from '../../../base/errors.ts'
import { formatProblems } from '../../../yaml/problem.ts'
import { openClient } from '../../connection/client.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { usage } from '../../errors.ts'
import { exitCode } from '../../exit-code.ts'
import { complain, paint, plain, print, printJson } from '../../output/print.ts'
import { showWorking } from '../../output/progress.ts'
import { isInputGiven, readInput } from '../../standard-input.ts'
import type { Verb } from '../../verb.ts'
import { planFrom } from './plan-from-workspaces.ts'

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
  async run({ words, option, flag, json, location }) {
    const from = option('from')
    const model = option('model')
    if (from !== undefined && (words.length > 0 || model !== undefined)) {
      throw usage('--from uses no model', 'Drop GOAL and --model, or drop --from.')
    }
    const proposed = from === undefined ? await propose(words, model, json, location) : await planFrom(from)
    const file = option('out')
    if (file !== undefined) write(file, proposed.plan, flag('force'))
    const { problems } = proposed
    if (json) printJson({ ...proposed, ...(file === undefined ? {} : { file }) })
    else {
      if (file === undefined) print(plain(proposed.plan.trimEnd()))
      if (problems.length > 0) complain(plain(formatProblems(problems, file ?? 'plan.yaml')))
      complain(paint('dim', nextStep(file, problems.length), 'err'))
    }
    return exitCode(problems.length > 0 ? 'error' : 'ok')
  },
}

async function propose(
  words: readonly string[],
  model: string | undefined,
  json: boolean,
  location: TeamLocation,
) {
  const goal = await readGoal(words)
  const working = json ? undefined : showWorking('Planning')
  const client = await openClient(location)
  return await client
    .proposePlan({ goal, ...(model === undefined ? {} : { model }) })
    .finally(() => working?.end())
}

async function readGoal(words: readonly string[]): Promise<string> {
  if (words.length > 0 && !(words.length === 1 && words[0] === '-')) return words.join(' ')
  if (words.length === 0 && !isInputGiven())
    throw usage('GOAL is missing', 'Usage: orc run propose GOAL…, or orc run propose --from FOLDER')
  return await readInput()
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
