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
    'The plan goes to standard output, or to the file named with --out. It is checked like any plan: what would keep it\n' +
    'from being run is told, and the exit code is then 1. The model is runs.planner of orc.yaml, unless --model says.\n' +
    'With --from FOLDER no model and no service is asked: the plan is what inbox/dependencies.json and inbox/instructions.md of\n' +
    'the workspaces in FOLDER amount to. Who does the work, and files from elsewhere, are not written there: add them.',
  arguments: [{ name: 'GOAL', optional: true, rest: true }],
  options: [
    { name: 'out', short: 'o', value: 'FILE', summary: 'write it to this file' },
    { name: 'force', summary: 'replace a file that is there' },
    {
      name: 'from',
      value: 'FOLDER',
      summary: 'read it from the workspaces in this folder, such as runs/run_1',
    },
    { name: 'model', value: 'MODEL', summary: 'a name from "models" of orc.yaml' },
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
      throw usage('--from asks no model', 'Leave out GOAL and --model, or --from.')
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
  if (file === undefined) return 'Nothing runs yet. With --out FILE it is written down.'
  return problems > 0
    ? `Wrote ${file}. Mend it, then: orc run ${file} --dry-run`
    : `Wrote ${file}. Look it through, then: orc run ${file} --dry-run`
}

function write(file: string, text: string, force: boolean): void {
  try {
    writeFileSync(file, text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new AppError('CONFLICT', `${file}: it already exists`, { hint: '--force replaces it.' })
  }
}
