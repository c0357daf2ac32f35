import { formatBytes } from '../../base/bytes.ts'
import { formatDuration } from '../../base/durations.ts'
import { MAX_EDGES, mermaidOf } from '../plan/draw-graph.ts'
import { formatSpent } from '../run.ts'
import type { AgentReport, RunReport } from './report.ts'
import { OUTCOME_TEXT, shortened, visible } from './text.ts'

const SUMMARY_CHARACTERS = 8000
const OUTPUTS_SHOWN = 50
const AGENTS_DRAWN = 100

/** The consolidated report of a run as Markdown. What agents wrote stays inside its fence or its cell. */
export function markdownReport(report: RunReport): string {
  const { outcome, agents, criticalPath } = report
  const facts = [
    ['Run', `${inline(report.id)}${report.round > 1 ? `, round ${report.round}` : ''}`],
    ['Outcome', outcome === null ? 'it goes on' : `**${outcome}**. ${OUTCOME_TEXT[outcome]}`],
    ['Cancelled', report.cancelled === null ? '' : inline(report.cancelled)],
    ['Began', new Date(report.begunAt).toISOString()],
    ['Took', `${formatDuration(report.elapsedMs)}, ${formatDuration(report.workedMs)} of work`],
    ['Spent', formatSpent(report.spent)],
    ['Longest chain', criticalPath.length > 1 ? inline(shortened(criticalPath.join(' → '), 1000)) : ''],
  ]
  return [
    `# ${inline(report.name)}`,
    ...(report.goal === '' ? [] : ['', ...fenced(report.goal)]),
    '',
    ...facts.filter(([, text]) => text !== '').map(([name, text]) => `- ${name}: ${text}`),
    ...drawing(report),
    '',
    '| agent | state | after | work | attempts | spent |',
    '|---|---|---|---|---|---|',
    ...agents.map(row),
    ...agents.flatMap(section),
    '',
  ].join('\n')
}

/** For those who render Mermaid. What they cannot draw, or nobody could read, is left to the page. */
function drawing({ agents, graph }: RunReport): string[] {
  const edges = agents.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0)
  if (agents.length > AGENTS_DRAWN || edges > MAX_EDGES) return []
  const states = new Map(agents.map(({ name, state }) => [name, state]))
  return ['', '```mermaid', mermaidOf(graph, (name) => states.get(name)!).trimEnd(), '```']
}

function row({ name, state, cached, dependsOn, workedMs, attempts, spent }: AgentReport): string {
  const shown =
    dependsOn.slice(0, 5).join(', ') + (dependsOn.length > 5 ? `, ${dependsOn.length - 5} more` : '')
  const cells = [
    inline(name),
    cached ? `${state} before` : state,
    inline(shown),
    attempts.length === 0 ? '' : formatDuration(workedMs),
    attempts.length === 0 ? '' : String(attempts.length),
    formatSpent(spent),
  ]
  return `| ${cells.join(' | ')} |`
}

function section(agent: AgentReport): string[] {
  const { name, state, reason, objective, attempts, summary, outputs, unconsolidated } = agent
  const failed = attempts.filter(({ outcome }) => outcome === 'failed' || outcome === 'lost')
  const files = outputs
    .slice(0, OUTPUTS_SHOWN)
    .map(({ path, bytes }) => `- ${inline(path)} (${formatBytes(bytes)})`)
  const rest = outputs.length - files.length
  return [
    '',
    `## ${inline(name)}`,
    '',
    `${capital(state)}${reason === '' ? '.' : `: ${inline(reason)}`}`,
    ...(objective === '' ? [] : ['', ...fenced(shortened(objective, 2000))]),
    ...(summary === '' ? [] : ['', 'Summary:', '', ...fenced(shortened(summary, SUMMARY_CHARACTERS))]),
    ...(files.length === 0 ? [] : ['', 'Outputs:', '', ...files]),
    ...(rest > 0 ? [`- and ${rest} more`] : []),
    ...(unconsolidated === '' ? [] : ['', inline(capital(unconsolidated))]),
    ...(failed.length === 0 ? [] : ['', 'Attempts that failed:', '']),
    ...failed.map(({ number, why }) => `- ${number}: ${inline(why)}`),
  ]
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

/** Escapes text as one line of Markdown. */
function inline(text: string): string {
  const line = shortened(visible(text).replace(/\s+/g, ' ').trim(), 1000)
  return line.replace(/[\\`*_{}[\]<>#|~&!]/g, '\\$&')
}

/** A fence longer than any run of backticks inside. */
function fenced(text: string): string[] {
  const plain = visible(text).trimEnd()
  const longest = Math.max(2, ...[...plain.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return [`${fence}text`, plain, fence]
}
