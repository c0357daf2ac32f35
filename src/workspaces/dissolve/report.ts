import { formatBytes } from '../../base/bytes.ts'
import type { EarlierAttempt } from '../attempts.ts'
import type { Outbox } from '../outbox.ts'
import type { WorkspaceProblem } from '../problem.ts'
import { showName } from '../safe-fs/entry-name.ts'
import type { WorkspaceStatus } from '../status.ts'
import { nameCommits, nameFiles, type UnmergedWork } from '../worktree/unsaved-work.ts'

export interface AgentRecord {
  readonly name: string
  /** From its run, or else from its status.json; `unknown` if that cannot be read. */
  readonly state: string
  readonly status: WorkspaceStatus | undefined
  readonly outbox: Outbox | undefined
  readonly attempts: readonly EarlierAttempt[]
  /** The work in its worktree, if it has one. */
  readonly unmerged: readonly UnmergedWork[]
  /** Why a worktree, or the files in it, could not be checked. */
  readonly unseen: readonly WorkspaceProblem[]
  readonly problems: readonly WorkspaceProblem[]
}

const LONGEST_SUMMARY = 4000
const MOST_LISTED = 200

/** The consolidated report in Markdown: what each agent did, and a table of all outputs. */
export function formatReport(title: string, agents: readonly AgentRecord[]): string {
  return [
    `# ${title}`,
    '',
    '| agent | state | time | outputs | attempts |',
    '|---|---|---|---|---|',
    ...agents.map(
      ({ name, state, status, outbox, attempts }) =>
        `| ${name} | ${state} | ${timeOf(status)} | ${outbox?.outputs.length ?? 0} | ${attempts.length + 1} |`,
    ),
    '',
    '## Outputs',
    '',
    '| agent | file | size |',
    '|---|---|---|',
    ...agents.flatMap(outputRows),
    '',
    ...agents.flatMap(agentLines),
  ].join('\n')
}

function outputRows({ name, outbox }: AgentRecord): string[] {
  const outputs = outbox?.outputs ?? []
  const rows = outputs
    .slice(0, MOST_LISTED)
    .map(({ path, size }) => `| ${name} | ${cell(path)} | ${formatBytes(size)} |`)
  const more = outputs.length - rows.length
  return more > 0 ? [...rows, `| ${name} | and ${more} more | |`] : rows
}

function agentLines(agent: AgentRecord): string[] {
  const { name, status, outbox, attempts, unmerged, problems } = agent
  const lines = [`## ${name}`, '']
  const summary = outbox?.summary?.trim()
  if (summary) lines.push(...quote(summary), '')
  if (status?.error) lines.push(`Failed: ${oneLine(status.error.type, status.error.message)}`, '')
  if (outbox?.errorReport) {
    lines.push(`Error report: ${oneLine(outbox.errorReport.type, outbox.errorReport.description)}`, '')
  }
  for (const { number, status: before, errorReport } of attempts) {
    const type = errorReport?.type || before?.error?.type
    const why = errorReport?.description || before?.error?.message
    lines.push(`- attempt ${number}: ${before?.state ?? 'unknown'} ${oneLine(type, why)}`.trimEnd())
  }
  lines.push(...unmerged.flatMap(unmergedLines))
  const notes = [...problems, ...(outbox?.leftOut ?? [])]
  lines.push(...notes.map(({ message }) => `- note: ${message}`))
  return [...lines, '']
}

export function unmergedLines({
  branch,
  commits,
  looseCommits,
  uncommitted,
  ignored,
}: UnmergedWork): string[] {
  const lines: string[] = []
  if (branch !== undefined && commits > 0) {
    const name = showName(branch)
    lines.push(`- branch ${name}: ${commits} commits on no other branch; the branch stays`)
  }
  if (looseCommits.length > 0) {
    lines.push(`- ${looseCommits.length} commits on no branch: ${nameCommits(looseCommits)}`)
  }
  if (uncommitted.length > 0) {
    lines.push(`- ${uncommitted.length} files in no commit: ${nameFiles(uncommitted)}`)
  }
  if (ignored.length > 0) {
    lines.push(`- ${ignored.length} ignored files or folders in no commit: ${nameFiles(ignored)}`)
  }
  return lines
}

function timeOf(status: WorkspaceStatus | undefined): string {
  const [started, completed] = [Date.parse(status?.started ?? ''), Date.parse(status?.completed ?? '')]
  return completed >= started ? `${((completed - started) / 1000).toFixed(0)} s` : ''
}

/** Quoted, so that no line of an agent's text becomes a heading of the report. */
function quote(text: string): string[] {
  const clipped = text.length <= LONGEST_SUMMARY ? text : `${text.slice(0, LONGEST_SUMMARY)}…`
  return clipped.split(/\r\n?|\n/).map((line) => `> ${line}`.trimEnd())
}

function oneLine(...parts: (string | undefined)[]): string {
  const text = parts.filter((part) => part !== undefined && part !== '').join(': ')
  return text.replace(/\s+/g, ' ').slice(0, 500)
}

const cell = (path: string) => `\`${path.replaceAll('|', '\\|').replaceAll('`', "'")}\``
