import { afterEach } from 'vitest'
import type { SessionState } from '../../src/base/agent.ts'
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
    /** The runtime reports that state of Worker. */
    async become(state: SessionState) {
      puppets.of('Worker').become(state)
      await settle()
    },
    /** The ids of the messages in each turn that Worker got. */
    given: () => puppets.of('Worker').turns.map(({ ids }) => ids),
    order: (action: string) => engine.order('request_action', { action, target: 'Worker' }),
    send: (title: string, fields: Record<string, unknown> = {}) =>
      engine.say('Master', 'send_message', { to: 'Worker', title, content: `about ${title}`, ...fields }),
    deliveries: async () => (await engine.mailOf('Worker')).map((mail) => mail.delivery),
  }
}
