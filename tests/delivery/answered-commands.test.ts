import { describe, expect, it, vi } from 'vitest'
import { AppError } from '../../src/base/errors.ts'
import { type CommandResponse, createAnsweredCommands, createListener } from '../../src/delivery/listener.ts'
import type { Receipt } from '../../src/protocol/receipt.ts'
import { createRegistry } from '../../src/protocol/registry.ts'
import type { Store } from '../../src/store/store.ts'

const COMMAND = '<orc-command name="send_message" to="Bob">hello</orc-command>'
const GONE = new AppError('STORE_UNAVAILABLE', 'the database is away')

/** A listener whose commands fail until the store recovers. */
function listen(answered: ReturnType<typeof createAnsweredCommands>) {
  const answers: CommandResponse[] = []
  let isBack = false
  const listener = createListener({
    registry: createRegistry(),
    nonce: 'n',
    async handle() {
      if (!isBack) throw GONE
      return { status: 'error', code: 'NOT_FOUND', message: 'There is no Bob' } as Receipt
    },
    respond: async (response) => void answers.push(response),
    answered,
  })
  return { listener, answers, recover: () => (isBack = true) }
}

describe('commands of an agent while the store is unavailable', () => {
  it('get an error, and are carried out when the store is back (C25)', async () => {
    const broken = { get: () => Promise.reject(GONE), write: () => Promise.reject(GONE) } as unknown as Store
    const log = { warn: vi.fn(), error: vi.fn(), info: vi.fn() }
    const { listener, answers, recover } = listen(createAnsweredCommands(broken, 'Alice', log as never))
    await listener.hear({ text: COMMAND, channel: 'transcript', key: 'k1' })
    await listener.endTurn()
    recover()
    await listener.hear({ text: COMMAND, channel: 'transcript', key: 'k2' })
    await listener.endTurn()
    expect(answers.map(({ block }) => /the database is away|There is no Bob/.exec(block)?.[0])).toEqual([
      'the database is away',
      'There is no Bob',
    ])
  })

  it('are answered again when they are read again', async () => {
    const places = new Set<string>()
    const { listener, answers, recover } = listen({
      has: async (place) => places.has(place),
      add: async (place) => void places.add(place),
    })
    const said = { text: COMMAND, channel: 'transcript', key: 'k1' } as const
    await listener.hear(said)
    recover()
    await listener.hear(said)
    await listener.hear(said)
    expect(answers).toHaveLength(2)
  })
})
