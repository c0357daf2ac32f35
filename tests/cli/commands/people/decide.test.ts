import { describe, expect, it } from 'vitest'
import { servedTeam } from '../../orc.ts'

const team = servedTeam()

/** Sends a message that a rule holds for a person; returns the id of the request. */
async function hold(text: string): Promise<string> {
  const ran = await team.orc(['send-message', '--from', 'Worker', '--to', 'Spy', '--json', text])
  const [receipt] = ran.json() as { status: string; request_id: string }[]
  expect(receipt!.status).toBe('held')
  return receipt!.request_id
}

const contents = async (agent: string) => (await team.mailbox(agent)).map(({ content }) => content)

describe('orc inbox (C9)', () => {
  it('says that nothing needs attention', async () => {
    expect(await team.orc('inbox')).toMatchObject({
      code: 0,
      out: '',
      err: 'Nothing needs your attention.\n',
    })
  })

  it('shows the asker, the reason, the exact command, and how to answer', async () => {
    const id = await hold('first line\nsecond line')
    const { out } = await team.orc('inbox')
    expect(out).toContain(`${id}  approval, open`)
    expect(out).toContain('a person wants to know')
    expect(out).toContain('    content:\n        first line\n        second line')
    expect(out).toContain(`orc approve ${id}, or orc reject ${id}`)
    expect((await team.orc('inbox --json')).json()).toMatchObject([
      { id, asker: 'Worker', action: { type: 'send_message' } },
    ])
    await team.orc(`reject ${id}`)
    expect((await team.orc('inbox')).out).toBe('')
    expect((await team.orc('inbox --all')).out).toContain(`${id}  approval, rejected`)
  })

  it('follows: shows open and then new requests, once each', async () => {
    const before = await hold('before')
    const { child, shows, ended } = team.begin('inbox --follow --json')
    await shows(before)
    const after = await hold('after')
    await shows(`"${after}"`)
    child.kill('SIGINT')
    const ran = await ended
    expect(ran).toMatchObject({ code: 130, err: '' })
    expect((ran.json() as { id: string }[]).map(({ id }) => id)).toEqual([before, after])
  })
})

describe('a verdict', () => {
  it('runs the held command and prints its result', async () => {
    const id = await hold('approved text')
    const ran = await team.orc(['approve', id, '--comment', 'go ahead'])
    expect(ran).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${id} is approved; Worker is notified`),
    })
    expect(ran.out).toMatch(/delivered: msg_\d+, in the mailbox of Spy/)
    expect(await contents('Spy')).toContain('approved text')
    expect((await contents('Worker')).at(-1)).toContain('go ahead')
  })

  it('refuses it, and notifies the asker of the reason', async () => {
    const id = await hold('rejected text')
    const ran = await team.orc(['reject', id, '--comment', 'not before Monday', '--json'])
    expect(ran.json()).toMatchObject([{ request: { id, state: 'rejected', comment: 'not before Monday' } }])
    expect(await contents('Spy')).not.toContain('rejected text')
    expect((await contents('Worker')).at(-1)).toContain('not before Monday')
  })

  it('counts once, and only for an open request', async () => {
    const id = await hold('twice')
    await team.orc(`approve ${id}`)
    await team.fails(`reject ${id}`, 1, 'CONFLICT')
    expect((await team.orc('approve req_9999')).code).toBe(7)
    expect((await team.orc('approve')).err).toContain('Usage: orc approve ID')
  })

  it("is the operator's, not an agent's", async () => {
    const id = await hold('my own')
    const env = { ORC_TOKEN: await team.token('Worker') }
    await team.fails(`approve ${id}`, 8, 'FORBIDDEN', { env })
    expect(await contents('Spy')).not.toContain('my own')
  })

  it('can be an answer, also from standard input', async () => {
    const id = await hold('a question?')
    const wrong = await team.orc(['answer', id, 'yes', 'indeed'])
    expect(wrong.code).not.toBe(0)
    expect(wrong.err).toContain('hint:')
    expect((await team.orc(['answer', id])).err).toContain('TEXT is missing')
    expect((await team.orc('answer req_9999 -', { input: 'x' })).code).toBe(7)
  })
})
