import { escapeHtml } from './escape-html.ts'
import { graphSvg } from './graph-svg.ts'
import { STYLE } from './html-style.ts'
import type { AgentReport, RunReport } from './report.ts'
import { bytesText, durationText, OUTCOME_TEXT, shortened, spentText } from './wording.ts'

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
    ['Took', durationText(report.elapsedMs)],
    ['Work', durationText(report.workedMs)],
    ['Spent', spentText(report.spent)],
    ['Longest chain', report.criticalPath.length > 1 ? shortened(report.criticalPath.join(' → '), 1000) : ''],
  ]
  const shown = entries.filter(([, text]) => text !== '')
  return `<dl>${shown.map(([name, text]) => `<div><dt>${name}</dt><dd>${escapeHtml(text)}</dd></div>`).join('')}</dl>`
}

function table({ agents, elapsedMs }: RunReport): string {
  const rows = agents.map(
    ({ name, state, cached, from, to, workedMs, attempts, spent }) =>
      `<tr><th scope="row">${escapeHtml(name)}</th><td class="${state}">${state}${cached ? ' before' : ''}</td>` +
      `<td class="number">${attempts.length === 0 ? '' : durationText(workedMs)}</td>` +
      `<td class="number">${attempts.length || ''}</td><td>${escapeHtml(spentText(spent))}</td>` +
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
        `<li title="${escapeHtml(sha256)}">${escapeHtml(path)} <small>${bytesText(bytes)}</small></li>`,
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
