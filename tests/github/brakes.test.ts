/** Stopping the team with AI-PAUSE, and who may use which slash command (issue 6, §1). */
import { describe, expect, it } from 'vitest'
import { bug, NOTHING, openGithubTeam } from './harness.ts'

const REPO_STATS = {
  ...NOTHING,
  actions_taken: [{ action_type: 'comment_posted', details: { body: 'an answer' } }],
}

describe('AI-PAUSE', () => {
  it.each([
    ['an issue', { labels: ['AI-PAUSE'] }],
    ['a pull request', { labels: ['ai-pause'], isPull: true }],
  ])('on %s stops the team in that thread only, until a person removes it', async (_, thread) => {
    const team = await openGithubTeam({ Triage: bug(0.99), Lifecycle: bug(0.99) })
    const paused = await team.opened({ ...thread, association: 'CONTRIBUTOR' })
    await team.settled()
    expect(team.prompts).toEqual([])
    const other = await team.opened({ isPull: paused.isPull, association: 'CONTRIBUTOR' })
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
    await team.opened({ association: 'CONTRIBUTOR' })
    await team.opened({ association: 'CONTRIBUTOR', isPull: true })
    await team.settled()
    expect(team.prompts).toEqual([])
    team.fake.repository.topics.length = 0
    const issue = await team.opened({ association: 'CONTRIBUTOR' })
    await team.settled()
    expect(issue.labels).toEqual(['bug'])
  })

  it('set while an agent works stops its proposals', async () => {
    const team = await openGithubTeam({
      Triage: () => {
        team.fake.repository.threads.get(1)!.labels = ['AI-PAUSE']
        return bug(0.99)
      },
    })
    const issue = await team.opened({ association: 'CONTRIBUTOR' })
    await team.until(() => expect(team.lines().join('\n')).toContain('people paused the team there'))
    expect(issue.labels).toEqual(['AI-PAUSE'])
  })

  it('does not stop verdicts of people', async () => {
    const team = await openGithubTeam({ Triage: bug(0.5) })
    const issue = await team.opened({ association: 'CONTRIBUTOR' })
    await team.until(() => expect(issue.comments).toHaveLength(1))
    issue.labels = ['AI-PAUSE']
    await team.commented(issue, 'ada-gh', '/agent reject req_1')
    await team.until(() => expect(team.lines().join('\n')).toContain('req_1 is rejected'))
  })
})

describe('a slash command', () => {
  const FOR = {
    'find-gfi': ['NONE', 'FIRST_TIMER', 'CONTRIBUTOR', 'COLLABORATOR', 'MEMBER', 'OWNER'],
    summarize: ['CONTRIBUTOR', 'COLLABORATOR', 'MEMBER', 'OWNER'],
    'repo-stats': ['CONTRIBUTOR', 'COLLABORATOR', 'MEMBER', 'OWNER'],
    'draft-docs': ['COLLABORATOR', 'MEMBER', 'OWNER'],
  }

  it.each(Object.entries(FOR))('/agent %s works for %s only', async (name, associations) => {
    const team = await openGithubTeam(
      {
        Triage: REPO_STATS,
        Concierge: REPO_STATS,
        Scribe: REPO_STATS,
        // The reply to the comment doesn't matter here.
        Community: ({ userText }) =>
          userText.includes('how the repository is doing') ? REPO_STATS : NOTHING,
      },
      { routes: { 'issue_comment.created': [] } },
    )
    const issue = team.fake.openIssue({ association: 'CONTRIBUTOR' })
    const all = [
      'NONE',
      'FIRST_TIMER',
      'MANNEQUIN',
      'WIZARD',
      'CONTRIBUTOR',
      'COLLABORATOR',
      'MEMBER',
      'OWNER',
    ]
    const heard: string[] = []
    for (const association of all) {
      const before = team.prompts.length
      await team.commented(
        issue,
        `some-${association.toLowerCase().replaceAll('_', '-')}`,
        `/agent ${name}`,
        association,
      )
      await team.settled()
      if (team.prompts.length > before) heard.push(association)
    }
    const anyone = name === 'find-gfi' ? ['MANNEQUIN', 'WIZARD'] : []
    expect(heard.sort()).toEqual([...associations, ...anyone].sort())
    expect(issue.comments.filter(({ body }) => body.startsWith('an answer'))).toHaveLength(heard.length)
  })
})
