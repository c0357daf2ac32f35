import { afterEach, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from '../fakes/daemon.ts'
import { isGenuine, openReceiver, type Receiver, taken } from '../fakes/webhook-receiver.ts'

const SECRET = `whsec_${Buffer.from('a secret of twenty-four!').toString('base64')}`

let daemon: Daemon | undefined
let receiver: Receiver | undefined
afterEach(async () => {
  await daemon?.close()
  await receiver?.close()
})

describe('webhooks of a killed service', () => {
  it('reach the receiver after a restart, each with one id and a valid signature', async () => {
    receiver = await openReceiver()
    daemon = await createDaemon(
      `agents: { Ada: {}, Ben: {} }
webhooks:
  chat: { url: "${receiver.url}", events: [human.asked], secret_env: CHAT_SECRET }
`,
      { env: { CHAT_SECRET: SECRET } },
    )
    await daemon.start()
    const ada = await daemon.token('Ada')
    const ask = (question: string) =>
      daemon!.call('POST', '/api/v1/commands', ada, { type: 'request_user_input', question })
    receiver.answer = (_, response) => void response.writeHead(503).end()
    await ask('first?')
    await receiver.got(1)
    await ask('second?')
    await daemon.kill()
    const before = receiver.letters.length
    receiver.answer = taken
    await daemon.start()
    const operator = daemon.operatorToken()
    // It waits for the next attempt, or a test reactivates it.
    const tested = await daemon.call('POST', '/api/v1/webhooks/chat/test', operator, {})
    expect(tested.body).toMatchObject({ sent: true, status: 204 })
    const letters = (await receiver.got(before + 3)).slice(before)
    const events = letters.filter(({ json }) => json.type === 'human.asked')
    expect(events.map(({ json }) => json.data.request_id)).toEqual(['req_1', 'req_2'])
    expect(events[0]!.headers['webhook-id']).toBe(receiver.letters[0]!.headers['webhook-id'])
    expect(letters.every((letter) => isGenuine(letter, SECRET))).toBe(true)
    const deadline = Date.now() + 5000
    for (;;) {
      const { webhooks } = (await daemon.call('GET', '/api/v1/webhooks', operator)).body
      const [state] = webhooks as { pending: number; sent: number }[]
      if (state!.sent === 2 && state!.pending === 0) break
      if (Date.now() > deadline) throw new Error(JSON.stringify(webhooks))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(daemon.output()).not.toContain(SECRET)
    expect((await daemon.call('GET', '/api/v1/webhooks', ada)).status).toBe(403)
  })
})
