/** Stopping the team with AI-PAUSE (issue 6, §1). */
import { describe, expect, it } from 'vitest'
import { bug, OLD, openGithubTeam } from './harness.ts'

describe('AI-PAUSE', () => {
  it.each([
    ['an issue', { labels: ['AI-PAUSE'] }],
    ['a pull request', { labels: ['ai-pause'], isPull: true }],
  ])('on %s stops the team in that thread only, until a person removes it', async (_, thread) => {
    const team = await openGithubTeam({ Triage: bug(0.99), Lifecycle: bug(0.99) })
    const paused = await team.opened({ ...thread, ...OLD })
    await team.settled()
    expect(team.prompts).toEqual([])
    const other = await team.opened({ ...OLD, isPull: paused.isPull })
    await team.settled()
    expect(other.labels).toEqual(['bug'])
    paused.labels = []
    const kind = paused.isPull ? 'pull_request' : 'issues'
    await team.fake.send(team.hookUrl(), kind, team.payloadOf(paused, 'reopened'))
    await team.settled()
    expect(paused.labels).toEqual(['bug'])
  })

  it('as a topic of the repository stops the team in the whole repository until a person removes it', async () => {
    const team = await openGithubTeam({ Triage: bug(0.99), Lifecycle: bug(0.99) })
    team.fake.repository.topics.push('ai-pause')
    await team.opened(OLD)
    await team.opened({ ...OLD, isPull: true })
    await team.settled()
    expect(team.prompts).toEqual([])
    team.fake.repository.topics.length = 0
    const issue = await team.opened(OLD)
    await team.settled()
    expect(issue.labels).toEqual(['bug'])
  })

  it('does not stop verdicts of people', async () => {
    const team = await openGithubTeam({ Triage: bug(0.5) })
    const issue = await team.opened(OLD)
    await team.until(() => expect(issue.comments).toHaveLength(1))
    issue.labels = ['AI-PAUSE']
    await team.commented(issue, 'ada-gh', '/agent reject req_1')
    await team.until(() => expect(team.lines().join('\n')).toContain('req_1 is rejected'))
  })
})
