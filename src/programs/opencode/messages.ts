import type { Failure, Message, MessageInfo, Part } from './records.ts'

/** Messages as events build them up: first the message, then its parts, each again whenever it changes. */
export function createMessages() {
  const growing = new Map<string, Message>()

  return {
    take(info: MessageInfo): Message {
      const message = { info, parts: growing.get(info.id)?.parts ?? [] }
      growing.set(info.id, message)
      return message
    },
    /** One that was read whole. */
    restore(message: Message): Message {
      growing.set(message.info.id, message)
      return message
    },
    /** Undefined for a part of a message that is no longer of interest. */
    takePart(part: Part): Message | undefined {
      const known = growing.get(part.messageID)
      if (known === undefined) return undefined
      const others = known.parts.filter(({ id }) => id !== part.id)
      const parts = [...others, part].sort((a, b) => (a.id < b.id ? -1 : 1))
      const message = { ...known, parts }
      growing.set(part.messageID, message)
      return message
    },
    /** Its turn is over: an idle agent's conversation is not held in memory. */
    forget(conversation: string) {
      for (const [id, { info }] of growing) if (info.sessionID === conversation) growing.delete(id)
    },
    /** The turn broke off; its messages are told so only later. */
    breakOff(conversation: string, error: Failure) {
      for (const [id, { info, parts }] of growing) {
        if (info.sessionID === conversation && info.role === 'assistant')
          growing.set(id, { info: { ...info, error }, parts })
      }
    },
  }
}
