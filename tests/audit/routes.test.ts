import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, expect, it } from 'vitest'
import { AuditEntrySchema } from '../../src/api/contract.ts'
import { genesisHash } from '../../src/audit/chain.ts'
import { verifyStoredAudit } from '../../src/main.ts'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService
let witness: { seq: number; hash: string } | undefined
afterEach(() => service.close())

const open = async () => {
  witness = undefined
  service = await openTestService(
    {},
    { service: { verifyAudit: () => verifyStoredAudit(service.engine.store, witness) } },
  )
}
const send = (from: string, to: string, content: string) => service.say(from, 'send_message', { to, content })
const texts = (reply: { json: { entries: { text: string }[] } }) =>
  reply.json.entries.map((entry) => entry.text)
const verify = async () => (await service.get('/api/v1/audit/verify')).json

function tamper(sql: string) {
  const file = new DatabaseSync(join(service.folder, 'orc.db'))
  file.exec(sql)
  file.close()
}

describe('GET /api/v1/audit', () => {
  it('returns entries oldest first, by agent, pair, type, class, text and time', async () => {
    await open()
    await send('Master', 'Worker', 'first')
    await send('Worker', 'Master', 'second')
    await service.clock.advance(60_000)
    await send('Other', 'Worker', 'third')
    const look = async (query: string) => texts(await service.get(`/api/v1/audit?type=message&${query}`))
    expect(await look('')).toEqual(['first', 'second', 'third'])
    expect(await look('agent=master')).toEqual(['first', 'second'])
    expect(await look('agent=Worker&with=Other')).toEqual(['third'])
    expect(await look('text=SECOND')).toEqual(['second'])
    expect(await look('since=30s')).toEqual(['third'])
    expect(await look('until=2030-01-01T00:00:30Z')).toEqual(['first', 'second'])
    expect(await look('limit=2')).toEqual(['second', 'third'])
    expect(await look('class=public')).toEqual([])
    const { json } = await service.get('/api/v1/audit?type=message.accepted&limit=1')
    const from = json.entries[0].seq - 2
    expect(await look(`after=${from}&limit=1`)).toEqual(['second'])
    expect(texts(await service.get('/api/v1/audit?type=token'))).toHaveLength(4)
    for (const entry of json.entries) expect(AuditEntrySchema.parse(entry)).toEqual(entry)
  })

  it('returns one entry per line on request', async () => {
    await open()
    await Promise.all(Array.from({ length: 500 }, (_, index) => send('Master', 'Worker', `number ${index}`)))
    const reply = await service.call('GET', '/api/v1/audit?type=message', {
      headers: { accept: 'application/x-ndjson' },
    })
    expect(reply.headers['content-type']).toBe('application/x-ndjson')
    const lines = reply.text.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).text)).toEqual(
      Array.from({ length: 500 }, (_, index) => `number ${index}`),
    )
  })

  it('returns an empty response in either format when there are no entries', async () => {
    await open()
    expect((await service.get('/api/v1/audit?text=nothing')).json).toEqual({ entries: [] })
    const headers = { accept: 'application/x-ndjson' }
    expect((await service.call('GET', '/api/v1/audit?text=nothing', { headers })).text).toBe('')
  })

  it('never shows an agent a private entry, whatever it requests', async () => {
    await open()
    await service.command(service.tokens.worker, {
      type: 'send_message',
      from: 'Master',
      to: 'Other',
      content: 'x',
    })
    expect(texts(await service.get('/api/v1/audit?type=security'))).toHaveLength(1)
    for (const query of ['', '?type=security', '?class=private', '?agent=Worker']) {
      expect(texts(await service.get(`/api/v1/audit${query}`, service.tokens.worker)), query).toEqual([])
    }
  })
})

describe('GET /api/v1/audit/verify (C12)', () => {
  const fill = async () => {
    await open()
    for (const content of ['one', 'two', 'three']) await send('Master', 'Worker', content)
  }

  it('accepts an untouched store while others write', async () => {
    await fill()
    witness = { seq: 2, hash: service.entries[1]!.hash }
    const writing = Array.from({ length: 2000 }, () => send('Master', 'Worker', 'x'))
    const verdicts = await Promise.all(Array.from({ length: 5 }, verify))
    for (const verdict of verdicts) expect(verdict).toMatchObject({ ok: true })
    await Promise.all(writing)
    expect(await verify()).toMatchObject({ ok: true, count: service.entries.length })
  })

  const accepted = (id: string) => service.entries.find((entry) => entry.data?.message_id === id)!.seq

  it.each([
    ['a changed entry', `UPDATE audit SET text = 'changed' WHERE seq = 5`, 5, 'changed'],
    ['a changed class', `UPDATE audit SET class = 'public' WHERE seq = 2`, 2, 'changed'],
    ['a removed entry', 'DELETE FROM audit WHERE seq = 5', 5, 'missing'],
    ['a log cut off at its end', 'DELETE FROM audit WHERE seq >= 6', 6, 'cut_off'],
    ['an empty log', 'DELETE FROM audit', 1, 'cut_off'],
    [
      'an entry slipped in at the end',
      `INSERT INTO audit (seq, chain, at, type, class, actor, subject, text, confidence, data, hash)
       SELECT seq + 1, chain, at, type, class, actor, subject, text, confidence, data, hash
         FROM audit ORDER BY seq DESC LIMIT 1`,
      8,
      'unrecorded',
    ],
  ])('finds %s and names it', async (_, sql, seq, problem) => {
    await fill()
    expect(service.entries.at(-1)!.seq).toBe(7)
    tamper(sql)
    expect(await verify()).toMatchObject({ ok: false, seq, problem })
  })

  it('finds a truncation that includes the head, by the witness', async () => {
    await fill()
    const { seq, hash } = service.entries.at(-1)!
    const before = service.entries.at(-2)!
    witness = { seq, hash }
    tamper(
      `DELETE FROM audit WHERE seq = ${seq}; UPDATE audit_heads SET seq = ${before.seq}, hash = '${before.hash}';
       DELETE FROM messages WHERE seq = 3; DELETE FROM deliveries WHERE message = 3`,
    )
    expect(await verify()).toMatchObject({ ok: false, seq, problem: 'cut_off' })
    witness = { seq: 1, hash: genesisHash('another') }
    expect(await verify()).toMatchObject({ ok: false, seq: 1, problem: 'rewritten' })
  })

  it.each([
    ['changed', `UPDATE messages SET content = 'changed' WHERE seq = 2`],
    ['changed together with its digest', `UPDATE messages SET content = 'c', digest = '00' WHERE seq = 2`],
    ['removed', 'DELETE FROM messages WHERE seq = 2'],
  ])('finds a message that was %s', async (_, sql) => {
    await fill()
    tamper(sql)
    const verdict = await verify()
    expect(verdict).toMatchObject({ ok: false, seq: accepted('msg_2'), problem: 'message' })
    expect(verdict.message).toContain('msg_2')
  })

  it.each([
    ['at the end', 9],
    ['in the middle', 2],
  ])('finds a message slipped in %s', async (_, seq) => {
    await open()
    await send('Master', 'Worker', 'one')
    if (seq === 2) tamper('UPDATE messages SET seq = 3 WHERE seq = 3')
    tamper(
      `INSERT INTO messages SELECT ${seq}, sender, recipient, title, content, priority, in_reply_to, correlation, hop, at, digest, task, kind, quiet
         FROM messages WHERE seq = 1`,
    )
    const verdict = await verify()
    expect(verdict).toMatchObject({ ok: false, problem: 'message' })
    expect(verdict.message).toContain(`msg_${seq}`)
  })
})
