/** Texts of reviews count like comments (issue 6, §1). */
import { describe, expect, it } from 'vitest'
import { type GithubTeam, NOTHING, openGithubTeam } from './harness.ts'

const summary = {
  ...NOTHING,
  actions_taken: [{ action_type: 'comment_posted', details: { body: 'In short: fine.' }, confidence: 0.99 }],
}

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
    const { team, pull } = await withPull({ Triage: summary })
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
    const { team, pull } = await withPull({
      Triage: {
        ...NOTHING,
        actions_taken: [{ action_type: 'close_issue', details: { reason: 'Old.' }, confidence: 0.99 }],
      },
    })
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

  it('is indexed beside a comment with the same number, and deleted on its own', async () => {
    const { team, pull } = await withPull()
    const send = (event: string, action: string, words: object) =>
      team.fake.send(team.hookUrl(), event, {
        action,
        pull_request: team.fake.repository.showPull(pull),
        ...words,
        sender: { login: 'carl', type: 'User' },
      })
    const said = (body: string) => ({ id: 77, body, user: { login: 'carl' }, author_association: 'NONE' })
    await send('pull_request_review', 'submitted', { review: said('One.') })
    await send('pull_request_review_comment', 'created', { comment: said('Two.') })
    await team.settled()
    const bodies = () =>
      team.engine().store.all("SELECT part, body FROM github_documents WHERE part <> '' ORDER BY part")
    expect(await bodies()).toEqual([
      { part: 'review-77', body: 'One.' },
      { part: 'review_comment-77', body: 'Two.' },
    ])
    await send('pull_request_review_comment', 'deleted', { comment: said('Two.') })
    await team.settled()
    expect(await bodies()).toEqual([{ part: 'review-77', body: 'One.' }])
  })

  it('that is edited to an empty text is deleted from the index, and so is a line comment of an older store', async () => {
    const { team, pull } = await withPull()
    const { store } = team.engine()
    const send = (event: string, action: string, words: object) =>
      team.fake.send(team.hookUrl(), event, {
        action,
        pull_request: team.fake.repository.showPull(pull),
        ...words,
        sender: { login: 'carl', type: 'User' },
      })
    const said = (id: number, body: string | null) => ({
      ...{ id, body, user: { login: 'carl' }, author_association: 'NONE' },
    })
    const parts = async () =>
      (
        await store.all<{ part: string }>("SELECT part FROM github_documents WHERE part <> '' ORDER BY part")
      ).map(({ part }) => part)
    await send('pull_request_review', 'submitted', { review: said(1, 'One.') })
    await send('pull_request_review_comment', 'created', { comment: said(2, 'Two.') })
    await send('pull_request_review_comment', 'created', { comment: said(3, 'Three.') })
    await team.settled()
    expect(await parts()).toEqual(['review-1', 'review_comment-2', 'review_comment-3'])
    await send('pull_request_review', 'edited', { review: said(1, null) })
    await send('pull_request_review_comment', 'deleted', { comment: said(2, '') })
    await send('pull_request_review_comment', 'edited', { comment: said(3, 'New words.') })
    await team.settled()
    expect(await parts()).toEqual(['review_comment-3'])
  })
})
