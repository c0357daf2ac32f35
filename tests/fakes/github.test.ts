/** The fake GitHub itself: it fails the test if a call or an answer doesn't fit GitHub's description. */
import { describe, expect, it } from 'vitest'
import { type FakeGitHub, startGitHub, TOKEN } from './github/github.ts'

async function ask(fake: FakeGitHub, method: string, path: string, body?: object) {
  const answer = await fetch(`${fake.url}${path}`, {
    method,
    headers: { authorization: `token ${TOKEN}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return answer.status
}

describe('the fake GitHub', () => {
  it.each([
    ['a call that there is not', 'POST', '/repos/octo/hello/issues/1/label', { labels: ['a'] }],
    ['a field of another kind', 'POST', '/repos/octo/hello/issues/1/labels', { labels: [1] }],
    ['a field that there is not', 'POST', '/repos/octo/hello/issues/1/comments', { body: 'x', text: 'x' }],
    ['a missing field', 'POST', '/repos/octo/hello/issues/1/comments', {}],
    ['a missing body', 'POST', '/repos/octo/hello/issues/1/comments', undefined],
    ['a word that is not enumerated', 'PATCH', '/repos/octo/hello/issues/1', { state: 'shut' }],
    ['a parameter that there is not', 'GET', '/repos/octo/hello/issues?author=ada', undefined],
    ['a parameter of another kind', 'GET', '/repos/octo/hello/issues/one', undefined],
  ])('does not take %s', async (_, method, path, body) => {
    const fake = await startGitHub()
    fake.openIssue()
    expect(await ask(fake, method, path, body)).toBe(400)
    await expect(fake.close()).rejects.toThrow('not as GitHub describes it')
  })

  it('accepts the same requests as GitHub, and answers the same way', async () => {
    const fake = await startGitHub()
    fake.openIssue()
    expect(await ask(fake, 'POST', '/repos/octo/hello/issues/1/labels', { labels: ['a'] })).toBe(200)
    expect(await ask(fake, 'GET', '/repos/octo/hello/issues/2')).toBe(404)
    await fake.close()
  })

  it('refuses to give an answer that GitHub would not give', async () => {
    const fake = await startGitHub()
    // A title has the wrong type.
    fake.openIssue({ title: 7 as unknown as string })
    expect(await ask(fake, 'GET', '/repos/octo/hello/issues/1')).toBe(200)
    await expect(fake.close()).rejects.toThrow('the fake: issues/get 200/title must be string')
  })
})
