import type { DeliveryResult, SessionPort } from '../../runtimes/runtime.ts'
import { messageIdsIn } from '../message-ids.ts'
import { CommandExecution, type Item, type TurnRecord, UserMessage } from './records.ts'

/** Items that only the model produces. Compactions, hooks and a person's own commands are not answers. */
const OF_THE_MODEL = new Set([
  'agentMessage',
  'reasoning',
  'plan',
  'commandExecution',
  'fileChange',
  'mcpToolCall',
  'dynamicToolCall',
  'collabAgentToolCall',
  'webSearch',
  'imageView',
])

/** Follows messages by id through a thread's records: accepted as user text, answered by the model. */
export interface Arrivals {
  /** Resolves when the message sent with that client id is in the thread. */
  expect(clientId: string): { taken: Promise<DeliveryResult>; forget(): void }
  /** An item started, or is in the thread's history. */
  saw(turnId: string, item: Item): void
  /** The turn has ended. */
  ended(turn: TurnRecord): void
}

export function createArrivals(arrived: SessionPort['onEvidence']): Arrivals {
  const expected = new Map<string, (result: DeliveryResult) => void>()
  /** Messages the model is working on, by turn. */
  const unanswered = new Map<string, string[]>()

  function read(turnId: string, evidence: string) {
    const ids = unanswered.get(turnId)
    if (ids === undefined) return
    unanswered.delete(turnId)
    arrived(ids, 'read', evidence)
  }

  function taken(turnId: string, item: Item) {
    const { clientId, content } = UserMessage.parse(item)
    const ids = messageIdsIn(textOf(content))
    const evidence = `Codex has it as user message ${item.id} of turn ${turnId}`
    if (ids.length > 0) {
      unanswered.set(turnId, [...(unanswered.get(turnId) ?? []), ...ids])
      arrived(ids, 'submitted', evidence)
    }
    if (clientId) expected.get(clientId)?.({ state: 'submitted', evidence })
  }

  return {
    expect(clientId) {
      const { promise, resolve } = Promise.withResolvers<DeliveryResult>()
      expected.set(clientId, resolve)
      return { taken: promise, forget: () => expected.delete(clientId) }
    },
    saw(turnId, item) {
      if (item.type === 'userMessage') taken(turnId, item)
      else if (isOfTheModel(item)) read(turnId, `Codex answered it with ${item.type} ${item.id}`)
    },
    ended({ id, status }) {
      if (status === 'completed') read(id, `Codex completed turn ${id}`)
      // If a turn failed or was stopped before the model's first word, its messages stay unread.
      unanswered.delete(id)
    },
  }
}

function isOfTheModel(item: Item): boolean {
  if (item.type !== 'commandExecution') return OF_THE_MODEL.has(item.type)
  return CommandExecution.safeParse(item).data?.source !== 'userShell'
}

export function textOf(content: readonly { text?: string | undefined }[]): string {
  return content.map(({ text }) => text ?? '').join('\n')
}
