import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { TaskStreamEvent } from '../../../../src/api/contract.ts'
import { type ModelServer, startModelServer } from '../../../fakes/model-server/model-server.ts'
import type { ModelRequest, Play } from '../../../fakes/model-server/play.ts'
import { createTeamFolder, type RunOptions, type TeamFolder } from '../../orc.ts'
import { hasTerminals, openTerminal } from '../../own-terminal.ts'

let team: TeamFolder
let server: ModelServer | undefined
afterEach(async () => {
  await team.close()
  await server?.close()
  server = undefined
})

const speaker = ({ system }: ModelRequest) => /^You are (\w+),/.exec(system)?.[1]
const isSelection = ({ system }: ModelRequest) => system.includes('choose which agents of a team are needed')

/** Agents that are models, and a model that chooses among them. */
async function openModels(play: Play, more = '') {
  server = await startModelServer({ play })
  team = createTeamFolder(`agents:
  Lead: { runtime: llm, with: { model: local }, role: Leads }
  Adder: { parent: Lead, runtime: llm, with: { model: local }, capabilities: [add, sums] }
  Poet: { parent: Lead, runtime: llm, with: { model: local }, capabilities: [poems] }
models:
  local: { provider: openai-compatible, model: llama-3, base_url: "${server.url}/v1", retries: 0 }
tasks: { selector: local }
limits: { rate: off }
${more}`)
  await team.start()
  return server
}

/** Agents with only a token: the test sends their commands. */
async function openByHand() {
  team = createTeamFolder(`agents:
  Lead: { role: Leads }
  Adder: { parent: Lead, capabilities: [add] }
limits: { rate: off }
`)
  return (await team.start()).url
}

/** Asks, and returns once Lead has the question. */
async function askLead(options: RunOptions = {}) {
  const asking = team.begin('ask --agent Lead What-is-it?', options)
  await says(asking, 'asking Lead')
  return asking
}
const says = (asking: { err(): string }, words: string) =>
  vi.waitFor(() => expect(asking.err()).toContain(words), 20_000)

async function takeAndReport(result: string) {
  await team.orc('mailbox-check --agent Lead')
  await team.orc(['report', '--from', 'Lead', '--status', 'completed', result])
}

/** A proxy to the service that fails once: at the first read of a human request. */
async function openProxy(service: string) {
  const { host } = new URL(service)
  let refused = 0
  const proxy = createServer((incoming, outgoing) => {
    if (refused === 0 && incoming.url!.startsWith('/api/v1/human-requests/')) {
      refused += 1
      incoming.destroy()
      return
    }
    const { method, headers, url } = incoming
    const onward = request(new URL(url!, service), { method, headers: { ...headers, host } }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    refused: () => refused,
    close() {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}

const tool = (name: string, input: Record<string, unknown>) => ({ toolCalls: [{ name, input }] })
const DONE = { text: 'Done.' }

/** Lead delegates to Adder, who reports; then Lead answers. */
const adding: Play = (request) => {
  const { userText, toolResults } = request
  if (isSelection(request)) return { text: JSON.stringify({ ids: ['adder', 'Wizard'], why: 'It is a sum.' }) }
  if (toolResults.length > 0) return DONE
  if (speaker(request) === 'Adder') return tool('report', { status: 'completed', result: '5' })
  if (userText.includes('(children_ended)'))
    return tool('report', { status: 'completed', result: 'The sum is 5.' })
  return tool('delegate', { to: 'Adder', task: 'Add 2 and 3' })
}

describe('orc ask (S2.9)', () => {
  it('prints progress to standard error and only the answer to standard output', async () => {
    await openModels(adding)
    const ran = await team.orc(['ask', 'How much is 2 and 3?'])
    expect(ran.err).toContain('task_1  asking Lead: How much is 2 and 3?')
    expect(ran.err).toContain('chosen by the model: Adder. It is a sum.')
    expect(ran.err).toContain('ignored 1 unknown name: Wizard')
    expect(ran.err).toContain('Lead → Adder  task_2: Add 2 and 3')
    expect(ran.err).toContain('task_2  Adder is done')
    expect(ran).toMatchObject({ code: 0, out: 'The sum is 5.\n' })
    const again = await team.orc('ask --resume task_1')
    expect(again).toMatchObject({ code: 0, out: 'The sum is 5.\n', err: '' })
    const whole = (await team.orc('ask --resume task_1 --json')).json() as TaskStreamEvent[]
    expect(whole[0]).toMatchObject({ type: 'delegated', task_id: 'task_1' })
    expect(whole.at(-1)).toMatchObject({ type: 'end', state: 'completed', result: 'The sum is 5.' })
    const flow = await team.orc('trace task_1')
    for (const [way, kind] of [
      ['operator → Lead', 'delegate'],
      ['Lead → Adder', 'delegate'],
      ['Adder → Lead', 'report'],
      ['Lead → operator', 'report'],
    ]) {
      expect(flow.out).toMatch(new RegExp(`\\d\\d:\\d\\d:\\d\\d\\.\\d{3}  ${way} +${kind} +task_`))
    }
  })

  it.each([
    ['nobody', { ids: [], why: 'Lead knows.' }, 'chosen by the model: no other agents. Lead knows.'],
    ['garbage', 'The best one, of course', 'chosen by matching words: Adder. The model could not choose'],
  ])('continues when the model chooses %s', async (_, says, shown) => {
    await openModels((request) => {
      if (isSelection(request)) return { text: typeof says === 'string' ? says : JSON.stringify(says) }
      return request.toolResults.length > 0 ? DONE : tool('report', { status: 'completed', result: 'alone' })
    })
    const ran = await team.orc(['ask', 'Please add.'])
    expect(ran).toMatchObject({ code: 0, out: 'alone\n' })
    expect(ran.err).toContain(shown)
  })

  it("asks once per key: the second watches the first one's question", async () => {
    const models = await openModels(adding)
    const args = ['ask', '--idempotency-key', 'one', 'How much is 2 and 3?']
    const [first, second] = await Promise.all([team.orc(args), team.orc(args)])
    expect([first.out, second.out]).toEqual(['The sum is 5.\n', 'The sum is 5.\n'])
    expect(models.requests.filter(({ request }) => request && isSelection(request))).toHaveLength(1)
    expect((await team.orc('tasks --all --json')).json()).toHaveLength(2)
    expect((await team.orc(['ask', '--idempotency-key', 'one', 'Another?'])).err).toContain(
      'IDEMPOTENCY_CONFLICT',
    )
  })

  it('leaves the team at work with Ctrl-C, and returns with --resume', async () => {
    await openByHand()
    const asking = await askLead()
    asking.child.kill('SIGINT')
    const left = await asking.ended
    expect(left).toMatchObject({ code: 130, out: '' })
    expect(left.err).toContain('task_1 keeps running. Return to it with: orc ask --resume task_1')
    expect((await team.orc('tasks --json')).json()).toMatchObject([{ id: 'task_1', state: 'pending' }])
    const back = team.begin('ask --resume task_1')
    await says(back, 'asking Lead: What-is-it?')
    await takeAndReport('It is this.')
    expect(await back.ended).toMatchObject({ code: 0, out: 'It is this.\n' })
  })

  it('can be left while agents are being chosen, and the team still gets the question', async () => {
    await openModels((request) =>
      isSelection(request)
        ? { text: JSON.stringify({ ids: [], why: 'Nobody.' }), delayMs: 1500 }
        : request.toolResults.length > 0
          ? DONE
          : tool('report', { status: 'completed', result: 'asked once' }),
    )
    const asking = team.begin('ask --idempotency-key left What-is-it?')
    await server!.waitFor(({ request }) => request !== undefined && isSelection(request))
    asking.child.kill('SIGINT')
    const left = await asking.ended
    expect(left).toMatchObject({ code: 130, out: '' })
    expect(left.err).toContain('The team may have received the question')
    const again = await team.orc('ask --idempotency-key left What-is-it?')
    expect(again).toMatchObject({ code: 0, out: 'asked once\n' })
    expect((await team.orc('tasks --all --json')).json()).toHaveLength(1)
  })

  it('leaves the task running when it is killed', async () => {
    await openByHand()
    const asking = await askLead()
    asking.child.kill('SIGKILL')
    await asking.ended
    await takeAndReport('Still here.')
    expect(await team.orc('ask --resume task_1')).toMatchObject({ code: 0, out: 'Still here.\n' })
  })

  it('waits for a service that restarts, and misses nothing', async () => {
    await openByHand()
    const asking = await askLead()
    await team.stop()
    await says(asking, 'The service is unreachable')
    await team.start()
    await says(asking, 'The service is back')
    await takeAndReport('After all.')
    const ran = await asking.ended
    expect(ran).toMatchObject({ code: 0, out: 'After all.\n' })
    expect(ran.err.match(/asking Lead/g)).toHaveLength(1)
  })

  it('shows a halt and its end; so does the trace', async () => {
    await openByHand()
    await team.orc('stop --all --reason "an old one"')
    await team.orc('go')
    const asking = await askLead()
    await team.orc(['stop', '--all', '--reason', 'too fast'])
    await says(asking, 'Orchub is halted; resume it with `orc service go`')
    expect(asking.err()).toContain('too fast')
    await team.orc('go')
    await says(asking, 'operator ended the halt')
    await takeAndReport('This.')
    expect(await asking.ended).toMatchObject({ code: 0, out: 'This.\n' })
    await team.orc('stop --all --reason "a later one"')
    await team.orc('go')
    const events = (await team.orc('ask --resume task_1 --json')).json() as TaskStreamEvent[]
    const halts = events.filter((event) => event.type === 'halt')
    expect(halts.map(({ over }) => over)).toEqual([false, true])
    expect((await team.orc('trace task_1')).out).toMatch(/operator +stop +task_1 +.*too fast/)
  })

  it('shows a question even if the service goes away while it is read', async () => {
    const proxy = await openProxy(await openByHand())
    try {
      const asking = await askLead({ env: { ORC_URL: proxy.url } })
      await team.orc('mailbox-check --agent Lead')
      await team.orc(['ask-user', '--from', 'Lead', 'Which one?'])
      await vi.waitFor(() => expect(proxy.refused()).toBe(1), 20_000)
      await says(asking, 'orc answer req_1 TEXT')
      await team.orc(['report', '--from', 'Lead', '--status', 'completed', 'This one.'])
      expect(await asking.ended).toMatchObject({ code: 0, out: 'This one.\n' })
    } finally {
      proxy.close()
    }
  })

  it('says how to answer a question when nobody can type', async () => {
    await openByHand()
    const asking = await askLead()
    await team.orc('mailbox-check --agent Lead')
    await team.orc(['request-user-input', '--from', 'Lead', 'Which one?'])
    await says(asking, 'orc answer req_1 TEXT')
    expect(asking.err()).toContain('Which one?')
    await team.orc(['answer', 'req_1', 'The red one.'])
    await says(asking, 'req_1 is answered by operator: The red one.')
    await team.orc('task-action --task-id task_1 --action cancel never mind')
    const ran = await asking.ended
    expect(ran).toMatchObject({ code: 9, out: '' })
    expect(ran.err).toContain('task_1 is cancelled')
    // A verdict and its message print one line, and so do an end and its message.
    expect(ran.err.match(/The red one\./g)).toHaveLength(1)
    expect(ran.err).not.toContain('Lead  cancelled')
    expect(await team.orc('ask --resume task_1')).toMatchObject({ code: 9, out: '' })
  })

  it('prints JSON events, one per line, with the result in the last', async () => {
    await openModels(adding)
    const ran = await team.orc(['ask', '--json', 'How much is 2 and 3?'])
    const events = ran.json() as TaskStreamEvent[]
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['delegated', 'selected', 'state', 'message', 'end']),
    )
    expect(events.at(-1)).toMatchObject({ type: 'end', result: 'The sum is 5.' })
  })

  it('says what is missing or wrong', async () => {
    await openByHand()
    await team.fails('ask', 2, 'QUESTION is missing')
    expect(await team.orc('ask --resume task_1 What?')).toMatchObject({ code: 2 })
    expect(await team.orc('ask --resume task_99')).toMatchObject({ code: 7 })
    expect(await team.orc('ask --agent Nobody What?')).toMatchObject({ code: 7 })
    expect(await team.orc('ask - --agent Lead', { input: ' \n' })).toMatchObject({ code: 2 })
    const env = { ORC_TOKEN: await team.token('Adder') }
    expect(await team.orc('ask What?', { env })).toMatchObject({ code: 8 })
    await team.stop()
    expect(await team.orc('ask What?')).toMatchObject({ code: 5 })
  })
})

describe.runIf(hasTerminals)('orc ask on a terminal (S2.12, S2.16)', () => {
  const onTerminal = (command: string) => openTerminal(team.folder, command)

  it('takes the answer at the prompt, repeats the question after a blank one, and continues', async () => {
    await openByHand()
    const asking = onTerminal('ask --agent Lead "What is it?"')
    await asking.shows('asking Lead')
    await team.orc('mailbox-check --agent Lead')
    await team.orc(['request-user-input', '--from', 'Lead', 'Which colour?'])
    await asking.shows('req_1> ')
    asking.type('  \r')
    await asking.shows('The answer is empty')
    expect(asking.out().match(/Which colour\?/g)!.length).toBeGreaterThan(1)
    asking.type('red\r')
    await asking.shows('req_1 is answered by operator: red')
    expect((await team.orc('mailbox-check --agent Lead')).out).toContain('red')
    await team.orc(['report', '--from', 'Lead', '--status', 'completed', 'It is red.'])
    expect(await asking.ended).toBe(0)
    expect(asking.out()).toContain('It is red.')
  })

  it('removes the question when somebody answers it elsewhere, and leaves with Ctrl-C', async () => {
    await openByHand()
    const asking = onTerminal('ask --agent Lead "What is it?"')
    await asking.shows('asking Lead')
    await team.orc('mailbox-check --agent Lead')
    await team.orc(['request-user-input', '--from', 'Lead', 'Which colour?'])
    await asking.shows('req_1> ')
    await team.orc(['answer', 'req_1', 'blue'])
    await asking.shows('req_1 is answered by operator: blue')
    await team.orc(['request-user-input', '--from', 'Lead', 'Which shape?'])
    await asking.shows('req_2> ')
    asking.type('\u0003')
    await asking.shows('task_1 keeps running')
    expect(await asking.ended).toBe(130)
    expect((await team.orc('inbox --json')).json()).toMatchObject([{ id: 'req_2', state: 'open' }])
  })
})
