import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTeamFolder, type TeamFolder } from '../orc.ts'

let team: TeamFolder

beforeEach(() => {
  team = createTeamFolder()
})
afterEach(() => team.close())

const TOKEN = /^orct_[\w-]{43}\n$/

describe('orc token', () => {
  it('prints the token of an agent and nothing else, while the service runs', async () => {
    await team.start()
    const made = await team.orc('token worker')
    expect(made).toMatchObject({ code: 0, err: '', out: expect.stringMatching(TOKEN) })
    const env = { ORC_TOKEN: made.out.trim() }
    expect((await team.orc('send-message --to Master hi', { env })).code).toBe(0)
    expect((await team.orc('token Nobody')).code).toBe(7)
    expect((await team.orc('token Master', { env })).code).toBe(8)
  })

  it('works without a running service, and the token is valid once it starts', async () => {
    const made = await team.orc('token Worker')
    expect(made).toMatchObject({ code: 0, err: '', out: expect.stringMatching(TOKEN) })
    expect((await team.orc('token Nobody')).err).toContain('Valid agents: Master, Worker, Spy')
    await team.start()
    expect(
      (await team.orc('send-message --to Master hi', { env: { ORC_TOKEN: made.out.trim() } })).code,
    ).toBe(0)
  })

  it('lists tokens by id, without the tokens', async () => {
    await team.start()
    const token = (await team.orc('token Worker')).out.trim()
    const list = await team.orc('token list')
    expect(list.out).toMatch(/tok_1 {2}operator {2}.*\ntok_2 {2}Worker/)
    expect(list.out).not.toContain(token)
    expect((await team.orc('token list --json')).json()).toMatchObject([
      { id: 'tok_1' },
      { id: 'tok_2', agent: 'Worker' },
    ])
  })

  it('revokes at once, by id and by agent', async () => {
    await team.start()
    const env = { ORC_TOKEN: (await team.orc('token Worker')).out.trim() }
    expect((await team.orc('token revoke tok_2')).out).toBe('Revoked 1 token.\n')
    expect((await team.orc('list-agents', { env })).code).toBe(8)
    await Promise.all([team.orc('token Spy'), team.orc('token Spy')])
    expect((await team.orc('token revoke spy --json')).json()).toEqual([{ revoked: 2 }])
    expect((await team.orc('token revoke Spy')).code).toBe(7)
  })

  it('revokes and lists in the store while no service runs', async () => {
    await team.orc('token Worker')
    expect((await team.orc('token list --json')).json()).toMatchObject([{ agent: 'Worker' }])
    expect((await team.orc('token revoke worker')).out).toBe('Revoked 1 token.\n')
    expect((await team.orc('token revoke worker')).code).toBe(7)
    await team.fails('token Worker', 8, 'identifies you as an agent', { env: { ORC_TOKEN: 'orct_any' } })
  })
})
