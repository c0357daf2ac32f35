import { relative } from 'node:path'
import type { AnswerOf, RunUpdate } from '../../../api/contract.ts'
import { formatDuration } from '../../../base/durations.ts'
import { formatSpent, isSettled, type NodeState, type RunOutcome } from '../../../runs/run.ts'
import { bar, clip, counted, table, width as widthOf } from '../../output/layout.ts'
import { paint, plainLine, type Style } from '../../output/print.ts'

const LONGEST = 200

/** Formats an event as one line for a pipe. Undefined if it says nothing new. */
export function eventLine(event: RunUpdate): string | undefined {
  const text = wordsOf(event)
  return text === undefined ? undefined : `${event.at.slice(11, 19)} ${text}`
}

function wordsOf(event: RunUpdate): string | undefined {
  switch (event.type) {
    case 'node': {
      const { node, state, attempt, cached, reason = '' } = event
      const again = attempt > 1 && state === 'running' ? `, attempt ${attempt}` : ''
      // The note that follows gives the reason for a retry.
      const why = reason === '' || state === 'retrying' ? '' : `: ${brief(reason)}`
      return `${node} ${cached ? 'completed as before' : state}${again}${why}`
    }
    case 'progress': {
      const { node, step, done, total } = event
      if (step === '' && total === 0) return undefined
      const share = total > 0 ? ` ${done}/${total}` : ''
      return `${node} progress${share}${step === '' ? '' : `: ${brief(step)}`}`
    }
    case 'asked':
      return event.awaits ? `${event.node} asks a person: orc inbox shows ${event.request_id}` : undefined
    case 'begun':
      return brief(event.text)
    case 'note':
      return brief(event.text.replace(new RegExp(`^${event.run_id}:? (?!\\()`), ''))
    case 'end':
      return undefined
  }
}

function brief(text: string): string {
  return clip(plainLine(text), LONGEST)
}

export function runSummary(run: RunShown): string {
  const rows = run.nodes.map((node) => [
    `${STATE_STYLES[node.state].mark} ${node.name}`,
    node.cached ? 'as before' : node.state,
    node.elapsed_ms === undefined || node.cached ? '' : formatDuration(node.elapsed_ms),
    [madeText(node), costText(node)].filter(Boolean).join(', '),
    clip(node.state === 'completed' ? '' : detailOf(node), LONGEST),
  ])
  const agents = table(rows, '  ', (cell, column) => (column === 4 ? paint('dim', cell) : cell))
  return [runTitle(run), ...troubleLines(run), agents].join('\n')
}

/** Problems to show above everything else. */
export function troubleLines({ trouble, report_fault }: RunShown): string[] {
  const lines = [
    ...(trouble === undefined ? [] : [trouble]),
    ...(report_fault === undefined ? [] : [`could not write the report: ${report_fault}`]),
  ]
  return lines.map((line) => `  ${paint('red', clip(plainLine(line), LONGEST))}`)
}

export function runTitle({ id, name, state, gathering, nodes, elapsed_ms }: RunShown): string {
  const done = nodes.filter((node) => node.state === 'completed').length
  const doing = gathering ? 'is gathering its outputs' : 'is running'
  const how = paint(OUTCOME_STYLE[state], `(${id}) ${state === 'running' ? doing : state}`)
  const far = `${done} of ${counted(nodes.length, 'agent')} done, ${formatDuration(elapsed_ms)}`
  return `${paint('bold', plainLine(name))} ${how}: ${far}`
}

/** Paths of the workspaces, the outputs and the report. */
export function pathLines(run: RunShown, files: { outputs?: string; reports: readonly string[] }): string {
  const rows = [
    ['workspaces', shown(run.place)],
    ...(files.outputs === undefined ? [] : [['outputs', shown(files.outputs)]]),
    ...(files.reports.length === 0 ? [] : [['report', files.reports.map(shown).join(', ')]]),
  ]
  return table(rows, '  ')
}

/** Relative to the working folder if that is shorter. */
function shown(path: string): string {
  const near = relative(process.cwd(), path)
  return plainLine(near === '' ? '.' : near.startsWith('../../') ? path : near)
}

function madeText({ outputs }: NodeShown): string {
  return outputs.length === 0 ? '' : counted(outputs.length, 'output')
}

function costText({ spent }: NodeShown): string {
  if (spent === undefined) return ''
  const { input_tokens, output_tokens, cost } = spent
  return formatSpent({ inputTokens: input_tokens, outputTokens: output_tokens, cost: cost ?? null })
}

export function runsText(runs: readonly RunLine[]): string {
  return table(
    runs.map((run) => [
      run.id,
      run.state,
      `${run.counts.completed ?? 0} of ${run.agents}`,
      formatDuration(run.elapsed_ms),
      run.created_at.slice(0, 19).replace('T', ' '),
      clip(plainLine(run.name), 60),
      ...(run.trouble === undefined ? [] : [clip(plainLine(run.trouble), 60)]),
    ]),
    '',
    (cell, column) => (column === 1 ? paint(OUTCOME_STYLE[cell as RunLine['state']], cell) : cell),
  )
}

export type RunShown = AnswerOf<'run'>
export type NodeShown = RunShown['nodes'][number]
type RunLine = AnswerOf<'runs'>['runs'][number]

/** Mark and color of each state, and its rank when not all agents fit on the screen. */
const STATE_STYLES: Record<NodeState, { mark: string; style: Style | undefined; rank: number }> = {
  asking: { mark: '?', style: 'magenta', rank: 0 },
  running: { mark: '▸', style: 'cyan', rank: 1 },
  validating: { mark: '▸', style: 'cyan', rank: 1 },
  fixing: { mark: '▸', style: 'yellow', rank: 1 },
  preparing: { mark: '▸', style: undefined, rank: 1 },
  retrying: { mark: '↻', style: 'yellow', rank: 2 },
  failed: { mark: '✗', style: 'red', rank: 3 },
  ready: { mark: '·', style: undefined, rank: 4 },
  waiting: { mark: '·', style: 'dim', rank: 5 },
  skipped: { mark: '–', style: 'yellow', rank: 6 },
  cancelled: { mark: '–', style: 'yellow', rank: 6 },
  completed: { mark: '✓', style: 'green', rank: 7 },
}

const OUTCOME_STYLE = {
  completed: 'green',
  partial: 'yellow',
  failed: 'red',
  cancelled: 'yellow',
  running: 'cyan',
} as const satisfies Record<RunLine['state'], Style>

/** Exit codes of `orc run`. */
export const RUN_EXIT_CODE: Record<RunOutcome, number> = {
  completed: 0,
  failed: 9,
  partial: 10,
  cancelled: 11,
}

interface Screen {
  /** Columns and rows of the terminal. */
  width: number
  height: number
  /** Time since the run was read, added to the clocks of active agents. */
  sinceMs: number
}

/** Narrower screens show no times. */
const NARROW = 60
const LONGEST_NAME = 28
const SHORTEST_NAME = 12
const STATE_WIDTH = 10
const TIME_WIDTH = 10
const BAR_WIDTH = 10

/** A line per agent, clipped to the screen; a last line counts the agents that don't fit. */
export function runView(run: RunShown, screen: Screen): string {
  const head = headLine(run, screen)
  const room = Math.max(1, screen.height - (run.trouble === undefined ? 2 : 3))
  const nodes =
    run.nodes.length <= room ? run.nodes : run.nodes.toSorted(byRank).slice(0, Math.max(1, room - 1))
  // On a narrow screen, shorten names to leave room for what the agents do.
  const most = Math.min(LONGEST_NAME, Math.max(SHORTEST_NAME, Math.floor(screen.width / 4)))
  const nameWidth = Math.min(most, Math.max(...nodes.map(({ name }) => name.length)))
  const trouble = run.trouble === undefined ? [] : [paint('red', clip(plainLine(run.trouble), screen.width))]
  const lines = [head, ...trouble, ...nodes.map((node) => nodeLine(node, nameWidth, screen))]
  if (nodes.length < run.nodes.length) lines.push(restLine(run, nodes, screen))
  return lines.join('\n')
}

function byRank(one: NodeShown, other: NodeShown): number {
  return STATE_STYLES[one.state].rank - STATE_STYLES[other.state].rank
}

function headLine(run: RunShown, { width, sinceMs }: Screen): string {
  const { counts, agents, state, gathering } = run
  const done = counts.completed ?? 0
  const isAtWork = state === 'running' && !gathering
  const elapsed = run.elapsed_ms + (isAtWork ? sinceMs : 0)
  const others = (['running', 'asking', 'failed', 'skipped'] as const).flatMap((one) =>
    counts[one] === undefined || counts[one] === 0 ? [] : [`${counts[one]} ${one}`],
  )
  const facts = [
    `${done} of ${agents} done`,
    ...others,
    isAtWork ? runningTime(elapsed) : formatDuration(elapsed),
    ...(gathering ? ['gathering outputs'] : []),
  ].join(', ')
  const name = clip(plainLine(run.name), Math.max(8, width - widthOf(`${run.id}    ${facts}`)))
  const line = clip(`${name}  ${run.id}  ${facts}`, width)
  return line.startsWith(name)
    ? `${paint('bold', name)}${paint(OUTCOME_STYLE[state], line.slice(name.length))}`
    : line
}

function nodeLine(node: NodeShown, nameWidth: number, { width, sinceMs }: Screen): string {
  const { mark, style } = STATE_STYLES[node.state]
  const state = node.cached ? 'as before' : node.state
  const time = width < NARROW ? '' : `${timeOf(node, sinceMs).padStart(TIME_WIDTH)}  `
  const head = `${mark} ${padded(node.name, nameWidth)}  ${padded(state, STATE_WIDTH)}  `
  const shown = clip(`${head}${time}${detailOf(node)}`.trimEnd(), width)
  if (style === undefined) return shown
  // Color only the mark, the name and the state; the screen may be narrower than they are.
  return `${paint(style, shown.slice(0, head.length))}${shown.slice(head.length)}`
}

function timeOf({ state, started_at, elapsed_ms }: NodeShown, sinceMs: number): string {
  if (started_at === undefined || elapsed_ms === undefined) return ''
  return isSettled(state) ? formatDuration(elapsed_ms) : runningTime(elapsed_ms + sinceMs)
}

/** Progress, what the agent waits for, or the reason of its state. */
function detailOf(node: NodeShown): string {
  const { state, step = '', progress, tries, max_tries, waits_for, reason = '' } = node
  const again = tries > 1 && !isSettled(state) ? `attempt ${tries} of ${max_tries}` : ''
  const parts = {
    ready: ['for a free slot'],
    waiting: [`for ${listed(waits_for)}`],
    preparing: ['copying inputs'],
    running: [
      again,
      waits_for.length === 0 ? '' : `waits for ${listed(waits_for)}`,
      progress && progress.total > 0 ? bar(progress.done, progress.total, BAR_WIDTH) : '',
      step,
    ],
    validating: [again, 'checking its outputs'],
    retrying: [again, reason],
    fixing: [listed(waits_for) || reason],
    asking: [node.request_id === undefined ? '' : `orc inbox shows ${node.request_id}`, reason],
    completed: [(node.summary ?? '').trim().split('\n', 1)[0]!.replace(/^#+ /, '')],
    failed: [reason],
    skipped: [reason],
    cancelled: [reason],
  }[state]
  return plainLine(parts.filter((part) => part !== '').join('  '))
}

const NAMED = 3

function listed(names: readonly string[]): string {
  const rest = names.length - NAMED
  return rest > 0 ? `${names.slice(0, NAMED).join(', ')} and ${rest} more` : names.join(', ')
}

function restLine(run: RunShown, shown: readonly NodeShown[], { width }: Screen): string {
  const isShown = new Set(shown.map(({ name }) => name))
  const states = Map.groupBy(
    run.nodes.filter(({ name }) => !isShown.has(name)),
    ({ state }) => state,
  )
  const counts = [...states].map(([state, nodes]) => `${nodes.length} ${state}`).join(', ')
  return paint('dim', clip(`… and ${run.nodes.length - shown.length} more: ${counts}`, width))
}

/** Whole seconds for running clocks, because fractions would only flicker. */
function runningTime(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  return seconds < 10 ? `${seconds} s` : formatDuration(seconds * 1000)
}

function padded(text: string, width: number): string {
  const short = clip(text, width)
  return short + ' '.repeat(width - widthOf(short))
}
