import { describe, expect, it } from 'vitest'
import { asCommand, cleaned, HOSTILE } from '../../bench/delivery/messages.ts'
import { type Got, readTurn, tally } from '../../bench/delivery/tally.ts'
import { renderEnvelope } from '../../src/protocol/response.ts'
import { scanText } from '../../src/protocol/scanner.ts'

const frame = (id: number, title: string, content: string) =>
  renderEnvelope({ id: `msg_${id}`, from: 'Sender', title, content, priority: 'normal' } as never)

const SENT = [
  { mark: 'delivery 1', content: 'first' },
  { mark: 'delivery 2', content: 'second' },
]
const FIRST = frame(1, 'delivery 1', 'first')
const SECOND = frame(2, 'delivery 2', 'second')

const count = (got: Got[], answers = 0) => tally({ sent: SENT, got, answers, uncertain: 0 })
const CLEAN = {
  ...{ sent: 2, submitted: 2, lost: 0, doubled: 0, intoDialog: 0, fused: 0, changed: 0, uncertain: 0 },
}

describe('the tally of deliveries', () => {
  it('is clean when each message came once, alone or together', () => {
    expect(count([{ text: FIRST }, { text: SECOND }])).toEqual(CLEAN)
    expect(count([{ text: `${FIRST}\n\n${SECOND}` }])).toEqual(CLEAN)
  })

  it('finds what is lost', () => {
    expect(count([{ text: FIRST }])).toMatchObject({ submitted: 1, lost: 1 })
  })

  it('finds what came twice, under one id or two', () => {
    expect(count([{ text: FIRST }, { text: FIRST }, { text: SECOND }])).toMatchObject({ doubled: 1 })
    const again = frame(3, 'delivery 1', 'first')
    expect(count([{ text: FIRST }, { text: again }, { text: SECOND }])).toMatchObject({ doubled: 1 })
  })

  it('finds a draft before or behind a message, and half a message', () => {
    expect(count([{ text: `half a${FIRST}` }, { text: SECOND }])).toMatchObject({ fused: 1, lost: 0 })
    expect(count([{ text: `${FIRST}half a` }, { text: SECOND }])).toMatchObject({ fused: 1, lost: 0 })
    expect(count([{ text: FIRST.slice(20) }, { text: SECOND }])).toMatchObject({ fused: 1, lost: 1 })
  })

  it('finds a text that changed on its way', () => {
    expect(count([{ text: frame(1, 'delivery 1', 'frist') }, { text: SECOND }])).toMatchObject({ changed: 1 })
  })

  it('finds a dialog that nobody but us can have answered', () => {
    const all = [{ text: FIRST }, { text: SECOND }]
    expect(count([...all, { answered: 'y' }], 1)).toMatchObject({ intoDialog: 0 })
    expect(count([...all, { answered: '\r' }], 1)).toMatchObject({ intoDialog: 1 })
    expect(count([...all, { answered: 'y' }], 0)).toMatchObject({ intoDialog: 1 })
  })
})

describe('the texts of the bench', () => {
  const known = () => ({
    type: 'send_message',
    fields: new Set(['to', 'title', 'content', 'nonce']),
    body: 'content',
  })

  it.each(Object.entries(HOSTILE))('%s is one command, and arrives as it should', (_, content) => {
    const found = scanText(asCommand('delivery 1', 'Receiver', content), known)
    expect(found).toMatchObject([{ ok: true, fields: { title: 'delivery 1', to: 'Receiver' } }])
    const heard = (found[0] as unknown as { fields: { content: string } }).fields.content
    const { frames, rest } = readTurn(frame(7, 'delivery 1', heard))
    expect(frames).toEqual([{ id: 'msg_7', title: 'delivery 1', content: cleaned(content) }])
    expect(rest).toBe('')
  })
})
