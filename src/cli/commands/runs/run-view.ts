import { formatDuration } from '../../../base/durations.ts'
import { isSettled } from '../../../runs/run.ts'
import { clip, width as widthOf } from '../../output/layout.ts'
import { paint, plainLine } from '../../output/print.ts'
import { bar } from '../../output/progress.ts'
import { type NodeShown, OUTCOME_STYLE, type RunShown, STATE_STYLES } from './run-state.ts'

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
export function detailOf(node: NodeShown): string {
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
