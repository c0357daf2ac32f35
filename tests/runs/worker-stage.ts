import { afterEach } from 'vitest'
import type { ConfigInput } from '../../src/config/config.ts'
import { createPuppets, type Puppets } from '../fakes/puppet-runtime.ts'
import { openTestEngine, type TestEngine } from '../harness/engine.ts'

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
  let engine: TestEngine
  let puppets: Puppets
  afterEach(() => engine.close())
  const settle = () => engine.clock.advance(0)

  return {
    get engine() {
      return engine
    },
    get puppets() {
      return puppets
    },
    async open(input: Input = TEAM, given = createPuppets()) {
      puppets = given
      engine = await openTestEngine(input, { runtimes: [puppets] })
      await settle()
    },
    async reopen(next?: Input) {
      engine = await engine.reopen(next)
    },
    settle,
    worker: () => puppets.of('Worker'),
    send: (title: string, fields: Record<string, unknown> = {}) =>
      engine.say('Master', 'send_message', { to: 'Worker', title, content: `about ${title}`, ...fields }),
    deliveries: async () => (await engine.mailOf('Worker')).map((mail) => mail.delivery),
  }
}
