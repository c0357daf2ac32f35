import { rmdirSync } from 'node:fs'
import { basename } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { type DissolveWanted, dissolve } from '../../../workspaces/dissolve.ts'
import type { FinishedAgent } from '../../../workspaces/survey.ts'
import type { WorkspaceProblem } from '../../../workspaces/workspaces.ts'
import { counted } from '../../output/layout.ts'
import { complain, plain, plainLine, print, printJson, remark, warn } from '../../output/print.ts'
import { untilCancelled } from '../../signals.ts'
import type { Verb } from '../../verb.ts'
import { type FoundFolder, findOwningRun, findWorkspaces, inspect, type OwningRun, refused } from './find.ts'

export const verb: Verb = {
  name: 'workspace dissolve',
  summary: 'write a report of what the agents did, then remove their folders',
  details:
    'Prints the report and writes it to FOLDER.report.md. Refuses while an agent is running, while the run has not ended,\n' +
    'if a worktree has uncommitted files or commits on no branch, if something is mounted inside, and if the archive or\n' +
    'the kept outputs would be incomplete. Branches with commits of their own stay.',
  arguments: [{ name: 'FOLDER' }],
  options: [
    {
      name: 'archive',
      summary: 'save the report, inboxes, outboxes and attempts in FOLDER.tar.gz',
    },
    { name: 'keep-outputs', summary: 'save the outputs in FOLDER.outputs/' },
    {
      name: 'force',
      summary:
        'delete unsaved work as well; ignore a status.json that says running, and a run that has not ended',
    },
  ],
  examples: [
    'orc workspace dissolve researcher --archive',
    'orc workspace dissolve runs/run_1 --archive --keep-outputs',
  ],
  async run({ words, flag, json, location }) {
    const found = findWorkspaces(words[0]!)
    const run = await findOwningRun(location, found.path)
    if (run !== undefined) refuseWhileRunning(run, flag('force'))
    const wanted = whatIsWanted(found, await inspect(found, run), flag)
    const dissolved = await untilCancelled((signal) => dissolve({ ...wanted, signal }))
    if (!dissolved.ok) throw notDissolved(dissolved.error)
    const { report, leftOut, branchesKept } = dissolved.value
    removeIfEmpty(found)
    const kept = { archive: wanted.archive, outputs: wanted.keepOutputsIn }
    if (json) {
      const agents = found.agents.map(({ name }) => name)
      const unmerged = dissolved.value.agents.flatMap((agent) =>
        agent.unmerged.map((work) => ({ agent: agent.name, ...work })),
      )
      const left = { left_out: leftOut, branches_kept: branchesKept, unmerged }
      printJson({ report: wanted.reportFile, ...kept, agents, ...left })
      return 0
    }
    print(plain(report.trimEnd()))
    for (const message of withoutRepeats(leftOut)) warn(plainLine(message), 'left out')
    for (const branch of branchesKept)
      complain(`Kept the branch ${plainLine(branch)}, which has commits of its own.`)
    const files = [wanted.reportFile, ...Object.values(kept)].filter((file) => file !== undefined)
    remark(`Removed ${counted(found.agents.length, 'workspace')}; kept ${files.join(', ')}`)
    return 0
  },
}

/** The archive and the copied outputs leave out the same files: keeps only the message that names the agent. */
function withoutRepeats(leftOut: readonly WorkspaceProblem[]): string[] {
  const messages = leftOut.map(({ message }) => message)
  return messages.filter((message) => !messages.some((other) => other.endsWith(`/${message}`)))
}

function whatIsWanted(
  found: FoundFolder,
  agents: readonly FinishedAgent[],
  flag: (name: string) => boolean,
): DissolveWanted {
  const force = flag('force')
  return {
    title: basename(found.path),
    agents: force ? agents.map((agent) => ({ ...agent, isRunning: false })) : agents,
    allowLoss: force,
    reportFile: `${found.path}.report.md`,
    ...(flag('archive') ? { archive: `${found.path}.tar.gz` } : {}),
    ...(flag('keep-outputs') ? { keepOutputsIn: `${found.path}.outputs` } : {}),
  }
}

/** The state of the run counts more than the files. --force does not override a run or a process that is seen running. */
function refuseWhileRunning({ id, shown, isDriven, processes }: OwningRun, force: boolean): void {
  const isGathering = shown?.gathering === true
  const isOpen = shown?.state === 'running' && !isGathering
  if (isGathering && (isDriven || !force)) {
    throw new AppError('CONFLICT', `The outputs of ${id} are not in _outputs yet`, {
      hint: isDriven
        ? `The disk may be full. orc run cancel ${id} discards them.`
        : `orc run --resume ${id} collects them; --force discards them.`,
    })
  }
  if (isOpen && isDriven) {
    throw new AppError('CONFLICT', `${id} is still running`, {
      hint: `Wait until it ends, or cancel it: orc run cancel ${id}`,
    })
  }
  if (processes.size > 0) {
    const alive = [...processes].map(([agent, pids]) => `${agent} (process ${pids.join(', ')})`)
    throw new AppError('CONFLICT', `${id} is still running: ${alive.join('; ')}`, {
      hint: isOpen
        ? `Its service has ended. Resume the run with orc run --resume ${id}, then cancel it with orc run cancel ${id}.`
        : 'Wait until these processes end, or end them.',
    })
  }
  if (isOpen && !force) {
    throw new AppError('CONFLICT', `${id} has not ended: it continues when its service runs again`, {
      hint: `orc run --resume ${id} resumes it; --force removes its folders anyway.`,
    })
  }
}

function notDissolved(problems: readonly WorkspaceProblem[]): AppError {
  const has = (code: WorkspaceProblem['code']) => problems.some((problem) => problem.code === code)
  if (has('half_removed')) return refused(problems, 'Fix the cause, then delete what is left yourself.')
  if (has('invalid')) return refused(problems, 'Save the work first, or repeat with --force to delete it.')
  return refused(
    problems,
    `Nothing was removed. ${has('called_off') ? '' : 'Fix the cause and try again.'}`.trim(),
  )
}

/** The folder of a run also holds its report and outputs, which stay. */
function removeIfEmpty({ path, isOne }: FoundFolder): void {
  if (isOne) return
  try {
    rmdirSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error
  }
}
