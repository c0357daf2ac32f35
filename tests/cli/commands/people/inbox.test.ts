import { spawnSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { servedTeam } from '../../orc.ts'

const TEAM = `agents:
  Master: {}
  Worker: { parent: Master }
  Spy: {}
people:
  ada: {}
  ben: {}
  vera: { role: viewer }
rules:
  ask:
    - { from: Worker, to: Spy, approvers: [ada, ben], quorum: 2 }
    - { from: Worker, to: Master }
limits: { rate: off }
`

const env: Record<string, { ORC_TOKEN: string }> = {}

const team = servedTeam(TEAM)

beforeAll(async () => {
  for (const name of ['ada', 'ben', 'vera']) {
    env[name] = { ORC_TOKEN: (await team.orc(['token', name])).out.trim() }
  }
})

async function hold(to: string, text: string): Promise<string> {
  const ran = await team.orc(['send-message', '--from', 'Worker', '--to', to, '--json', text])
  return (ran.json() as { request_id: string }[])[0]!.request_id
}
async function ask(...more: string[]): Promise<string> {
  const ran = await team.orc(['ask-user', '--from', 'Worker', '--json', ...more])
  return (ran.json() as { details: { request_id: string } }[])[0]!.details.request_id
}
const as = (name: string, args: string[]) => team.orc(args, { env: env[name]! })
const lastTold = async () => (await team.mailbox('Worker')).at(-1)!.content

describe('orc token create PERSON', () => {
  it("is listed as a person's, and refused to a viewer", async () => {
    expect((await team.orc('token list')).out).toMatch(/tok_2 {2}ada \(person\)/)
    expect(await as('vera', ['token', 'Worker'])).toMatchObject({ code: 8 })
    expect((await as('ada', ['token', 'ben'])).err).toContain('may not create')
  })
})

describe('a quorum in the shell (C9)', () => {
  it('shows who approved and who is missing, and runs the command with the last approval', async () => {
    const id = await hold('Spy', 'together')
    expect((await as('vera', ['inbox'])).out).toContain('someone else has to decide')
    expect((await as('ada', ['inbox'])).out).toContain('0 of 2 approvals; 2 more needed from ada, ben')
    expect((await as('vera', ['approve', id])).err).toContain('The role of vera in orc.yaml is viewer')
    await team.fails(['approve', id], 8, 'hint: Its approvers: ada, ben.')
    expect((await as('ada', ['approve', id, '--comment', 'ok'])).out).toBe(
      `${id} is still open: 1 of 2 approvals; 1 more needed from ben\n`,
    )
    const shown = (await as('ben', ['inbox'])).out
    expect(shown).toMatch(/approved by ada at \S+: ok/)
    expect((await as('ben', ['approve', id])).out).toContain(`${id} is approved; Worker is notified`)
  })

  it('requires the hash for approvals of a changed command', async () => {
    const id = await hold('Spy', 'change me')
    const changed = await as('ada', ['modify', id, 'content=changed', '--comment', 'shorter'])
    expect(changed.out).toContain(`${id} is still open: 1 of 2 approvals`)
    const shown = (await as('ben', ['inbox'])).out
    expect(shown).toContain('changed by ada; before:\n    content: change me')
    const [, way] = new RegExp(`(approve ${id} --hash [0-9a-f]{12})`).exec(shown)!
    expect((await as('ben', ['approve', id])).err).toContain(way)
    expect((await as('ben', way!.split(' '))).out).toContain(`${id} is modified; Worker is notified`)
    expect(await lastTold()).toContain('- content: "change me" → "changed"')
  })
})

describe('orc rules', () => {
  it('shows the required approvers, and explains the rule', async () => {
    expect((await team.orc('rules')).out).toContain('[2 of ada, ben]')
    const { out } = await team.orc('rules explain Worker Spy')
    expect(out).toContain('needs approval by 2 of ada, ben')
    expect((await team.orc('rules explain Worker Spy --json')).json()).toMatchObject([
      { decision: { verdict: 'ask', approval: { approvers: ['ada', 'ben'], quorum: 2 } } },
    ])
  })
})

describe('orc modify', () => {
  it('runs the command as changed by a person', async () => {
    const id = await hold('Master', 'hello')
    expect((await team.orc(['modify', id, 'colour=red'])).err).toContain('has no field "colour"')
    expect((await team.orc(['modify', id, 'red'])).err).toContain('Write FIELD=VALUE')
    expect((await team.orc(['modify', id])).err).toContain('FIELD=VALUE is missing')
    const ran = await team.orc(['modify', id, 'content=good morning', 'priority=low', '--json'])
    expect(ran.json()).toMatchObject([
      { request: { state: 'modified', action: { fields: { content: 'good morning', priority: 'low' } } } },
    ])
  })
})

describe('questions in the shell', () => {
  it('show choices and default, and accept a number, a text or nothing', async () => {
    const id = await ask('--choices', 'Red,Green', '--default', 'Green', 'Which?')
    const { out } = await team.orc('inbox')
    expect(out).toContain('    1  Red\n    2  Green  (default if you do not answer)')
    expect(out).toContain(`orc answer ${id} NUMBER|TEXT; until `)
    await team.fails(['answer', id, 'Blue'], 2, '1: Red; 2: Green')
    expect((await team.orc(['answer', id, ''])).out).toContain(`${id} is answered; Worker is notified`)
    expect(await lastTold()).toContain('A person answers: Green')
    const other = await ask('--choices', 'Red,Green', 'Which?')
    await as('ada', ['answer', other, '1'])
    expect(await lastTold()).toContain('A person answers: Red')
    expect((await team.orc(['answer', other, '2'])).err).toContain(`${other} was already answered by ada`)
  })

  it('repeat the question for a blank answer (S2.12)', async () => {
    const id = await ask('Where to?')
    await team.fails(['answer', id, ' '], 2, 'hint: Write an answer to: Where to?')
    expect((await team.orc(['answer', id])).err).toContain('TEXT is missing')
    await team.orc(['answer', id, '--insist', 'home'])
    expect(await lastTold()).toContain('home')
  })

  const hasScript = spawnSync('script', ['--version']).status === 0

  it.runIf(hasScript)('prompt on the terminal until an answer is accepted', async () => {
    const id = await ask('--choices', 'Red,Green', 'Which?')
    const ran = await team.shell(
      `printf 'Blue\\n2\\n' | script -qec "$ORC_NODE $ORC_ENTRY answer ${id}" /dev/null`,
    )
    expect(ran.out).toContain('Worker asks: Which?')
    expect(ran.out).toContain('This is not one of the choices')
    expect(ran.out).toContain(`${id} is answered`)
    expect(await lastTold()).toContain('A person answers: Green')
  })
})

describe('a task that needs help', () => {
  it('shows the possible decisions', async () => {
    await team.orc(['delegate', '--to', 'Worker', 'Find a flight'])
    await team.orc('mailbox-check --agent Worker')
    await team.orc(['report', '--from', 'Worker', '--status', 'needs_help', 'Which airline?'])
    const open = (await team.orc('inbox --json')).json() as { id: string; kind: string; task_id: string }[]
    const plea = open.find(({ kind }) => kind === 'escalation')
    const { out } = await team.orc('inbox')
    expect(plea).toMatchObject({ kind: 'escalation', decisions: ['approve', 'reject', 'answer'] })
    expect(out).toContain(`orc approve ${plea!.id} accepts the task as done`)
    expect(out).toContain(`orc reject ${plea!.id} marks the task as failed`)
    expect(out).toContain(`orc answer ${plea!.id} TEXT tells the worker how to continue`)
    expect(out).toContain(
      `orc task-action --task-id ${plea!.task_id} --action follow_up|skip|cancel|take_over`,
    )
    await team.orc(['answer', plea!.id, 'Any will do.'])
    expect(await lastTold()).toContain('Any will do.')
  })
})

describe('orc inbox --follow', () => {
  it('shows a request again after an approval or a change, and continues after a broken connection', async () => {
    const following = team.begin('inbox --follow', { env: env.ben! })
    const id = await hold('Spy', 'follow me')
    await following.shows(`${id}  approval, open`)
    await as('ada', ['approve', id])
    await following.shows('approved by ada')
    await team.stop()
    await team.start()
    const second = await hold('Spy', 'after the break')
    await following.shows(`${second}  approval, open`)
    following.child.kill('SIGINT')
    expect((await following.ended).code).toBe(130)
  })
})
