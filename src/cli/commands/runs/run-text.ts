import { relative } from 'node:path'
import type { RunUpdate } from '../../../api/contract.ts'
import { formatDuration } from '../../../base/durations.ts'
import { formatSpent } from '../../../runs/run.ts'
import { clip, counted, table } from '../../output/layout.ts'
import { paint, plainLine } from '../../output/print.ts'
import { type NodeShown, OUTCOME_STYLE, type RunLine, type RunShown, STATE_STYLES } from './run-state.ts'
import { detailOf } from './run-view.ts'

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
