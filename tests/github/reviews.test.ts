/** Texts of reviews count like comments (issue 6, §1). */
import { describe, expect, it } from 'vitest'
import { commenting, type GithubTeam, openGithubTeam, proposing } from './harness.ts'

async function withPull(answers: Parameters<typeof openGithubTeam>[0] = {}) {
  const team = await openGithubTeam(answers)
  const pull = team.fake.repository.open({ isPull: true, author: 'ada-gh', association: 'OWNER' })
  return { team, pull }
}

const workOf = async (team: GithubTeam) =>
  (await team.engine().store.all<{ role: string }>('SELECT role FROM github_work ORDER BY role')).map(
    ({ role }) => role,
  )

describe.each([
  ['the text of a review', { line: false }],
  ['a comment on a line', { line: true }],
])('%s', (_, how) => {
  it('goes to community', async () => {
    const { team, pull } = await withPull()
    await team.reviewed(pull, 'carl', 'zzwordszz of a review', 'CONTRIBUTOR', how)
    await team.settled()
    expect(await workOf(team)).toEqual(['community'])
    expect(team.prompts[0]!.userText).toContain('zzwordszz')
    expect(team.prompts[0]!.userText).toContain('"login":"carl"')
  })

  it('may contain slash commands that its author is allowed to use', async () => {
    const { team, pull } = await withPull({ Triage: commenting('In short: fine.') })
    await team.reviewed(pull, 'stranger', '/agent summarize', 'NONE', how)
    await team.settled()
    expect(await workOf(team)).not.toContain('triage')
    await team.reviewed(pull, 'carl', 'Well.\n\n/agent summarize', 'CONTRIBUTOR', how)
    await team.until(() => expect(pull.comments).toHaveLength(1))
    await team.settled()
    expect(await workOf(team)).toContain('triage')
    expect(pull.comments[0]!.body).toContain('In short: fine.')
    await team.reviewed(pull, 'stranger', '/agent help', 'NONE', how)
    await team.until(() => expect(pull.comments).toHaveLength(2))
    await team.settled()
  })

  it('counts as a verdict if its author may decide (S3.13)', async () => {
    const { team, pull } = await withPull({ Triage: proposing('close_issue', { reason: 'Old.' }) })
    await team.reviewed(pull, 'ada-gh', '/agent summarize', 'OWNER', how)
    await team.until(() =>
      expect(pull.comments.map(({ body }) => body).join()).toContain('/agent approve req_1'),
    )
    await team.settled()
    for (const who of ['stranger', 'vera-gh'])
      await team.reviewed(pull, who, '/agent approve req_1', 'OWNER', how)
    await team.settled()
    expect(pull.state).toBe('open')
    await team.reviewed(pull, 'ada-gh', '/agent approve req_1', 'NONE', how)
    await team.until(() => expect(pull.state).toBe('closed'))
    await team.settled()
  })
})

describe('a review', () => {
  it('without text creates no work, and neither does an edited or dismissed one, or one by a bot', async () => {
    const { team, pull } = await withPull()
    await team.reviewed(pull, 'carl', null)
    await team.reviewed(pull, 'carl', ' \n')
    await team.reviewed(pull, 'carl', '/agent help', 'OWNER', { action: 'edited' })
    await team.reviewed(pull, 'carl', '/agent help', 'OWNER', { action: 'dismissed' })
    await team.reviewed(pull, 'helper[bot]', '/agent help')
    await team.settled()
    expect(await workOf(team)).toEqual([])
    expect(pull.comments).toEqual([])
  })

  it('of a newcomer is welcomed once, however many lines it comments on', async () => {
    const { team, pull } = await withPull()
    await team.reviewed(pull, 'newbie', 'Some thoughts', 'FIRST_TIME_CONTRIBUTOR')
    for (let line = 0; line < 3; line++)
      await team.reviewed(pull, 'newbie', `Line ${line}`, 'FIRST_TIME_CONTRIBUTOR', { line: true })
    await team.settled()
    expect(await workOf(team)).toEqual(['community', 'community', 'community', 'community', 'concierge'])
  })

  it('is indexed beside a line comment with the same number, and deleted on its own or when its text is', async () => {
    const { team, pull } = await withPull()
    const send = (event: string, action: string, words: object) =>
      team.fake.send(team.hookUrl(), event, {
        action,
        pull_request: team.fake.repository.showPull(pull),
        ...words,
        sender: { login: 'carl', type: 'User' },
      })
    const review = (action: string, id: number, body: string | null) =>
      send('pull_request_review', action, { review: { id, body, user: { login: 'carl' } } })
    const comment = (action: string, id: number, body: string) =>
      send('pull_request_review_comment', action, { comment: { id, body, user: { login: 'carl' } } })
    const indexed = async () => {
      await team.settled()
      return await team
        .engine()
        .store.all("SELECT part, body FROM github_documents WHERE part <> '' ORDER BY part")
    }
    await review('submitted', 77, 'One.')
    await comment('created', 77, 'Two.')
    await comment('created', 78, 'Three.')
    expect(await indexed()).toEqual([
      { part: 'review-77', body: 'One.' },
      { part: 'review_comment-77', body: 'Two.' },
      { part: 'review_comment-78', body: 'Three.' },
    ])
    await comment('deleted', 77, 'Two.')
    await comment('edited', 78, 'New words.')
    expect(await indexed()).toEqual([
      { part: 'review-77', body: 'One.' },
      { part: 'review_comment-78', body: 'New words.' },
    ])
    await review('edited', 77, null)
    expect(await indexed()).toEqual([{ part: 'review_comment-78', body: 'New words.' }])
  })
})
