/** Reads what agents did from the files of their workspaces, for `orc workspace show` and the report of `orc workspace dissolve`. */
import { formatBytes } from '../base/bytes.ts'
import { STATUS_BYTES, TEXT_BYTES } from './limits.ts'
import {
  type AgentFolder,
  collectOutbox,
  ERROR_REPORT,
  type ErrorReport,
  type Outbox,
  parseErrorReport,
} from './outbox.ts'
import { attempt, type WorkspaceProblem, type WorkspaceResult } from './problem.ts'
import {
  type Directory,
  listNames,
  lookAt,
  type Opened,
  openDirectory,
  openFolder,
  openPart,
  showName,
} from './safe-fs/directory.ts'
import { readSmall } from './safe-fs/files.ts'
import { isFinal, parseStatus, readStatus, STATUS_FILE, type WorkspaceStatus } from './status.ts'
import { ATTEMPTS, WHY } from './workspaces.ts'
import type { FoundWorktree } from './worktree/git.ts'
import { findUnmerged, nameCommits, nameFiles, type UnmergedWork } from './worktree/unsaved-work.ts'

/** A workspace to survey. */
export interface FinishedAgent extends AgentFolder {
  readonly worktree?: FoundWorktree | undefined
  /** Worktrees that could not be checked, each with the reason. */
  readonly unseenWorktrees?: readonly WorkspaceProblem[]
  /** State from a source that knows more than status.json. */
  readonly state?: string
  readonly isRunning: boolean
}

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

/** Reads what each agent did, without changing anything: for the report, and to find unsaved work. */
export async function surveyAgents(
  agents: readonly FinishedAgent[],
  signal?: AbortSignal,
): Promise<AgentRecord[]> {
  return Promise.all(
    agents.map(async ({ name, workspace, worktree, unseenWorktrees = [], state }) => {
      const status = readStatus(workspace)
      const outbox = await collectOutbox(workspace, { signal })
      const attempts = await readAttempts(workspace)
      const unmerged = worktree === undefined ? undefined : await findUnmerged(worktree)
      const unseen = [
        ...unseenWorktrees,
        ...(unmerged?.ok === false ? unmerged.error : []),
        ...(unmerged?.ok && unmerged.value.unseen !== undefined ? [unmerged.value.unseen] : []),
      ]
      const problems = [
        ...(status.ok ? [] : [status.error]),
        ...[outbox, attempts].flatMap((outcome) => (outcome.ok ? [] : outcome.error)),
        ...(outbox.ok ? [outbox.value.summaryProblem ?? []].flat() : []),
        ...[outbox.ok ? outbox.value : undefined, ...(attempts.ok ? attempts.value : [])].flatMap(
          (reported) => reported?.errorReportProblem ?? [],
        ),
        ...unseen,
      ]
      return {
        name,
        state: state ?? (status.ok ? status.value.status.state : 'unknown'),
        status: status.ok ? status.value.status : undefined,
        outbox: outbox.ok ? outbox.value : undefined,
        attempts: attempts.ok ? attempts.value : [],
        unmerged: unmerged?.ok ? [unmerged.value] : [],
        unseen,
        problems,
      }
    }),
  )
}

interface EarlierAttempt {
  readonly number: number
  /** From status.json, with the run's own reason if the file does not say how or why the attempt ended. */
  readonly status: WorkspaceStatus | undefined
  readonly errorReport: ErrorReport | undefined
  /** Why the file exists but cannot be read. */
  readonly errorReportProblem?: WorkspaceProblem
}

const MAX_ATTEMPTS = 1000

/** The stored attempts, oldest first. */
export function readAttempts(workspace: string): Promise<WorkspaceResult<readonly EarlierAttempt[]>> {
  return attempt(ATTEMPTS, () => {
    using root = openDirectory(workspace, { shown: '' })
    if (lookAt(root, ATTEMPTS) === undefined) return []
    using folder = openPart(workspace, ATTEMPTS)
    const numbers = listNames(folder, MAX_ATTEMPTS).map(String).filter(isNumber).map(Number)
    return numbers.sort((one, other) => one - other).map((number) => readAttempt(folder, number))
  })
}

const isNumber = (name: string) => /^[1-9]\d{0,8}$/.test(name)

function readAttempt(attempts: Directory, number: number): EarlierAttempt {
  const nothing = { number, status: undefined, errorReport: undefined }
  const folder = openFolder(attempts, String(number))
  if (!folder.ok) return nothing
  const outbox = openFolder(folder.value, 'outbox')
  try {
    const status = readSmall(folder.value, STATUS_FILE, STATUS_BYTES)
    const parsed = status.ok ? parseStatus(status.value.toString()) : undefined
    const report = outbox.ok ? readSmall(outbox.value, ERROR_REPORT, TEXT_BYTES) : undefined
    return {
      number,
      status: withWhy(parsed?.ok ? parsed.value.status : undefined, readSmall(folder.value, WHY, TEXT_BYTES)),
      errorReport: report?.ok ? parseErrorReport(report.value.toString()) : undefined,
      ...(report?.ok === false && report.error.code !== 'missing'
        ? { errorReportProblem: report.error }
        : {}),
    }
  } finally {
    if (outbox.ok) outbox.value.close()
    folder.value.close()
  }
}

/** A plain command never writes status.json, and a killed one no longer does: why.md then says how it ended. */
function withWhy(status: WorkspaceStatus | undefined, why: Opened<Buffer>): WorkspaceStatus | undefined {
  if (!why.ok) return status
  const state = status !== undefined && isFinal(status.state) ? status.state : 'failed'
  return { ...status, state, error: status?.error ?? { message: why.value.toString().trim() } }
}

const LONGEST_SUMMARY = 4000
const MAX_LISTED = 200

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
    .slice(0, MAX_LISTED)
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
    lines.push(`- branch ${name} stays; commits on no other branch: ${commits}`)
  }
  if (looseCommits.length > 0) {
    lines.push(`- commits on no branch: ${nameCommits(looseCommits)}`)
  }
  if (uncommitted.length > 0) {
    lines.push(`- files in no commit: ${nameFiles(uncommitted)}`)
  }
  if (ignored.length > 0) {
    lines.push(`- ignored files or folders in no commit: ${nameFiles(ignored)}`)
  }
  return lines
}

function timeOf(status: WorkspaceStatus | undefined): string {
  const [started, completed] = [Date.parse(status?.started ?? ''), Date.parse(status?.completed ?? '')]
  return completed >= started ? `${((completed - started) / 1000).toFixed(0)} s` : ''
}

/** Quotes the text, so no line of it becomes a heading of the report. */
function quote(text: string): string[] {
  const clipped = text.length <= LONGEST_SUMMARY ? text : `${text.slice(0, LONGEST_SUMMARY)}…`
  return clipped.split(/\r\n?|\n/).map((line) => `> ${line}`.trimEnd())
}

function oneLine(...parts: (string | undefined)[]): string {
  const text = parts.filter((part) => part !== undefined && part !== '').join(': ')
  return text.replace(/\s+/g, ' ').slice(0, 500)
}

const cell = (path: string) => `\`${path.replaceAll('|', '\\|').replaceAll('`', "'")}\``
