/** The context that agents get, the files that they may write, and the limits of both (S3.6, S3.7, S3.18, issue 6 §2–§4). */
import { describe, expect, it } from 'vitest'
import { filesOnBranch, gitOf } from '../fakes/github/git-routes.ts'
import { bug, NOTHING, openGithubTeam, proposing } from './harness.ts'

describe('an agent of the team', () => {
  it('gets excerpts of governance documents, workflows and related threads, never whole files (S3.7, S3.18)', async () => {
    const team = await openGithubTeam({})
    const { texts } = gitOf(team.fake.repository)
    texts.set('CONTRIBUTING.md', `Please sign your commits. ${'long '.repeat(2000)}THE END`)
    texts.set('.github/workflows/ci.yml', 'name: CI\non: push')
    await team.opened({ title: 'Crash on start', body: 'It crashes with ENOENT.', author: 'ada-gh' })
    await team.settled()
    await team.opened({ title: 'It crashes on start', body: 'Again, as @ben-gh said. See #1.' })
    await team.settled()
    const told = team.prompts
      .map(({ userText }) => userText)
      .find((text) => text.includes('"issue_number":2'))!
    expect(told).toContain('Please sign your commits.')
    expect(told).not.toContain('THE END')
    expect(told).toContain('name: CI')
    expect(told).toContain('#1 (issue, open)')
    expect(told).toContain('It crashes with ENOENT.')
    expect(told).toContain('"mentions":["@ben-gh"]')
    expect(told).toContain('"governance_docs":["README.md","CONTRIBUTING.md"]')
  })

  it('gets a body of any size and alphabet as an excerpt without secrets (S3.17, S3.18, C20)', async () => {
    const secret = `ghp_${'a1B2'.repeat(9)}`
    const team = await openGithubTeam({ Triage: bug(0.99) })
    const issue = await team.opened({ title: 'Kaputt', body: `${secret} ${'漢字\u0001"\n'.repeat(12_000)}` })
    await team.settled()
    expect(issue.labels).toEqual(['bug'])
    const told = team.prompts.map(({ userText }) => userText).join()
    expect(told).toContain('漢字')
    expect(told).not.toContain(secret)
    const { store } = team.engine()
    const kept = await store.all<{ delegation: string }>('SELECT delegation FROM github_work')
    for (const { delegation } of kept) expect(Buffer.byteLength(delegation)).toBeLessThanOrEqual(102_400)
    expect(JSON.stringify(await store.all('SELECT document FROM tasks'))).not.toContain(secret)
  })

  it('gets no half of a secret where a text is cut (S3.17)', async () => {
    const secret = `ghp_${'a1B2'.repeat(9)}`
    const team = await openGithubTeam({ Triage: NOTHING })
    // The lengths at which a body and an excerpt are cut.
    gitOf(team.fake.repository).texts.set('CONTRIBUTING.md', `${'y'.repeat(1480)} ${secret}`)
    await team.opened({ association: 'CONTRIBUTOR', body: `${'x'.repeat(39_980)} ${secret}` })
    await team.settled()
    const kept = JSON.stringify(await team.engine().store.all('SELECT delegation FROM github_work'))
    expect(kept).toContain('x'.repeat(5000))
    expect(kept).toContain('y'.repeat(1400))
    expect(kept + team.prompts.map(({ userText }) => userText).join()).not.toContain(secret.slice(0, 8))
  })

  it('needs approval for an action on another thread, whatever its confidence', async () => {
    const team = await openGithubTeam({
      Triage: proposing('label_applied', { label: 'wontfix', issue_number: 1 }),
    })
    const [one, two] = [await team.opened({ association: 'OWNER' }), await team.opened({})]
    await team.settled()
    expect(one.labels).toEqual(['wontfix'])
    expect(two.comments.map(({ body }) => body).join()).toContain('it is about another thread')
  })
})

describe('files', () => {
  const files = [
    { path: 'docs/setup.md', content: '# Setup\n' },
    { path: 'docs/faq.md', content: '# FAQ\n' },
  ]

  it('go into a branch with one commit that names the agent', async () => {
    const team = await openGithubTeam({
      Triage: proposing('branch_created', { branch: 'docs/setup', message: 'Write the setup', files }),
    })
    await team.opened({})
    await team.settled()
    const { repository } = team.fake
    expect(filesOnBranch(repository, 'docs/setup')).toEqual({
      'docs/setup.md': '# Setup\n',
      'docs/faq.md': '# FAQ\n',
    })
    const commit = gitOf(repository).commits.get(repository.branches.get('docs/setup')!)!
    expect(commit.message).toMatch(
      /^Write the setup\n\nWritten by the AI agent Triage\.\nOrchub-Action: [0-9a-f]{32}$/,
    )
    expect(commit.parents).toEqual(['a'.repeat(40)])
  })

  it('go into a new branch of a pull request after approval', async () => {
    const team = await openGithubTeam({
      Triage: proposing('pr_created', { head: 'docs/setup', title: 'Setup', body: 'Written down.', files }),
    })
    const issue = await team.opened({})
    await team.settled()
    const asked = issue.comments.map(({ body }) => body).join()
    expect(asked).toContain('open a pull request from docs/setup with docs/setup.md, docs/faq.md: Setup')
    expect(team.fake.repository.branches.has('docs/setup')).toBe(false)
    await team.commented(issue, 'ada-gh', '/agent approve req_1')
    await team.until(() =>
      expect(team.fake.repository.pulls).toMatchObject([{ head: 'docs/setup', base: 'main' }]),
    )
    const { repository } = team.fake
    expect(Object.keys(filesOnBranch(repository, 'docs/setup'))).toHaveLength(2)
    const commit = gitOf(repository).commits.get(repository.branches.get('docs/setup')!)!
    expect(commit.message).toMatch(/^Setup\n\nWritten by the AI agent Triage\.\nOrchub-Action: [0-9a-f]{32}$/)
    await team.settled()
  })

  it('do not touch a branch of another author, and are not written twice after a lost response (C25)', async () => {
    const team = await openGithubTeam({
      Triage: ({ userText }) =>
        proposing('branch_created', {
          branch: userText.includes('"issue_number":1') ? 'docs/a' : 'docs/b',
          files,
        }),
    })
    team.fake.repository.branches.set('docs/b', 'a'.repeat(40))
    team.fake.fail({
      fits: ({ method, path }) => method === 'POST' && path.endsWith('/git/refs'),
      doesIt: true,
    })
    await team.opened({})
    await team.settled()
    expect(filesOnBranch(team.fake.repository, 'docs/a')).toMatchObject({ 'docs/faq.md': '# FAQ\n' })
    await team.opened({})
    await team.settled()
    expect(team.fake.repository.branches.get('docs/b')).toBe('a'.repeat(40))
    expect(team.lines().join('\n')).toContain('Somebody else has already created a branch docs/b')
  })

  it.each([
    ['a workflow', [{ path: '.github/workflows/x.yml', content: 'x' }], /is a workflow/],
    ['a path out of the repository', [{ path: '../x', content: 'x' }], /is not a valid path/],
    ['too many bytes', [{ path: 'x', content: 'x'.repeat(60_001) }], /at most 60000 bytes/],
    [
      'too many files',
      Array.from({ length: 21 }, (_, n) => ({ path: `f${n}`, content: '' })),
      /at most 20 files/,
    ],
    ['a secret', [{ path: 'x.env', content: `TOKEN=ghp_${'a1B2'.repeat(9)}` }], /looks like a secret/],
  ])('are rejected with a reason: %s', async (_, wrong, reason) => {
    const team = await openGithubTeam({
      Triage: proposing('branch_created', { branch: 'docs/x', files: wrong }),
    })
    await team.opened({})
    await team.settled()
    expect(team.lines().find((line) => line.includes('Refused'))).toMatch(reason)
    expect(team.fake.writes()).toEqual([])
  })
})

describe('a report', () => {
  it('cannot post a comment that is too long for GitHub or contains a secret', async () => {
    const secret = `ghp_${'a1B2'.repeat(9)}`
    const team = await openGithubTeam({
      Triage: {
        ...NOTHING,
        actions_taken: [
          { action_type: 'comment_posted', details: { body: 'x'.repeat(60_001) }, confidence: 0.99 },
          { action_type: 'comment_posted', details: { body: `Use ${secret}` }, confidence: 0.99 },
        ],
      },
    })
    const issue = await team.opened({})
    await team.settled()
    expect(issue.comments).toHaveLength(1)
    expect(issue.comments[0]!.body).not.toContain(secret)
    expect(team.lines().find((line) => line.includes('Refused comment_posted'))).toMatch(/60000/)
  })
})

describe('a trigger about stale threads', () => {
  it('gives its agent the inactive open threads, and applies the policy to the proposals', async () => {
    const team = await openGithubTeam(
      {
        Lifecycle: {
          ...NOTHING,
          actions_taken: [
            { action_type: 'label_applied', details: { label: 'stale', issue_number: 1 }, confidence: 0.99 },
            {
              action_type: 'close_issue',
              details: { issue_number: 1, reason: 'Nobody came back.' },
              confidence: 0.99,
            },
          ],
        },
      },
      {
        schedule: { stale: { cron: '0 7 * * *', to: 'lifecycle', stale_days: 60, repository: 'octo/hello' } },
      },
    )
    const old = team.fake.repository.open({ title: 'Forgotten', updatedAt: '2020-01-01T00:00:00Z' })
    team.fake.repository.open({ title: 'Alive' })
    await team.ring('github_trigger')
    await team.until(() => expect(old.labels).toEqual(['stale']))
    const [told] = team.prompts.map(({ userText }) => userText)
    expect(told).toContain('"event_type":"periodic_trigger"')
    expect(told).toContain('"related_issues":[1]')
    expect(told).toContain('last activity 2020-01-01')
    expect(told).not.toContain('Alive')
    await team.settled()
    expect(old.state).toBe('open')
    expect(await team.engine().store.all(`SELECT question FROM human_requests`)).toMatchObject([
      { question: 'Lifecycle wants to close #1 in octo/hello' },
    ])
  })
})
