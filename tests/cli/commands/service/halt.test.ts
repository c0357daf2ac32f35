import { spawnSync } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTeamFolder, type TeamFolder } from '../../orc.ts'

let team: TeamFolder
let server: Server
let answer = 204

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume()
    response.writeHead(answer).end()
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  team = createTeamFolder(`agents:
  Lead: { runtime: scripted, with: { script: [{ on: { text: work }, say: done, after_ms: 600000 }] } }
  Worker: {}
webhooks:
  chat: { url: "http://127.0.0.1:${port}/x", events: [human.asked], format: slack }
limits: { rate: off }
`)
  await team.start()
})
afterAll(async () => {
  await team.close()
  server.close()
})

describe('orc service halt and orc service go', () => {
  it('say who was interrupted and who was notified', async () => {
    expect((await team.orc('go')).out).toBe('Orchub was not halted.\n')
    expect((await team.orc(['send', 'Lead', 'work hard'])).out).toContain('in the mailbox of Lead')
    while (!(await team.orc('status')).out.includes('busy'));
    const stopped = await team.orc(['stop', '--all', '--reason', 'a look first'])
    expect(stopped).toMatchObject({ code: 0 })
    expect(stopped.out).toContain('Halted: a look first.')
    expect(stopped.out).toContain('interrupted Lead')
    expect((await team.orc('status')).out).toContain('HALTED by operator')
    expect((await team.orc('stop --all')).out).toContain('Already halted by operator')
    await team.orc(['delegate', '--to', 'Worker', 'Count the files'])
    const why = await team.orc('why task_1')
    expect(why.out).toContain('waits for Worker to take it')
    expect(why.err).toContain('Orchub is halted')
    const token = await team.token('Worker')
    const refused = await team.orc('send-message --to Lead hello', { env: { ORC_TOKEN: token } })
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('(HALTED)')
    expect((await team.orc('stop --all', { env: { ORC_TOKEN: token } })).code).toBe(8)
    const gone = await team.orc('go')
    expect(gone.out).toMatch(/^Work resumes after [\d.]+ s\. Notified: Lead, Worker\.\n$/)
  })

  it('accept either --all or names', async () => {
    expect(await team.orc('stop')).toMatchObject({ code: 2 })
    expect(await team.orc('stop Lead --all')).toMatchObject({ code: 2 })
    expect((await team.orc('stop')).err).toContain('orc agent stop --all halts everything')
  })
})

describe('orc webhook list', () => {
  it('lists webhooks, tests one, and hides its path', async () => {
    const { out } = await team.orc('webhooks')
    expect(out).toMatch(
      /^chat\s+active\s+0 waiting\s+0 sent\s+0 dropped\s+http:\/\/127\.0\.0\.1:\d+\/…; human\.asked/,
    )
    expect(await team.orc('webhooks test chat')).toMatchObject({
      code: 0,
      out: 'chat accepted the event (204).\n',
    })
    answer = 500
    expect(await team.orc('webhooks test chat')).toMatchObject({ code: 1, err: 'chat: 500\n' })
    expect((await team.orc('webhooks test other')).code).toBe(7)
    expect((await team.orc('webhooks --json')).json()).toMatchObject([{ name: 'chat', state: 'active' }])
    answer = 204
  })
})

describe('orc task take-over', () => {
  it('gives the task to the person, who reports the result with an answer', async () => {
    await team.orc(['delegate', '--to', 'Worker', 'count the beans'])
    expect((await team.orc('take-over task_1')).out).toContain('task_1 is waiting_user')
    const [request] = (await team.orc('inbox --json')).json() as { id: string; question: string }[]
    expect(request!.question).toContain('You took over')
    expect((await team.orc(['answer', request!.id, '42 beans'])).code).toBe(0)
    const [task] = (await team.orc('task show task_1 --json')).json() as { state: string; result: string }[]
    expect(task).toMatchObject({ state: 'completed', result: '42 beans' })
  })
})

describe('the terminal of orc up', () => {
  const hasScript = spawnSync('script', ['--version']).status === 0

  it.runIf(hasScript)('rings and notifies when a request needs a person, but not with --quiet', async () => {
    for (const quiet of [false, true]) {
      const other = createTeamFolder('agents: { Ada: {} }\nservice: { port: 0 }\n')
      try {
        const up = other.shell(
          `timeout 20 script -qec '"$ORC_NODE" "$ORC_ENTRY" up${quiet ? ' --quiet' : ''}' /dev/null`,
          { TERM: 'foot' },
        )
        while ((await other.orc('status')).code !== 0);
        await other.orc(['request-user-input', '--from', 'Ada', 'Tea or \u001b]0;coffee?'])
        await other.orc('down')
        const { out } = await up
        expect(out.includes('\u001b]777;notify;Orchub;Ada: req_1: Tea or ]0,coffee?')).toBe(!quiet)
        expect(out.includes('\u0007')).toBe(!quiet)
      } finally {
        await other.close()
      }
    }
  })
})
