/** The whole product in its own process: store, door, engine, tmux, API. It answers the bench's questions about itself. */

import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { startOrchub } from '../../src/main.ts'
import type { SqlValue } from '../../src/store/store.ts'
import { decide } from '../../tests/harness/engine.ts'
import { answerParent } from './child.ts'

export interface ServiceOrder {
  folder: string
  config: ConfigInput
}

const order = JSON.parse(process.argv[2]!) as ServiceOrder
const config = defineConfig(order.config, { file: `${order.folder}/orc.yaml` })
const say =
  (level: string) =>
  (fields: Record<string, unknown>, text: string): void =>
    void process.stderr.write(`${level}: ${text} ${JSON.stringify(fields)}\n`)
const orchub = await startOrchub({
  config,
  port: 0,
  log: { debug() {}, info() {}, warn: say('warning'), error: say('error') },
})
const { engine } = orchub
const { store, sessions } = engine

/** When the service read a command and when it gave its message to the runtime, by the monotonic clock. */
const stages = new Map<string, { heard?: number; given?: number }>()
const stage = (id: string, more: { heard?: number; given?: number }) =>
  stages.set(id, { ...stages.get(id), ...more })
const now = () => Number(process.hrtime.bigint())
orchub.engine.onHandled((_, receipt, ms) => {
  if (receipt.status === 'delivered') stage(receipt.message_id, { heard: now() - ms * 1e6 })
})
for (const { name } of config.agents) {
  const session = sessions.session(name)
  if (session === undefined) continue
  const deliver = session.deliver.bind(session)
  session.deliver = (turn) => {
    for (const id of turn.ids) stage(id, { given: now() })
    return deliver(turn)
  }
}

answerParent({
  rows: ({ sql, params = [] }: { sql: string; params?: SqlValue[] }) => store.all(sql, params),
  start: (names: string[]) => Promise.all(names.map((name) => sessions.start(name))),
  stop: (names: string[]) => Promise.all(names.map((name) => sessions.stop(name))),
  state: (name: string) => sessions.session(name)?.state,
  /** The command that shows the pane ends with tmux's id of it. */
  pane: (name: string) => sessions.session(name)?.viewCommand?.at(-1)?.split('.').at(-1),
  screen: (name: string) => sessions.session(name)?.screen?.(60),
  approve: (id: string) => decide(engine, { kind: 'operator' }, id, { decision: 'approve' }),
  memory() {
    for (let again = 0; again < 4; again++) globalThis.gc!()
    return process.memoryUsage()
  },
  stages: () => [...stages],
  close: () => orchub.close('end'),
})
