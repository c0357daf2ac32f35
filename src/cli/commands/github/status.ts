import type { GithubTeamState } from '../../../github/api.ts'
import { openClient } from '../../connection/client.ts'
import { table } from '../../output/layout.ts'
import { complain, paint, plainLine, print, printJson, type Style } from '../../output/print.ts'
import { shortTime } from '../../output/receipt-text.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'github status',
  summary: 'show the GitHub team: pending work and the health of its agents',
  examples: [
    'orc github status',
    'orc github setup',
    'orc github replay opened.json --event issues --dry-run',
  ],
  async run({ location, json }) {
    const { github } = await (await openClient(location)).state()
    if (json) printJson(github ?? null)
    else if (github === undefined)
      complain('This service has no GitHub team; orc github setup explains how to start.')
    else print(githubText(github))
    return 0
  },
}

const STYLES: Readonly<Record<string, Style>> = { healthy: 'green', degraded: 'yellow', error: 'red' }

/** A line for `orc status`, which names only agents that aren't healthy. */
export function githubLine({ dry_run, agents, ...about }: GithubTeamState): string {
  const bad = agents.filter(({ status }) => status !== 'healthy')
  const health =
    bad.length === 0
      ? `${agents.length} healthy`
      : bad.map(({ agent, status }) => paint(STYLES[status]!, `${agent} ${status}`)).join(', ')
  return `GitHub: ${[health, ...waiting(about), ...(dry_run ? ['dry run'] : [])].join(', ')}`
}

function githubText({ agents, dry_run, ...about }: GithubTeamState): string {
  const head = [...waiting(about), ...(dry_run ? ['dry run: nothing changes on GitHub'] : [])]
  const rows = agents.map(({ agent, roles, status, ...figures }) => [
    agent,
    roles.join(', '),
    status,
    `${figures.tasks_completed_last_hour} in the last hour`,
    figures.average_response_time_ms === undefined
      ? ''
      : `${(figures.average_response_time_ms / 1000).toFixed(1)} s each`,
    `${figures.error_rate_percentage} % failed`,
    figures.confidence_score_average === undefined ? '' : `confidence ${figures.confidence_score_average}`,
    figures.last_task_completed === undefined ? '' : `last ${shortTime(figures.last_task_completed)}`,
  ])
  const troubles = agents.flatMap(({ agent, issues, warnings }) => [
    ...issues.map((text) => paint('red', `${agent}: ${plainLine(text)}`)),
    ...warnings.map((text) => paint('yellow', `${agent}: ${plainLine(text)}`)),
  ])
  const style = (cell: string, column: number) =>
    column === 2 ? paint(STYLES[cell.trim()] ?? 'dim', cell) : cell
  return [head.join(', '), table(rows, '  ', style), ...troubles].filter((line) => line !== '').join('\n')
}

function waiting({
  events_waiting,
  actions_waiting,
  last_event_at,
}: Pick<GithubTeamState, 'events_waiting' | 'actions_waiting' | 'last_event_at'>): string[] {
  return [
    last_event_at === undefined ? 'no event yet' : `last event ${shortTime(last_event_at)}`,
    ...(events_waiting === 0 ? [] : [`${events_waiting} events waiting`]),
    ...(actions_waiting === 0 ? [] : [`${actions_waiting} actions waiting`]),
  ]
}
