import { describe, expect, it } from 'vitest'
import { createWorkerStage, TEAM } from '../runs/worker-stage.ts'

const stage = createWorkerStage()
const { open, settle, worker, send, deliveries, become } = stage
const command = (name: string, content: string, more = '') =>
  `<orc-command name="send_message" to="Master" title="${name}"${more}>${content}</orc-command>`
const say = (text: string, key = 'rec-1') => worker().port.onText({ text, channel: 'transcript', key })
/** Worker sends the command Hi by a tool. */
const sayByTool = () => {
  const fields = { to: 'Master', title: 'Hi', content: 'hello' }
  return stage.engine.handle(
    { kind: 'agent', agent: 'Worker' },
    { type: 'send_message', fields },
    { channel: 'mcp' },
  )
}

describe('a restart of the service', () => {
  it('finds the agent by its saved state, and looks up messages that were in transit (C25)', async () => {
    await open()
    await worker().port.saveState({ pane: '%1', offset: 10 })
    await worker().port.saveState({ pane: '%1', offset: 42 })
    const { promise: never } = Promise.withResolvers<never>()
    worker().arrival = never
    worker().become('idle')
    await send('One')
    await settle()
    const first = worker()
    await stage.reopen()
    expect(first.ended).toBe('leave')
    expect(worker()).not.toBe(first)
    expect(worker().start.savedState).toEqual({ pane: '%1', offset: 42 })
    expect(worker().start.nonce).toBe(first.start.nonce)
    worker().whereabouts = 'submitted'
    await become('idle')
    expect(worker().turns).toEqual([])
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('starts agents that ran before, but not those that a person stopped', async () => {
    await open({ agents: { Master: {}, A: { program: 'any' }, B: { program: 'any', autostart: false } } })
    await stage.engine.order('request_action', { action: 'terminate_agent', target: 'A' })
    await stage.engine.order('request_action', { action: 'spawn_agent', target: 'B' })
    await settle()
    await stage.reopen()
    await settle()
    expect([stage.puppets.started('A'), stage.puppets.started('B')]).toEqual([1, 2])
  })

  it('reads a transcript again without repeating a command (C25)', async () => {
    await open()
    const text = `${command('Hi', 'hello')}\n${command('Ho', 'hello')}`
    await say(text)
    await stage.reopen()
    await say(text)
    expect((await stage.engine.mailOf('Master')).map((mail) => mail.title)).toEqual(['Hi', 'Ho'])
  })

  it('reads again a command that also came by a tool without repeating it (C25)', async () => {
    await open()
    worker().become('busy')
    await sayByTool()
    const said = () => say(command('Hi', 'hello'))
    await said()
    await said()
    await stage.reopen()
    await said()
    expect((await stage.engine.mailOf('Master')).map((mail) => mail.title)).toEqual(['Hi'])
  })

  const lenient = { ...TEAM, agents: { ...TEAM.agents, Newcomer: {} }, limits: { rate: 'off' as const } }
  it.each([
    ['was too much', 1, { ...lenient, limits: { rate: { per_minute: 1, burst: 1 } } }],
    ['named somebody unknown', 2, { ...lenient, agents: TEAM.agents }],
    ['was not permitted', 2, { ...lenient, permissions: {} }],
  ])('does not carry out a command that %s when it was sent (C25)', async (_, done, strict) => {
    await open(strict)
    const texts = [
      command('One', 'hello'),
      command('Two', 'hello', ' priority="urgent"'),
      command('Three', 'hello').replace('"Master"', '"Newcomer"'),
    ]
    const hear = async () => {
      for (const text of texts) void say(text, text)
      await settle()
      return stage.engine.types().filter((type) => type === 'message.accepted').length
    }
    expect(await hear()).toBe(done)
    await stage.reopen(lenient)
    await settle()
    expect(await hear()).toBe(0)
  })

  it('does not carry out commands sent during a halt after the halt (C25)', async () => {
    await open()
    await stage.engine.halt.stop('operator', undefined)
    const said = () => void say(command('Hi', 'hello'))
    said()
    await settle()
    await stage.engine.halt.go('operator')
    said()
    await settle()
    expect(await stage.engine.mailOf('Master')).toEqual([])
  })

  it('does not wake an agent again with a response that arrived (C25)', async () => {
    await open()
    const texts = [
      '<orc-command name="list_agents"/>',
      command('Hi', 'x').replace('Master', 'Nobody'),
      '<orc-command name="',
    ]
    const hear = async () => {
      worker().become('busy')
      for (const text of texts) void say(text, text)
      await settle()
      await become('idle')
      return worker().turns.map(({ text }) => text.split('[ORCHESTRATOR RESPONSE]').length - 1)
    }
    expect(await hear()).toEqual([texts.length])
    expect(await hear()).toEqual([texts.length])
    await stage.reopen()
    expect(await hear()).toEqual([])
  })

  it('records the position of a command only once its response arrived', async () => {
    await open()
    let answered = false
    const said = say('<orc-command name="list_agents"/>').then(() => {
      answered = true
    })
    await settle()
    expect(answered).toBe(false)
    worker().become('idle')
    await said
    expect(worker().turns[0]?.text).toContain('[ORCHESTRATOR RESPONSE]')
  })
})

describe("a command in an agent's text", () => {
  it('is confirmed with the next turn; a confirmation alone begins no turn', async () => {
    await open()
    worker().become('busy')
    await say(command('Hi', 'hello'))
    await become('idle')
    expect(worker().turns).toEqual([])
    await send('One')
    await settle()
    expect(worker().turns[0]?.text).toMatch(/Status: delivered[\s\S]*\[ORCHUB MESSAGE msg_2\]/)
  })

  it('acts once when it comes by a tool and in the text of one turn', async () => {
    await open()
    worker().become('busy')
    const first = await sayByTool()
    await say(command('Hi', ' hello\n', ' from="Worker"'))
    expect((await stage.engine.mailOf('Master')).length).toBe(1)
    // Said once more by the tool, it is meant once more.
    const again = await sayByTool()
    expect(again).not.toEqual(first)
    expect((await stage.engine.mailOf('Master')).length).toBe(2)
    // In another turn it is another command.
    await stage.engine.clock.advance(1000)
    worker().become('idle')
    worker().become('busy')
    await say(command('Hi', 'hello'), 'rec-2')
    expect((await stage.engine.mailOf('Master')).length).toBe(3)
  })

  it('leaves no receipts of earlier turns behind', async () => {
    await open()
    const agent = { kind: 'agent' as const, agent: 'Worker' }
    for (const content of ['one', 'two', 'three']) {
      worker().become('busy')
      const fields = { to: 'Master', content }
      await stage.engine.handle(agent, { type: 'send_message', fields }, { channel: 'mcp' })
      await stage.engine.clock.advance(1000)
      worker().become('idle')
    }
    expect(await stage.engine.store.all('SELECT * FROM channel_receipts')).toHaveLength(1)
  })

  it('acts once when a dialog comes between the tool and the text of one turn', async () => {
    await open()
    worker().become('busy')
    await sayByTool()
    await stage.engine.clock.advance(1000)
    worker().become('waiting_input')
    await stage.engine.clock.advance(1000)
    worker().become('busy')
    await say(command('Hi', 'hello'))
    expect((await stage.engine.mailOf('Master')).length).toBe(1)
  })

  it('acts once when the service is restarted between the tool and the text of one turn (C25)', async () => {
    await open()
    worker().become('busy')
    await sayByTool()
    await stage.engine.clock.advance(1000)
    await stage.reopen()
    worker().become('busy')
    await say(command('Hi', 'hello'))
    expect((await stage.engine.mailOf('Master')).length).toBe(1)
  })

  it('on a screen acts only with the nonce of the session', async () => {
    await open()
    const { nonce } = worker().start
    worker().become('busy')
    for (const mark of ['', ' nonce="guessed"', ` nonce="${nonce}"`]) {
      await worker().port.onText({
        text: `${command(`with${mark.length}`, 'hello', mark)}\n`,
        channel: 'pane',
      })
    }
    await become('idle')
    expect((await stage.engine.mailOf('Master')).length).toBe(1)
    expect(worker().start.prompt).toContain(`nonce="${nonce}"`)
    expect(worker().start.prompt).not.toMatch(new RegExp(`<orc-command[^>]*${nonce}`))
  })
})
