/** `orc github replay --dry-run` shows what the service would do (issue 6, §3). */
import { describe, expect, it } from 'vitest'
import { createTeam } from '../../src/commands/team.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { type GitHubEvent, readEvent } from '../../src/github/core/event.ts'
import { previewEvent, previewReport } from '../../src/github/preview.ts'
import { bug } from './harness.ts'

function teamWith(github: Partial<NonNullable<ConfigInput['github']>> = {}) {
  const input = {
    agents: { Triage: {}, Community: {}, Concierge: {} },
    people: { ada: { github: 'ada-gh' } },
    github: { secret_env: 'S', token_env: 'T', ...github },
  }
  return createTeam(defineConfig(input, { file: '/tmp/orc.yaml', env: {} }))
}

function eventOf(name: string, payload: object): GitHubEvent {
  return readEvent('d', name, { repository: { full_name: 'octo/hello' }, ...payload })!
}

const opened = eventOf('issues', { action: 'opened', issue: { number: 1, title: 'A crash' } })
const reviewed = (body: string | null, association = 'CONTRIBUTOR') =>
  eventOf('pull_request_review', {
    action: 'submitted',
    pull_request: { number: 2 },
    review: { id: 1, body, user: { login: 'carl' }, author_association: association },
  })

describe('a preview', () => {
  it.each([
    ['nothing', {}, 'done'],
    ['the role', { requires_hitl: ['triage'] }, 'asked'],
    ['the step', { routes: { 'issues.opened': [{ to: 'triage', requires_hitl: true }] } }, 'asked'],
    ['the role in another case', { requires_hitl: ['TRIAGE'] }, 'asked'],
    ['the agent that fills it', { team: { triage: 'Concierge' }, requires_hitl: ['concierge'] }, 'asked'],
    ['another role', { requires_hitl: ['scribe'] }, 'done'],
    [
      'another role of the same agent',
      { team: { triage: 'Concierge', scribe: 'Concierge' }, requires_hitl: ['scribe'] },
      'done',
    ],
  ])('of a report respects requires_hitl of %s (S3.5)', (_, github, verdict) => {
    const { proposals } = previewReport(teamWith(github), opened, 'triage', JSON.stringify(bug(1)))
    expect(proposals).toMatchObject([{ verdict }])
  })

  it('of a report for a slash command respects every step of that role (S3.5)', () => {
    const team = teamWith({ routes: { 'issues.opened': [{ to: 'triage', requires_hitl: true }] } })
    const verdictOn = (event: GitHubEvent) =>
      previewReport(team, event, 'triage', JSON.stringify(bug(1))).proposals[0]!.verdict
    expect(verdictOn(reviewed('/agent summarize'))).toBe('asked')
    expect(verdictOn(reviewed('A summary, please.'))).toBe('done')
  })

  it('of a review shows its commands and its steps', () => {
    const { commands, steps } = previewEvent(teamWith(), reviewed('/agent summarize\n/agent approve req_1'))
    expect(commands).toMatchObject([
      { command: '/agent summarize', allowed: true, does: 'goes to triage' },
      { command: '/agent approve req_1', allowed: false },
    ])
    expect(steps).toMatchObject([
      { role: 'triage', outcome: 'gets it' },
      { role: 'community', outcome: 'gets it' },
      { role: 'concierge', outcome: 'left out' },
    ])
  })

  it('of a review without text has no steps', () => {
    const { commands, steps } = previewEvent(teamWith(), reviewed(null))
    expect(commands).toEqual([])
    expect(steps.map(({ outcome }) => outcome)).toEqual(['left out', 'left out'])
  })
})
