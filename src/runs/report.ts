import { formatBytes } from '../base/bytes.ts'
import { formatDuration } from '../base/durations.ts'
import { MAX_EDGES, mermaidOf } from './plan/draw-graph.ts'
import { criticalPath, type Graph, stepsOf } from './plan.ts'
import {
  formatSpent,
  type NodeAttempt,
  type NodeState,
  type OutputFile,
  type Run,
  type RunCost,
  type RunOutcome,
  sumCosts,
} from './run.ts'

interface AgentReport {
  readonly name: string
  readonly state: NodeState
  readonly cached: boolean
  readonly reason: string
  readonly objective: string
  readonly dependsOn: readonly string[]
  /** Start of the first attempt and end of the last, in milliseconds after the run began. Null: no attempt. */
  readonly from: number | null
  readonly to: number | null
  /** Duration of the attempts of this round with their validation. */
  readonly workedMs: number
  /** In this round. */
  readonly attempts: readonly NodeAttempt[]
  /** In all rounds. */
  readonly attemptsInAll: number
  readonly spent: RunCost
  readonly summary: string
  readonly outputs: readonly OutputFile[]
  /** Why `_outputs` differs from the validated outputs; empty if it does not. */
  readonly unconsolidated: string
}

/** The result of a run, for the reports and for programs. */
export interface RunReport {
  readonly id: string
  readonly name: string
  readonly goal: string
  readonly round: number
  /** Null: still running. */
  readonly outcome: RunOutcome | null
  readonly cancelled: string | null
  readonly begunAt: number
  readonly elapsedMs: number
  readonly workedMs: number
  readonly spent: RunCost
  readonly agents: readonly AgentReport[]
  /** The chain that took longest, with the pauses between attempts. */
  readonly criticalPath: readonly string[]
  readonly graph: Graph
}

export function reportOf(run: Run, now: number): RunReport {
  const { head, graph } = run
  const begunAt = head.begunAt ?? head.createdAt
  const agents = graph.plan.agents.map(({ name }) => agentReport(run, name, begunAt, now))
  // Pauses between attempts delay dependents as well.
  const took = new Map(agents.map(({ name, from, to }) => [name, (to ?? 0) - (from ?? 0)]))
  return {
    id: head.id,
    name: graph.plan.name,
    goal: graph.plan.goal,
    round: head.round,
    outcome: head.outcome,
    cancelled: head.cancelled === null ? null : `${head.cancelled.by}: ${head.cancelled.reason}`,
    begunAt,
    elapsedMs: (head.endedAt ?? now) - begunAt,
    workedMs: agents.reduce((sum, { workedMs }) => sum + workedMs, 0),
    spent: sumCosts(agents.map(({ spent }) => spent)),
    agents,
    criticalPath: criticalPath(graph, (name) => took.get(name)!),
    graph,
  }
}

function agentReport({ head, nodes, graph }: Run, name: string, begunAt: number, now: number): AgentReport {
  const { state, cached, reason, attempts, result } = nodes.get(name)!
  const here = attempts.filter(({ orderedAt }) => orderedAt >= begunAt)
  const ends = here.map(({ endedAt }) => endedAt ?? now)
  return {
    name,
    state,
    cached,
    reason,
    objective: graph.agents.get(name)!.instructions.objective,
    dependsOn: graph.needs.get(name)!.map(({ from }) => from),
    from: here.length === 0 ? null : here[0]!.orderedAt - begunAt,
    to: here.length === 0 ? null : ends.at(-1)! - begunAt,
    workedMs: here.reduce((sum, { orderedAt }, index) => sum + ends[index]! - orderedAt, 0),
    attempts: here,
    attemptsInAll: attempts.length,
    spent: sumCosts(here.flatMap(({ spent }) => (spent === null ? [] : [spent]))),
    summary: result?.summary ?? '',
    outputs: result?.outputs ?? [],
    unconsolidated: unconsolidatedIn(head, name),
  }
}

/** Own properties only: an agent may be called `constructor`. */
function unconsolidatedIn({ unconsolidated = {} }: Run['head'], name: string): string {
  return Object.hasOwn(unconsolidated, name) ? unconsolidated[name]! : ''
}

const SUMMARY_CHARACTERS = 8000
const OUTPUTS_SHOWN = 50
const AGENTS_DRAWN = 100

/** Writes the report as Markdown. Text of agents stays inside its fence or cell. */
export function markdownReport(report: RunReport): string {
  const { outcome, agents } = report
  const shownOutcome = outcome === null ? 'still running' : `**${outcome}**. ${OUTCOME_TEXT[outcome]}`
  return [
    `# ${inline(report.name)}`,
    ...(report.goal === '' ? [] : ['', ...fenced(report.goal)]),
    '',
    `- Outcome: ${shownOutcome}`,
    ...factsOf(report).map(([name, text]) => `- ${name}: ${inline(text)}`),
    ...drawing(report),
    '',
    '| agent | state | after | work | attempts | spent |',
    '|---|---|---|---|---|---|',
    ...agents.map(row),
    ...agents.flatMap(section),
    '',
  ].join('\n')
}

/** Draws the graph for viewers that render Mermaid. Only the HTML page shows graphs that are too large for that. */
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
    `${capitalized(state)}${reason === '' ? '.' : `: ${inline(reason)}`}`,
    ...(objective === '' ? [] : ['', ...fenced(shortened(objective, 2000))]),
    ...(summary === '' ? [] : ['', 'Summary:', '', ...fenced(shortened(summary, SUMMARY_CHARACTERS))]),
    ...(files.length === 0 ? [] : ['', 'Outputs:', '', ...files]),
    ...(rest > 0 ? [`- and ${rest} more`] : []),
    ...(unconsolidated === '' ? [] : ['', inline(capitalized(unconsolidated))]),
    ...(failed.length === 0 ? [] : ['', 'Attempts that failed:', '']),
    ...failed.map(({ number, why }) => `- ${number}: ${inline(why)}`),
  ]
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Escapes text as one line of Markdown. */
function inline(text: string): string {
  const line = shortened(visible(text).replace(/\s+/g, ' ').trim(), 1000)
  return line.replace(/[\\`*_{}[\]<>#|~&!]/g, '\\$&')
}

/** Uses a fence longer than any run of backticks in the text. */
function fenced(text: string): string[] {
  const plain = visible(text).trimEnd()
  const longest = Math.max(2, ...[...plain.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return [`${fence}text`, plain, fence]
}

const OUTPUTS_ON_PAGE = 200

/** Writes the report as one page without scripts, fonts or network access, which its policy also forbids. */
export function htmlReport(report: RunReport): string {
  const { outcome, agents, graph } = report
  const states = new Map(agents.map(({ name, state }) => [name, state]))
  const title = escapeHtml(report.name)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${title}</h1>
<p class="outcome ${outcome ?? 'running'}">${outcome === null ? 'Still running.' : `<strong>${outcome}</strong> ${OUTCOME_TEXT[outcome]}`}</p>
${report.goal === '' ? '' : `<p class="goal">${escapeHtml(report.goal)}</p>`}
<dl>${factsOf(report)
    .map(([name, text]) => `<div><dt>${name}</dt><dd>${escapeHtml(text)}</dd></div>`)
    .join('')}</dl>
</header>
<main>
<section><h2>Graph</h2><div class="scroll">
${graphSvg(graph, (name) => states.get(name)!)}
</div></section>
<section><h2>Timings</h2><div class="scroll">
${table(report)}
</div></section>
<section><h2>Agents</h2>
${agents.map(article).join('\n')}
</section>
</main>
</body>
</html>
`
}

function factsOf(report: RunReport): [name: string, text: string][] {
  const { id, round, cancelled, begunAt, elapsedMs, workedMs, spent, criticalPath } = report
  const facts: [string, string][] = [
    ['Run', `${id}${round > 1 ? `, round ${round}` : ''}`],
    ['Cancelled', cancelled ?? ''],
    ['Began', new Date(begunAt).toISOString()],
    ['Took', `${formatDuration(elapsedMs)}, ${formatDuration(workedMs)} of work`],
    ['Spent', formatSpent(spent)],
    ['Longest chain', criticalPath.length > 1 ? shortened(criticalPath.join(' → '), 1000) : ''],
  ]
  return facts.filter(([, text]) => text !== '')
}

function table({ agents, elapsedMs }: RunReport): string {
  const rows = agents.map(
    ({ name, state, cached, from, to, workedMs, attempts, spent }) =>
      `<tr><th scope="row">${escapeHtml(name)}</th><td class="${state}">${state}${cached ? ' before' : ''}</td>` +
      `<td class="number">${attempts.length === 0 ? '' : formatDuration(workedMs)}</td>` +
      `<td class="number">${attempts.length || ''}</td><td>${escapeHtml(formatSpent(spent))}</td>` +
      `<td class="time">${bar(from, to, elapsedMs)}</td></tr>`,
  )
  return `<table><thead><tr><th>Agent</th><th>State</th><th class="number">Work</th><th class="number">Attempts</th><th>Spent</th><th>When</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table>`
}

function bar(from: number | null, to: number | null, whole: number): string {
  if (from === null || to === null || whole <= 0) return ''
  const percent = (ms: number) => Math.min(100, Math.max(0, (100 * ms) / whole)).toFixed(2)
  return `<span style="margin-left:${percent(from)}%;width:${percent(to - from)}%"></span>`
}

function article(agent: AgentReport): string {
  const { name, state, reason, objective, summary, outputs, attempts, unconsolidated } = agent
  const files = outputs
    .slice(0, OUTPUTS_ON_PAGE)
    .map(
      ({ path, bytes, sha256 }) =>
        `<li title="${escapeHtml(sha256)}">${escapeHtml(path)} <small>${formatBytes(bytes)}</small></li>`,
    )
  const rest = outputs.length - files.length
  const failed = attempts
    .filter(({ outcome }) => outcome === 'failed' || outcome === 'lost')
    .map(({ number, why }) => `<li>Attempt ${number}: ${escapeHtml(shortened(why, 2000))}</li>`)
  return [
    `<article><h3>${escapeHtml(name)} <span class="${state}">${state}</span></h3>`,
    reason === '' ? '' : `<p>${escapeHtml(shortened(reason, 2000))}</p>`,
    objective === '' ? '' : `<p class="objective">${escapeHtml(shortened(objective, 2000))}</p>`,
    summary === '' ? '' : `<pre>${escapeHtml(shortened(summary, SUMMARY_CHARACTERS))}</pre>`,
    files.length === 0
      ? ''
      : `<ul class="files">${files.join('')}${rest > 0 ? `<li>and ${rest} more</li>` : ''}</ul>`,
    unconsolidated === '' ? '' : `<p>${escapeHtml(shortened(unconsolidated, 2000))}</p>`,
    failed.length === 0 ? '' : `<ul class="failed">${failed.join('')}</ul>`,
    '</article>',
  ].join('')
}

/** Follows the colour scheme of the reader. Colours only repeat what the text says. */
const STYLE = `
:root{color-scheme:light dark;--ink:#1c1f23;--paper:#fff;--soft:#667;--line:#d5d8de;--good:#2e7d43;--bad:#b3261e;--dull:#757575;--busy:#1e5fb3}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#16181c;--soft:#9aa;--line:#3a3f47;--good:#7bd08f;--bad:#ff8a80;--dull:#a0a0a0;--busy:#8ab8f5}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1.5rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0}
.goal,.objective{white-space:pre-wrap;color:var(--soft)}
dl{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:1rem 0}dt{color:var(--soft);font-size:.8rem}dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow:auto;max-height:80vh;border:1px solid var(--line);border-radius:8px;padding:.5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
tbody th{font-weight:500}.number{text-align:right;font-variant-numeric:tabular-nums}
.time{width:30%;min-width:12rem}.time span{display:block;height:.6rem;min-width:2px;border-radius:3px;background:var(--busy)}
article{border-top:1px solid var(--line);padding:.8rem 0}article p{margin:.3rem 0;overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid var(--line);margin:.5rem 0;padding:.2rem .8rem;font-size:.85rem}
ul{margin:.4rem 0;padding-left:1.2rem}.files{columns:18rem;font-size:.85rem;overflow-wrap:anywhere}small{color:var(--soft)}
.completed{color:var(--good)}.failed{color:var(--bad)}.skipped,.cancelled,.partial{color:var(--dull)}.running,.validating{color:var(--busy)}
svg text{font:12px system-ui,sans-serif;text-anchor:middle;fill:var(--ink)}svg .state{font-size:10px;fill:var(--soft)}
svg rect{fill:var(--paper);stroke:var(--line);stroke-width:1.5}
svg .completed rect{stroke:var(--good)}svg .failed rect{stroke:var(--bad)}svg .running rect,svg .validating rect{stroke:var(--busy)}
svg .skipped rect,svg .cancelled rect{stroke-dasharray:4 3}
svg .edge{fill:none;stroke:var(--soft);stroke-width:1;opacity:.6}svg .edge.skip{stroke-dasharray:6 3}svg .edge.proceed{stroke-dasharray:2 3}
@media print{.scroll{overflow:visible;max-height:none}}
`

const BOX = { width: 168, height: 40, gapAcross: 20, gapAlong: 48, margin: 12 }

/** Graphs with more steps are drawn from top to bottom, because pages scroll that way. */
const STEPS_ACROSS = 8

interface BoxPosition {
  x: number
  y: number
}

/** Draws the graph as SVG, one column or row for each step. Its classes get their colours from the page. */
export function graphSvg(graph: Graph, state: (name: string) => NodeState): string {
  const steps = arranged(graph)
  const isWide = steps.length <= STEPS_ACROSS
  const positions = new Map<string, BoxPosition>()
  for (const [step, names] of steps.entries()) {
    for (const [index, name] of names.entries()) {
      const along = BOX.margin + step * ((isWide ? BOX.width : BOX.height) + BOX.gapAlong)
      const across = BOX.margin + index * ((isWide ? BOX.height : BOX.width) + BOX.gapAcross)
      positions.set(name, isWide ? { x: along, y: across } : { x: across, y: along })
    }
  }
  const all = [...positions.values()]
  const width = farthest(all, 'x') + BOX.width + BOX.margin
  const height = farthest(all, 'y') + BOX.height + BOX.margin
  const edges = [...graph.needs.values()].flatMap((needs) =>
    needs.map(({ from, to, onFailure }) => line(positions.get(from)!, positions.get(to)!, isWide, onFailure)),
  )
  const boxes = [...positions].map(([name, position]) => box(name, state(name), position))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="The graph of agents">`,
    ...edges,
    ...boxes,
    '</svg>',
  ].join('\n')
}

function farthest(positions: readonly BoxPosition[], axis: 'x' | 'y'): number {
  return positions.reduce((most, position) => Math.max(most, position[axis]), 0)
}

/** Sorts the agents of each step by the mean position of their dependencies, so that edges stay short. */
function arranged(graph: Graph): string[][] {
  const position = new Map<string, number>()
  return stepsOf(graph).map((names) => {
    const wish = new Map(
      names.map((name, index) => {
        const needs = graph.needs.get(name)!
        const sum = needs.reduce((total, { from }) => total + position.get(from)!, 0)
        return [name, needs.length === 0 ? index : sum / needs.length]
      }),
    )
    const sorted = names.toSorted((a, b) => wish.get(a)! - wish.get(b)!)
    for (const [index, name] of sorted.entries()) position.set(name, index)
    return sorted
  })
}

function line(from: BoxPosition, to: BoxPosition, isWide: boolean, policy: string): string {
  const [x1, y1] = isWide
    ? [from.x + BOX.width, from.y + BOX.height / 2]
    : [from.x + BOX.width / 2, from.y + BOX.height]
  const [x2, y2] = isWide ? [to.x, to.y + BOX.height / 2] : [to.x + BOX.width / 2, to.y]
  const bend = BOX.gapAlong / 2
  const curve = isWide
    ? `C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
    : `C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`
  return `<path class="edge ${policy}" d="M${x1} ${y1}${curve}"/>`
}

function box(name: string, state: NodeState, { x, y }: BoxPosition): string {
  const label = escapeHtml(shortened(name, 22))
  return [
    `<g class="node ${state}"><title>${escapeHtml(name)}: ${state}</title>`,
    `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6"/>`,
    `<text x="${x + BOX.width / 2}" y="${y + 17}">${label}</text>`,
    `<text class="state" x="${x + BOX.width / 2}" y="${y + 32}">${state}</text></g>`,
  ].join('')
}

const OUTCOME_TEXT: Record<RunOutcome, string> = {
  completed: 'Every agent completed its work.',
  partial: 'Some agents were skipped; the others completed their work.',
  failed: 'Some agents failed.',
  cancelled: 'The run was cancelled.',
}

/** Replaces control and text-direction characters in text of agents by �. */
function visible(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '\uFFFD')
}

function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for elements and quoted attributes. */
function escapeHtml(text: string): string {
  return visible(text).replace(/[&<>"']/g, (letter) => ENTITIES[letter]!)
}
