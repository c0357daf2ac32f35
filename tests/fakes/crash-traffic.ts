import type { Daemon } from './daemon.ts'

/** One message that a sender repeats until it is acknowledged, however often the service is killed. */
interface Intended {
  sender: string
  number: number
  key: string
  acknowledged: boolean
}

/**
 * Persistent senders: each sends its messages in order, repeats an unacknowledged one with the same key,
 * and remembers the acknowledged ones. Afterwards each of these must be in the mailbox once, in order.
 */
export function createTraffic(daemon: Daemon, tokens: ReadonlyMap<string, string>, recipient: string) {
  const sent: Intended[] = []
  const waiting = new Map<string, Intended>()
  let acknowledged = 0

  async function attempt(one: Intended): Promise<boolean> {
    try {
      const { status, body } = await daemon.call(
        'POST',
        '/api/v1/commands',
        tokens.get(one.sender)!,
        { type: 'send_message', to: recipient, title: 'n', content: `${one.sender} ${one.number}` },
        { 'idempotency-key': one.key },
      )
      if (status !== 200 || body.status !== 'delivered') return false
    } catch {
      return false
    }
    one.acknowledged = true
    acknowledged += 1
    return true
  }

  async function insist(sender: string, stopped: () => boolean) {
    while (!stopped()) {
      const one = waiting.get(sender) ?? next(sender)
      waiting.set(sender, one)
      if (await attempt(one)) waiting.delete(sender)
      else await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  function next(sender: string): Intended {
    const number = sent.filter((one) => one.sender === sender).length + 1
    const one = { sender, number, key: `${recipient}-${sender}-${number}`, acknowledged: false }
    sent.push(one)
    return one
  }

  return {
    acknowledged: () => acknowledged,
    /** Lets every sender send until `count` more are acknowledged, then calls `then` while they continue. */
    async run(count: number, then: () => Promise<void>) {
      const target = acknowledged + count
      let done = false
      const senders = [...tokens.keys()].map((sender) => insist(sender, () => done))
      while (acknowledged < target) await new Promise((resolve) => setImmediate(resolve))
      await then()
      done = true
      await Promise.all(senders)
    },
    /** The problems of the mailbox; empty if it has every acknowledged message once, in order. */
    problems(mailbox: readonly { from: string; content: string }[]): string[] {
      const problems: string[] = []
      for (const sender of tokens.keys()) {
        const got = mailbox
          .filter((mail) => mail.from === sender)
          .map((mail) => Number(mail.content.split(' ')[1]))
        const wanted = sent
          .filter((one) => one.sender === sender && one.acknowledged)
          .map((one) => one.number)
        got.forEach((number, index) => {
          if (number !== index + 1) problems.push(`${sender}: message ${number} stands at place ${index + 1}`)
        })
        // The last one may have been stored although its acknowledgement was lost.
        if (got.length < wanted.length)
          problems.push(`${sender}: ${wanted.length} acknowledged, ${got.length} there`)
        if (got.length > wanted.length + 1)
          problems.push(`${sender}: ${got.length} there, ${wanted.length} acknowledged`)
      }
      return problems
    },
  }
}
