import { afterEach } from 'vitest'
import type { ConfigInput } from '../../src/config/config.ts'
import { createPuppets, type Puppets } from '../fakes/puppet-runtime.ts'
import { type Board, openBoard } from '../harness/engine.ts'

type Input = Omit<ConfigInput, 'store' | 'service'>

export const TEAM = {
  agents: {
    Master: {},
    Worker: { program: 'any', parent: 'Master', deliver: 'together' },
  },
  permissions: { urgent: 'allow' },
} satisfies ConfigInput

/** Master, who only holds a token, and Worker, a puppet in a terminal; closed after each test. */
export function createWorkerStage() {
  let board: Board
  let puppets: Puppets
  afterEach(() => board.close())
  const settle = () => board.clock.advance(0)

  return {
    get board() {
      return board
    },
    get puppets() {
      return puppets
    },
    async open(input: Input = TEAM, given = createPuppets()) {
      puppets = given
      board = await openBoard(input, { runtimes: [puppets] })
      await settle()
    },
    async reopen(next?: Input) {
      board = await board.reopen(next)
    },
    settle,
    worker: () => puppets.of('Worker'),
    send: (title: string, fields: Record<string, unknown> = {}) =>
      board.say('Master', 'send_message', { to: 'Worker', title, content: `about ${title}`, ...fields }),
    deliveries: async () => (await board.mailOf('Worker')).map((mail) => mail.delivery),
  }
}
