import { formatBytes } from '../../base/bytes.ts'
import { formatDuration } from '../../base/durations.ts'
import { formatSpent } from '../run.ts'
import { graphSvg } from './graph-svg.ts'
import type { AgentReport, RunReport } from './report.ts'
import { escapeHtml, OUTCOME_TEXT, shortened } from './text.ts'

const SUMMARY_CHARACTERS = 8000
const OUTPUTS_SHOWN = 200

/** The report as one page that needs nothing else: no scripts, no fonts, no network, and it says so to the browser. */
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
<p class="outcome ${outcome ?? 'running'}">${outcome === null ? 'It goes on.' : `<strong>${outcome}</strong> ${OUTCOME_TEXT[outcome]}`}</p>
${report.goal === '' ? '' : `<p class="goal">${escapeHtml(report.goal)}</p>`}
${facts(report)}
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

function facts(report: RunReport): string {
  const entries: [string, string][] = [
    ['Run', `${report.id}${report.round > 1 ? `, round ${report.round}` : ''}`],
    ['Cancelled', report.cancelled ?? ''],
    ['Began', new Date(report.begunAt).toISOString()],
    ['Took', formatDuration(report.elapsedMs)],
    ['Work', formatDuration(report.workedMs)],
    ['Spent', formatSpent(report.spent)],
    ['Longest chain', report.criticalPath.length > 1 ? shortened(report.criticalPath.join(' → '), 1000) : ''],
  ]
  const shown = entries.filter(([, text]) => text !== '')
  return `<dl>${shown.map(([name, text]) => `<div><dt>${name}</dt><dd>${escapeHtml(text)}</dd></div>`).join('')}</dl>`
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
    .slice(0, OUTPUTS_SHOWN)
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

/** Light and dark as the reader has it; colours never say anything that words don't. */
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
