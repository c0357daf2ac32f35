import { formatBytes } from '../../../base/bytes.ts'
import { findShortcomings } from '../../../workspaces/outbox.ts'
import { type AgentRecord, surveyAgents } from '../../../workspaces/survey.ts'
import type { WorkspaceProblem } from '../../../workspaces/workspaces.ts'
import { bar, counted, table } from '../../output/layout.ts'
import { paint, plain, plainLine, print, printJson } from '../../output/print.ts'
import { indent } from '../../output/receipt-text.ts'
import type { Verb } from '../../verb.ts'
import { findOwningRun, findWorkspaces, inspect } from './find.ts'

export const verb: Verb = {
  name: 'workspace show',
  summary: 'show the progress and contents of a workspace, or of all in a folder',
  arguments: [{ name: 'FOLDER', optional: true }],
  examples: ['orc workspace show', 'orc workspace show researcher', 'orc workspace show runs/run_1 --json'],
  async run({ words, json, location }) {
    const found = findWorkspaces(words[0] ?? '.')
    const agents = await inspect(found, await findOwningRun(location, found.path))
    const records = await surveyAgents(agents)
    if (json) {
      for (const [index, record] of records.entries()) {
        printJson(workspaceFacts(record, found.agents[index]!.workspace))
      }
    } else if (found.isOne) print(workspaceText(records[0]!))
    else print([workspacesText(records), ...records.flatMap(noteLines)].join('\n'))
    return 0
  },
}

function workspacesText(agents: readonly AgentRecord[]): string {
  return table(agents.map((agent) => [agent.name, agent.state, madeText(agent), progressText(agent)]))
}

function workspaceText(agent: AgentRecord): string {
  const { name, status, outbox, attempts } = agent
  const lines = [`${paint('bold', name)}  ${agent.state}  ${progressText(agent)}`.trimEnd()]
  if (status?.error !== undefined) {
    const { type, message } = status.error
    lines.push(`  failed: ${plainLine([type, message].filter(Boolean).join(': '))}`)
  }
  const outputs = outbox?.outputs ?? []
  if (outputs.length > 0) {
    lines.push(
      '  outbox',
      table(
        outputs.slice(0, MAX_LISTED).map(({ path, size }) => [plainLine(path), formatBytes(size)]),
        '    ',
      ),
    )
  }
  if (outputs.length > MAX_LISTED) lines.push(`    and ${outputs.length - MAX_LISTED} more`)
  if (outbox?.summary?.trim()) lines.push('  summary', indent(plain(outbox.summary.trim())))
  for (const { number, status: before, errorReport } of attempts) {
    const why = errorReport?.description || before?.error?.message || before?.state || ''
    lines.push(`  attempt ${number}: ${plainLine(why)}`)
  }
  return [...lines, ...noteLines(agent)].join('\n')
}

const MAX_LISTED = 100

function madeText({ outbox }: AgentRecord): string {
  const outputs = outbox?.outputs ?? []
  if (outputs.length === 0) return 'no outputs'
  const size = outputs.reduce((sum, output) => sum + output.size, 0)
  return `${counted(outputs.length, 'output')}, ${formatBytes(size)}`
}

function progressText({ state, status }: AgentRecord): string {
  if (state !== 'running' || status?.progress === undefined) return ''
  const { current_step = '', steps_completed = 0, total_steps = 0 } = status.progress
  return [total_steps > 0 ? bar(steps_completed, total_steps) : '', plainLine(current_step)]
    .filter((part) => part !== '')
    .join(' ')
}

/** Missing files, files left out, and files that could not be read. */
function noteLines(agent: AgentRecord): string[] {
  return problemsOf(agent).map(
    ({ message }) => `  ${paint('yellow', 'note:')} ${agent.name}/${plainLine(message)}`,
  )
}

function problemsOf({ state, outbox, problems }: AgentRecord): readonly WorkspaceProblem[] {
  const missing = state === 'completed' && outbox !== undefined ? findShortcomings(outbox) : []
  return [...problems, ...missing, ...(outbox?.leftOut ?? [])]
}

/** For --json. */
function workspaceFacts(agent: AgentRecord, workspace: string) {
  const { name, state, status, outbox, attempts, unmerged } = agent
  return {
    name,
    workspace,
    state,
    ...(status?.progress === undefined ? {} : { progress: status.progress }),
    ...(status?.error === undefined ? {} : { error: status.error }),
    outputs: outbox?.outputs ?? [],
    ...(outbox?.summary === undefined ? {} : { summary: outbox.summary }),
    attempts: attempts.length + 1,
    ...(unmerged.length === 0 ? {} : { unmerged }),
    problems: problemsOf(agent),
  }
}
