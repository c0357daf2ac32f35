/** The team as a GitHub App: tokens, login, and webhooks missed while the service was down (issue 6, §1). */
import { describe, expect, it } from 'vitest'
import { APP } from '../fakes/github/app.ts'
import { bug, commenting, type GithubTeam, OLD, openGithubTeam } from './harness.ts'

/** The payload of a new issue with that number. */
const bodyOf = (team: GithubTeam, number: number) =>
  JSON.stringify({
    ...team.payloadOf(team.fake.repository.open({ ...OLD, number }), 'opened'),
    repository: { full_name: 'octo/hello' },
  })

describe('a team that is a GitHub App', () => {
  it('acts under its own login, on Enterprise too, and ignores its own events', async () => {
    const options = { app: true, prefix: '/api/v3' }
    const comment = commenting('Which version?')
    const team = await openGithubTeam({ Triage: comment, Community: comment }, {}, {}, options)
    const issue = await team.opened(OLD)
    await team.until(() => expect(issue.comments).toMatchObject([{ author: `${APP.slug}[bot]` }]))
    await team.until(async () => {
      const rows = await team.engine().store.all<{ state: string }>('SELECT state FROM github_deliveries')
      expect(rows.map(({ state }) => state).sort()).toEqual(['ignored', 'routed'])
    })
    await team.settled()
    expect(issue.comments).toHaveLength(1)
  })

  it('gets the webhooks that it missed while it was down, in order and once (C25)', async () => {
    const seen: string[] = []
    const team = await openGithubTeam(
      {
        Triage: ({ userText }) => {
          seen.push(/Triage issue (#\d+)/.exec(userText)![1]!)
          return bug(0.99)
        },
      },
      { events_per_minute: 100_000 },
      {},
      { app: true },
    )
    const { app } = team.fake
    await app!.deliver('issues', bodyOf(team, 1), 'taken')
    await team.settled()
    // GitHub believes that this delivery failed, but it arrived.
    app!.deliveries.at(-1)!.status = 'timed out'
    await team.restart(async () => {
      for (let number = 2; number <= 130; number++) {
        const isIssue = number > 127
        const body = isIssue
          ? bodyOf(team, number)
          : JSON.stringify({ repository: { full_name: 'octo/hello' } })
        await app!.deliver(isIssue ? 'issues' : 'push', body, `missed-${number}`)
      }
    })
    await team.until(async () => {
      const [row] = await team
        .engine()
        .store.all<{ count: number }>(
          "SELECT COUNT(*) AS count FROM github_deliveries WHERE event IN ('issues', 'push') AND id LIKE 'missed%'",
        )
      expect(row!.count).toBe(129)
    })
    await team.settled()
    expect(seen).toEqual(['#1', '#128', '#129', '#130'])
    expect(app!.deliveries.filter(({ guid, redelivery }) => guid === 'taken' && redelivery)).toEqual([])
    expect(team.logged.join('\n')).toContain('requested missed webhooks again {"count":129}')

    // Nothing is left to request.
    const before = app!.deliveries.length
    await team.restart()
    await team.until(() => expect(team.logged.join('\n')).toContain('webhooks again {"count":0}'))
    expect(app!.deliveries).toHaveLength(before)
  })
})

describe('a team that never got a webhook', () => {
  it('gets the webhooks that it missed since its first start, and none from before', async () => {
    const team = await openGithubTeam({ Triage: bug(0.99) }, {}, {}, { app: true })
    const { app, repository } = team.fake
    await team.until(() => expect(team.logged.join('\n')).toContain('webhooks again {"count":0}'))
    await team.restart(async () => {
      const before = await app!.deliver('issues', bodyOf(team, 1), 'before')
      Object.assign(before, { at: Date.now() - 3600_000 })
      await app!.deliver('issues', bodyOf(team, 2), 'since')
    })
    await team.until(() => expect(repository.threads.get(2)!.labels).toEqual(['bug']))
    await team.settled()
    expect(repository.threads.get(1)!.labels).toEqual([])
  })
})

describe('a team with a token', () => {
  it('says that it cannot request missed webhooks', async () => {
    const team = await openGithubTeam({})
    await team.until(() => expect(team.logged.join('\n')).toMatch(/a token cannot request missed webhooks/))
  })
})
