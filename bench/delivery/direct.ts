/**
 * The same path without the store: the same panes, log reader, scanner, envelope, guard and paste in one process, with
 * a list in memory instead of the door and the store. Nothing is checked, stored or audited.
 */

import { join } from 'node:path'
import { createListener } from '../../src/delivery/listener.ts'
import { SYSTEM_CLOCK } from '../../src/main.ts'
import type { Message } from '../../src/messages/message.ts'
import { createAnyProgram } from '../../src/programs/any/program.ts'
import { createRegistry } from '../../src/protocol/registry.ts'
import { renderEnvelope } from '../../src/protocol/response.ts'
import type { Session, SessionPort } from '../../src/runtimes/runtime.ts'
import { createTmuxRuntime } from '../../src/runtimes/tmux/runtime.ts'
import { QUIET_LOG } from '../../tests/fakes/quiet-log.ts'
import { answerParent } from './child.ts'

export interface DirectOrder {
  folder: string
  socket: string
  /** Settings of the program `any` by agent name. */
  agents: Record<string, { with: Record<string, unknown> }>
}

const NONCE = 'direct'
const { folder, socket, agents } = JSON.parse(process.argv[2]!) as DirectOrder
const registry = createRegistry([])
const runtime = createTmuxRuntime({
  ...{ socket, programs: [createAnyProgram()], clock: SYSTEM_CLOCK, bin: process.execPath },
  log: QUIET_LOG,
})
const sessions = new Map<string, Session>()
const waiting = new Map<string, Message[]>()
const delivering = new Set<string>()
let accepted = 0

function handOver(message: Message) {
  waiting.get(message.to)!.push(message)
  void deliverAll(message.to)
}

async function deliverAll(name: string) {
  if (delivering.has(name)) return
  delivering.add(name)
  while (sessions.get(name)?.state === 'idle' && waiting.get(name)!.length > 0) {
    const messages = waiting.get(name)!.splice(0)
    const turn = { text: messages.map(renderEnvelope).join('\n\n'), ids: messages.map(({ id }) => id) }
    const { state } = await sessions.get(name)!.deliver(turn)
    if (state === 'queued') waiting.get(name)!.unshift(...messages)
  }
  delivering.delete(name)
}

function portOf(name: string): SessionPort {
  const listener = createListener({
    registry,
    nonce: NONCE,
    async handle({ fields }) {
      const { to, title, content } = fields as Record<'to' | 'title' | 'content', string>
      const id = `msg_${++accepted}`
      handOver({ id, from: name, to, title, content, priority: 'normal' } as Message)
      return { status: 'delivered', message_id: id, delivery: 'queued', to }
    },
    respond: async () => {},
  })
  return {
    onText: (utterance) => listener.hear(utterance),
    onStateChange: () => void deliverAll(name),
    onObstacle() {},
    isPaused: () => false,
    onEvidence() {},
    askPermission: async () => undefined,
    onUsage() {},
    saveState: async () => {},
  }
}

for (const [name, { with: settings }] of Object.entries(agents)) {
  waiting.set(name, [])
  const session = await runtime.start(
    {
      ...{ name, program: 'any', settings, prompt: '', cwd: folder, savedState: undefined, nonce: NONCE },
      folder: join(folder, 'agents', name),
      credentials: async () => ({ url: 'http://127.0.0.1:9', token: 'none' }),
    },
    portOf(name),
  )
  sessions.set(name, session)
}

answerParent({
  state: (name: string) => sessions.get(name)?.state,
  pane: (name: string) => sessions.get(name)?.viewCommand?.at(-1)?.split('.').at(-1),
  screen: (name: string) => sessions.get(name)?.screen?.(60),
  async close() {
    await Promise.all([...sessions.values()].map((session) => session.stop()))
    await runtime.close?.()
  },
})
