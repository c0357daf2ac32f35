/** The GitHub team in the whole service, with a scripted model and a fake GitHub (issue 6). */
import { describe, expect, it } from 'vitest'
import { readHumanRequests } from '../../src/people/people.ts'
import { bug, commenting, openGithubTeam } from './harness.ts'

describe('a new issue', () => {
  it('is labelled by the service if the confidence of triage suffices, with public audit entries (S3.5, S3.9, S3.22)', async () => {
    const team = await openGithubTeam({ Triage: bug(0.97) })
    const issue = await team.opened({ title: 'It crashes', body: 'On start.', association: 'CONTRIBUTOR' })
    await team.until(() => expect(issue.labels).toEqual(['bug']))
    await team.settled()
    expect(team.fake.writes()).toMatchObject([
      { method: 'POST', path: '/repos/octo/hello/issues/1/labels', body: { labels: ['bug'] } },
    ])
    expect(team.lines().filter((line) => line.startsWith('github.'))).toEqual([
      'github.task: Triage issue #1',
      'github.success: #1: 1 proposed. It crashes, and it should not.',
      "github.success: Done: apply the label 'bug' to #1 in octo/hello",
    ])
    expect(team.entries.find(({ text }) => text.startsWith('Done'))).toMatchObject({
      actor: 'Triage',
      confidence: 0.97,
    })
  })

  it('needs approval if triage is not sure: a comment of an approver has the action performed once (S3.13, C9)', async () => {
    const team = await openGithubTeam({ Triage: bug(0.6) })
    const issue = await team.opened({ title: 'It crashes', association: 'CONTRIBUTOR' })
    await team.until(() => expect(issue.comments).toHaveLength(1))
    const [question] = issue.comments
    expect(question!.body).toContain("**Triage** wants to apply the label 'bug' to #1 (confidence 0.6).")
    expect(question!.body).toContain('@ada-gh @ben-gh')
    expect(question!.body).not.toContain('@vera-gh')
    expect(question!.body).toContain('Written by the AI agent **orchestrator**')
    const id = /\/agent approve (req_\d+)/.exec(question!.body)![1]!

    // Verdicts of strangers and viewers don't count, and neither do verdicts on other requests.
    await team.commented(issue, 'mallory', `/agent approve ${id}`, 'OWNER')
    await team.commented(issue, 'vera-gh', `/agent approve ${id}`, 'MEMBER')
    await team.settled()
    expect(issue.labels).toEqual([])

    await team.commented(issue, 'Ada-GH', `Looks right to me.\n/agent approve ${id} thanks`, 'NONE')
    await team.until(() => expect(issue.labels).toEqual(['bug']))
    await team.commented(issue, 'ada-gh', `/agent approve ${id}`, 'NONE')
    await team.settled()
    expect(team.fake.writes().filter(({ path }) => path.endsWith('/labels'))).toHaveLength(1)
    const [request] = await readHumanRequests(team.engine().store, 'all', 10)
    expect(request).toMatchObject({ state: 'approved', decided_by: 'ada', comment: 'thanks' })
  })

  it('stays unchanged if people reject the proposal, with a public audit entry (C9)', async () => {
    const team = await openGithubTeam({ Triage: bug(0.6) })
    const issue = await team.opened({ association: 'CONTRIBUTOR' })
    await team.until(() => expect(issue.comments).toHaveLength(1))
    await team.commented(issue, 'ben-gh', '/agent reject req_1 it is a feature')
    await team.until(() => expect(team.lines().join('\n')).toContain('Not done, req_1 is rejected'))
    expect(issue.labels).toEqual([])
  })

  it('is welcomed by the concierge only if its author is new (S3.6)', async () => {
    const team = await openGithubTeam({ Concierge: commenting('Welcome @newcomer, and @everyone else!') })
    const issue = await team.opened({ author: 'newcomer', association: 'NONE' })
    await team.until(() => expect(issue.comments).toHaveLength(1))
    await team.settled()
    expect(issue.comments[0]!.body).toContain('Welcome @newcomer, and @\u200beveryone else!')
    const second = await team.opened({ author: 'newcomer', association: 'NONE' })
    await team.settled()
    expect(second.comments).toEqual([])
  })

  it('stays unchanged in a dry run, and the audit names the action', async () => {
    const team = await openGithubTeam({ Triage: bug(0.99) }, { dry_run: true })
    await team.opened({ association: 'CONTRIBUTOR' })
    await team.until(() => expect(team.lines().join('\n')).toContain("Dry run: apply the label 'bug' to #1"))
    expect(team.fake.writes()).toEqual([])
  })
})
