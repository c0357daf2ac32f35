import { afterEach, describe, expect, it } from 'vitest'
import type { AgentName } from '../../scripts/install-agents.ts'
import type { ModelReply, ModelRequest } from '../fakes/model-server/play.ts'
import { openTeam, type RealTeam } from './harness/team.ts'

const PROGRAMS: AgentName[] = ['claude-code', 'claude-code-2.1.197', 'codex', 'gemini', 'opencode']
const ROUNDS = 10
/** Twenty turns of two programs on a busy machine. */
const PATIENCE_MS = 240_000

let team: RealTeam | undefined
afterEach(async () => {
  await team?.close()
  team = undefined
})

type Say = (to: string, title: string) => ModelReply

const byText: Say = (to, title) => ({
  text: `I write to ${to}.\n<orc-command name="send_message" to="${to}" title="${title}">content of ${title}</orc-command>`,
})
const byTool: Say = (to, title) => ({
  text: `I call the tool for ${title}.`,
  toolCalls: [
    {
      mcp: 'send_message',
      input: { to, title, content: `content of ${title}` },
    },
  ],
})

/** Alice begins; each answers the other's last message until ten went each way. */
function tennis(say: Say) {
  return (request: ModelRequest): ModelReply | undefined => {
    if (request.side) return undefined
    if (request.toolResults.length > 0) return { text: 'Done.' }
    const heard = [...request.prompt.matchAll(/Title: (begin|ping (\d+)|pong (\d+))/g)].at(-1)
    if (heard === undefined) return undefined
    const [, title, ping, pong] = heard
    if (title === 'begin') return say('Bob', 'ping 1')
    if (ping !== undefined) return say('Alice', `pong ${ping}`)
    return Number(pong) < ROUNDS ? say('Bob', `ping ${Number(pong) + 1}`) : { text: 'That was the last one.' }
  }
}

describe.each(PROGRAMS)('two agents of %s', (program) => {
  it.each([
    ['in their text', byText, 0],
    ['by MCP', byTool, ROUNDS],
  ])(
    'exchange ten messages each way %s: none lost, none duplicated, in order',
    async (_, say, byToolAtLeast) => {
      team = await openTeam({ programs: { Alice: program, Bob: program }, play: tennis(say) })
      await team.idle('Alice')
      await team.idle('Bob')
      await team.order('send_message', { to: 'Alice', title: 'begin', content: 'Begin, please.' })
      const areRead = (mails: readonly { delivery?: string }[]) =>
        mails.every((mail) => mail.delivery === 'read')
      // The transcript shows what Bob has read, a moment after its tool sent the answer.
      const both = async () => {
        const [bobs, alices] = await Promise.all([team!.mailOf('Bob'), team!.mailOf('Alice')])
        const isOver = alices.at(-1)?.title === `pong ${ROUNDS}` && areRead([...bobs, ...alices])
        return isOver ? ([bobs, alices] as const) : undefined
      }
      const [pings, pongs] = await team.until('the last message is read', both, PATIENCE_MS)
      const numbers = Array.from({ length: ROUNDS }, (_, index) => index + 1)
      expect(pings.map((mail) => mail.title)).toEqual(numbers.map((number) => `ping ${number}`))
      expect(pongs.map((mail) => mail.title)).toEqual(['begin', ...numbers.map((number) => `pong ${number}`)])
      for (const name of ['Alice', 'Bob']) {
        // The result of its last call reaches the model after the message that was sent by it.
        const results = () =>
          team!.model.calls(name).filter((call) => call.request?.toolResults.length === 1).length
        await expect.poll(results).toBeGreaterThanOrEqual(byToolAtLeast)
      }
      // The model actually received each message once.
      for (const mail of [...pings, ...pongs]) {
        const name = pings.includes(mail) ? 'Bob' : 'Alice'
        const last = team.model.calls(name).findLast((call) => call.request?.side === false)!
        const received = JSON.stringify(last.body).split(`[ORCHUB MESSAGE ${mail.id}]`).length - 1
        expect(received, `${mail.id} ${mail.title}\n${await team.explain()}`).toBe(1)
      }
    },
  )
})
