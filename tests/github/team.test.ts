/** The team at work: newcomers, duplicates, slash commands and scheduled triggers (issue 6). */
import { describe, expect, it } from 'vitest'
import { bug, commenting, NOTHING, OLD, openGithubTeam, proposing } from './harness.ts'

const DUPLICATE = [
  bug(0.98),
  {
    message_type: 'hitl_approval_request',
    approval_needed_for: 'close_duplicate_issue',
    proposed_action: {
      action_type: 'close_issue',
      issue_number: 2,
      reason: 'Duplicate of #1',
      details: { duplicate_of: 1 },
    },
    rationale: 'A crash, and #1 is the same.',
    confidence: 0.96,
  },
]

describe("a first-timer's report of a known bug", () => {
  it('is labelled and welcomed, and closed after an approval by comment, with public audit entries (S3.13, S3.22)', async () => {
    const team = await openGithubTeam({
      Triage: ({ userText }) => (userText.includes('"issue_number":2') ? DUPLICATE : NOTHING),
      Concierge: ({ userText }) =>
        userText.includes('"issue_number":2') ? commenting('Welcome, @newcomer!') : NOTHING,
    })
    await team.opened({
      title: 'Crash on start',
      body: 'It crashes.',
      author: 'ada-gh',
      association: 'OWNER',
    })
    await team.settled()
    const issue = await team.opened({ title: 'It crashes on start', body: 'Again and again.' })
    await team.settled()
    // The search index found the related issue.
    expect(team.prompts.map(({ userText }) => userText).join()).toContain('"related_issues":[1]')
    expect(issue.labels).toEqual(['bug'])
    expect(issue.comments.map(({ body }) => body.split('\n')[0])).toEqual(
      expect.arrayContaining([
        'Welcome, @newcomer!',
        '**Triage** wants to close #2 as a duplicate of #1 (confidence 0.96).',
      ]),
    )
    expect(issue.state).toBe('open')
    await team.commented(issue, 'ben-gh', '/agent approve req_1')
    await team.until(() => expect(issue).toMatchObject({ state: 'closed', state_reason: 'duplicate' }))
    await team.settled()
    expect(team.lines().filter((line) => /close #2|label|comment on/.test(line))).toEqual(
      expect.arrayContaining([
        "github.success: Done: apply the label 'bug' to #2 in octo/hello",
        'github.success: Done: comment on #2 in octo/hello',
        'github.success: Done: close #2 as a duplicate of #1 in octo/hello',
      ]),
    )
  })
})

describe('a slash command', () => {
  it('becomes the work of its role, instead of the routed work', async () => {
    const team = await openGithubTeam({
      Triage: ({ userText }) =>
        userText.includes('Summarize the thread') ? commenting('In short: it crashes.') : NOTHING,
    })
    const issue = await team.opened(OLD)
    await team.settled()
    await team.commented(issue, 'stranger', '/agent summarize', 'NONE')
    await team.settled()
    expect(issue.comments).toHaveLength(1)
    await team.commented(issue, 'helper', '/agent summarize', 'CONTRIBUTOR')
    await team.settled()
    expect(issue.comments.at(-1)!.body).toContain('In short: it crashes.')
    await team.commented(issue, 'stranger', '/agent help', 'NONE')
    await team.settled()
    expect(issue.comments.at(-1)!.body).toContain('`/agent find-gfi`')
  })

  it.each([
    [
      'summarize',
      /as newcomer opened it.*It crashes on Mondays.*comment by ben-gh at .*Only with the zzflagzz/s,
    ],
    ['draft-docs', /It crashes on Mondays.*Only with the zzflagzz/s],
    ['find-gfi', /#2 \(issue, open\).*Fix a typo.*good first issue/s],
    ['repo-stats', /stars: \d+.*issues opened recently: \d+/s],
  ])(
    'gives the agent the data for %s: the thread, issues or figures (S3.6, S3.18)',
    async (name, expected) => {
      const team = await openGithubTeam({})
      const { repository } = team.fake
      const issue = repository.open({ title: 'A crash', body: 'It crashes on Mondays.', association: 'NONE' })
      repository.open({ title: 'Fix a typo', labels: ['good first issue'], author: 'ada-gh' })
      repository.comment(issue, 'ben-gh', 'Only with the zzflagzz set.')
      await team.commented(issue, 'ada-gh', `/agent ${name}`, 'OWNER')
      await team.settled()
      const asked = () => team.fake.calls.filter(({ path }) => /\/comments$|\/issues$/.test(path)).length
      const before = asked()
      await team.commented(issue, 'ada-gh', 'Thanks.', 'OWNER')
      await team.settled()
      // For a comment without a command, the service reads only the history of its author.
      expect(asked() - before).toBe(1)
      const told = team.prompts
        .map(({ userText }) => userText)
        .filter((text) => text.includes('as one comment'))
      expect(told).toHaveLength(1)
      expect(told[0]).toMatch(expected)
    },
  )

  it('is answered in a closed thread; a thread that was closed in the meantime gets no comment', async () => {
    const body = 'In short: it was a crash.'
    const team = await openGithubTeam({ Triage: commenting(body) })
    const before = team.fake.repository.open(OLD)
    const meanwhile = team.fake.repository.open(OLD)
    before.state = 'closed'
    await team.commented(before, 'helper', '/agent summarize', 'CONTRIBUTOR')
    await team.settled()
    expect(before.comments.at(-1)!.body).toContain(body)
    await team.commented(meanwhile, 'helper', '/agent summarize', 'CONTRIBUTOR')
    meanwhile.state = 'closed'
    await team.settled()
    expect(meanwhile.comments).toHaveLength(1)
    expect(team.lines().join()).toContain('it was closed in the meantime')
  })

  it('decides on proposals for the repository in any case of its name', async () => {
    const team = await openGithubTeam({ Triage: proposing('close_issue') })
    const issue = await team.opened(OLD)
    await team.settled()
    await team.fake.send(team.hookUrl(), 'issue_comment', {
      action: 'created',
      repository: { full_name: 'Octo/Hello' },
      issue: team.fake.repository.show(issue),
      comment: { id: 9, body: '/agent approve req_1', user: { login: 'Ada-GH' }, author_association: 'NONE' },
      sender: { login: 'Ada-GH', type: 'User' },
    })
    await team.until(() => expect(issue.state).toBe('closed'))
  })

  it('decides only on proposals for the same repository', async () => {
    const team = await openGithubTeam({}, {}, { rules: { ask: [{ from: 'Triage', to: 'Scribe' }] } })
    const issue = await team.opened(OLD)
    await team.settled()
    const held = await team
      .engine()
      .handle(
        { kind: 'agent', agent: 'Triage' },
        { type: 'send_message', fields: { to: 'Scribe', content: 'psst' } },
      )
    expect(held).toMatchObject({ status: 'held', request_id: 'req_1' })
    await team.commented(issue, 'ada-gh', '/agent approve req_1', 'OWNER')
    await team.settled()
    expect(issue.comments.at(-1)!.body).toContain('There is no req_1 to decide in this repository.')
    expect(await team.engine().store.all(`SELECT state FROM human_requests`)).toEqual([{ state: 'open' }])
  })
})

describe('a scheduled trigger', () => {
  it('fires on time and reaches its agent as a periodic_trigger of the protocol (S3.4)', async () => {
    const team = await openGithubTeam(
      {},
      {
        schedule: {
          weekly: {
            cron: '* * * * * *',
            to: 'community',
            task: 'Say how the week was.',
            repository: 'octo/hello',
          },
        },
      },
    )
    await team.until(() => expect(team.prompts.length).toBeGreaterThan(0))
    expect(team.prompts[0]!.userText).toContain('Say how the week was.')
    expect(team.prompts[0]!.userText).toContain('"event_type":"periodic_trigger"')
    const forged = await team.fake.send(team.hookUrl(), 'periodic_trigger', { action: 'weekly' })
    expect(forged.status).toBe(400)
  })

  it('is set for the next match of its pattern in its time zone', async () => {
    const zone = 'Europe/Berlin'
    const weekly = { cron: '0 6 * * 1', timezone: zone, to: 'community', repository: 'octo/hello' }
    const team = await openGithubTeam({}, { schedule: { weekly: { ...weekly, task: 'Look around.' } } })
    const [timer] = await team
      .engine()
      .store.all<{ due_at: number }>(`SELECT due_at FROM timers WHERE ref = 'weekly'`)
    const due = new Date(Number(timer!.due_at))
    expect(due.toLocaleString('en-GB', { timeZone: zone, weekday: 'long' })).toContain('Monday')
    expect(due.toLocaleTimeString('en-GB', { timeZone: zone })).toBe('06:00:00')
    expect(due.getTime()).toBeGreaterThan(Date.now())
  })
})
