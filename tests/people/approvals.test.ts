import { afterEach, describe, expect, it } from 'vitest'
import type { Principal } from '../../src/base/agent.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { verifyStoredAudit } from '../../src/main.ts'
import type { HumanVerdict } from '../../src/people/people.ts'
import { decide, OPERATOR, openTestEngine, type TestEngine } from '../harness/engine.ts'
import { openTeam } from '../tasks/harness.ts'

const person = (name: string): Principal => ({ kind: 'person', person: name })
const HOUR = 3600_000

const TEAM = {
  agents: {
    Master: {},
    Worker: { permissions: { reset_session: { verdict: 'ask' as const, approvers: ['ada'] } } },
    Boss: {},
  },
  people: {
    ada: {},
    ben: {},
    cleo: {},
    vera: { role: 'viewer' as const },
    mo: { role: 'moderator' as const },
  },
  rules: {
    forbid: [{ from: 'Worker', to: 'Boss', reason: 'the Boss is not to be disturbed' }],
    ask: [{ from: 'Worker', to: 'Master', approvers: ['ada', 'ben', 'cleo'], quorum: 2 }],
  },
  limits: { rate: 'off' as const },
}

let engine: TestEngine
afterEach(() => engine.close())

const open = async (input: Omit<ConfigInput, 'store' | 'service'> = TEAM) => {
  engine = await openTestEngine(input)
}
const send = (content = 'please', more = {}) =>
  engine.say('Worker', 'send_message', { to: 'Master', content, ...more })
const decideAs = (name: string, verdict: HumanVerdict, id = 'req_1') =>
  decide(engine, name === 'operator' ? OPERATOR : person(name), id, verdict)
const approve = (name: string, more: Partial<HumanVerdict> = {}) =>
  decideAs(name, { decision: 'approve', ...more })
const arrived = async () => (await engine.mailOf('Master')).map(({ content }) => content)
const told = async () => (await engine.mailOf('Worker')).at(-1)

describe('a quorum (C9)', () => {
  it('counts each person once, also across a restart', async () => {
    await open()
    await send()
    await approve('ada')
    await expect(approve('ada')).rejects.toMatchObject({ code: 'CONFLICT' })
    engine = await engine.reopen()
    await expect(approve('ada')).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await arrived()).toEqual([])
    await approve('cleo')
    expect(await arrived()).toEqual(['please'])
  })

  it('refuses people who are not approvers, including the operator, with a hint', async () => {
    await open()
    await send()
    for (const verdict of ['approve', 'reject', 'modify'] as const) {
      await expect(
        decideAs('operator', { decision: verdict, fields: { content: 'x' } }),
      ).rejects.toMatchObject({
        code: 'FORBIDDEN',
        hint: 'Its approvers: ada, ben, cleo.',
      })
    }
    expect(await arrived()).toEqual([])
  })

  it('counts the operator if listed', async () => {
    await open({
      ...TEAM,
      rules: { ask: [{ from: 'Worker', to: 'Master', approvers: ['operator', 'ada'], quorum: 2 }] },
    })
    await send()
    await approve('operator')
    await approve('ada')
    expect(await arrived()).toEqual(['please'])
  })

  it('ends with one rejection', async () => {
    await open()
    await send()
    await approve('ada')
    await decideAs('ben', { decision: 'reject', comment: 'no' })
    await expect(approve('cleo')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: 'req_1 was already rejected by ben at 2030-01-01T00:00:00.000Z',
    })
    expect(await arrived()).toEqual([])
    expect((await told())!.content).toContain('ben remarks: no')
  })

  it('ignores the approval of a person who was removed from orc.yaml', async () => {
    await open()
    await send()
    await approve('ada')
    const { ada: _, ...left } = TEAM.people
    await engine.reload(
      defineConfig(
        {
          ...TEAM,
          agents: { Master: {}, Worker: {}, Boss: {} },
          people: left,
          rules: { ask: [{ from: 'Worker', to: 'Master', approvers: ['ben', 'cleo'], quorum: 2 }] },
        },
        { env: {} },
      ),
    )
    await expect(approve('ada')).rejects.toMatchObject({ code: 'FORBIDDEN' })
    expect(await approve('ben')).toMatchObject({ request: { state: 'open' } })
    expect(await arrived()).toEqual([])
    await approve('cleo')
    expect(await arrived()).toEqual(['please'])
  })

  it('refuses an approval after the expiry, even before the timer fires', async () => {
    await open()
    await send()
    await approve('ada')
    await engine.store.write((tx) => tx.run('DELETE FROM timers'))
    await engine.clock.advance(72 * HOUR)
    await expect(approve('ben')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(/expired at/),
    })
    expect(await arrived()).toEqual([])
  })

  it('records who approved what, by token (C12)', async () => {
    await open()
    await send()
    await approve('ada')
    await approve('ben')
    const entries = engine.entries.filter(({ type }) => type.startsWith('human.'))
    expect(entries.map(({ type, actor }) => [type, actor])).toEqual([
      ['human.asked', 'Worker'],
      ['human.approval_given', 'ada'],
      ['human.approved', 'ben'],
    ])
    const hashes = new Set(entries.map(({ data }) => data!.action_hash))
    expect(hashes.size).toBe(1)
  })

  it('applies to permissions too', async () => {
    await open()
    expect(
      await engine.say('Worker', 'request_action', { action: 'reset_session', target: 'Boss' }),
    ).toMatchObject({
      status: 'held',
    })
    await expect(approve('ben')).rejects.toMatchObject({ code: 'FORBIDDEN', hint: 'Its approvers: ada.' })
    expect(await approve('ada')).toMatchObject({ request: { state: 'approved' } })
  })
})

describe('an approval', () => {
  it('does not count for an action that was changed on disk together with its hash', async () => {
    await open()
    await send('harmless')
    await send('harmful')
    await approve('ada')
    await engine.store.write((tx) =>
      tx.run(
        `UPDATE human_requests SET action = (SELECT action FROM human_requests WHERE id = 2),
           action_hash = (SELECT action_hash FROM human_requests WHERE id = 2) WHERE id = 1`,
      ),
    )
    expect(await approve('ben')).toMatchObject({ request: { state: 'open', approvals: [{ by: 'ben' }] } })
    expect(await arrived()).toEqual([])
  })

  it('is bound to the asker: the command runs in no other name', async () => {
    await open()
    await send('harmless')
    await approve('ada')
    const before = await engine.store.get<{ context: string }>('SELECT context FROM human_requests')
    await engine.store.write((tx) =>
      tx.run(
        `UPDATE human_requests SET context = REPLACE(context, '"speaker":"Worker"', '"speaker":"Boss"')`,
      ),
    )
    await expect(approve('ben')).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
    expect(await verifyStoredAudit(engine.store)).toMatchObject({ ok: false })
    await engine.store.write((tx) => tx.run('UPDATE human_requests SET context = ?', [before!.context]))
    await engine.store.write((tx) => tx.run(`UPDATE human_requests SET asker = 'Boss'`))
    await expect(approve('ben')).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
    expect(await arrived()).toEqual([])
    await engine.store.write((tx) => tx.run(`UPDATE human_requests SET asker = 'Worker'`))
    await approve('ben')
    expect(await arrived()).toEqual(['harmless'])
  })

  it('is refused if its hash names another version', async () => {
    await open()
    await send('harmless')
    await expect(approve('ada', { hash: 'deadbeef' })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(/is not the one/),
    })
    const { request } = await approve('ada')
    await approve('ben', { hash: request.action!.hash.slice(0, 8) })
    expect(await arrived()).toEqual(['harmless'])
  })
})

describe('a changed action', () => {
  const ONE = {
    ...TEAM,
    rules: { ...TEAM.rules, ask: [{ from: 'Worker', to: 'Master', reason: 'a person looks' }] },
  }

  it('runs instead of the original; asker and audit see the difference', async () => {
    await open(ONE)
    await send('do it NOW', { priority: 'high', title: 'Hurry' })
    const decided = await decideAs('ada', {
      decision: 'modify',
      fields: { content: 'do it soon', priority: 'normal', title: null },
      comment: 'calmly',
    })
    expect(decided).toMatchObject({
      request: {
        state: 'modified',
        decided_by: 'ada',
        modified: {
          by: 'ada',
          changes: {
            content: { from: 'do it NOW', to: 'do it soon' },
            priority: { from: 'high', to: 'normal' },
            title: { from: 'Hurry' },
          },
        },
      },
      receipt: { status: 'delivered' },
    })
    expect(await arrived()).toEqual(['do it soon'])
    const { title, content } = (await told())!
    expect(title).toBe('req_1 modified: send_message')
    expect(content).toContain('- content: "do it NOW" → "do it soon"')
    expect(content).toContain('ada remarks: calmly')
    expect(engine.types()).toEqual(expect.arrayContaining(['human.action_changed', 'human.modified']))
  })

  it('must match the schema, change something, and keep the sender', async () => {
    await open(ONE)
    await send()
    const bad = [
      [{ colour: 'red' }, 'send_message has no field "colour"'],
      [{ priority: 'sometime' }, /priority/],
      [{ content: '' }, /content/],
      [{ content: 'please' }, 'The new fields equal the old ones'],
      [{}, 'No field was given'],
      [{ from: 'Master' }, '"from" names the sender and cannot be changed'],
    ] as const
    for (const [fields, message] of bad) {
      await expect(decideAs('ada', { decision: 'modify', fields })).rejects.toMatchObject({
        code: 'INVALID_COMMAND',
        message: typeof message === 'string' ? message : expect.stringMatching(message),
      })
    }
    expect(await approve('ada')).toMatchObject({ request: { state: 'approved' } })
  })

  it('is checked by the rules again, for the same sender', async () => {
    await open(ONE)
    await send()
    await expect(decideAs('ada', { decision: 'modify', fields: { to: 'Boss' } })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(/the Boss is not to be disturbed/),
    })
    await expect(decideAs('ada', { decision: 'modify', fields: { to: 'Nobody' } })).rejects.toMatchObject({
      code: 'UNKNOWN_RECIPIENT',
    })
    await expect(
      decideAs('ada', { decision: 'modify', fields: { priority: 'urgent' } }),
    ).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect(await engine.mailOf('Boss')).toEqual([])
    expect(engine.types()).not.toContain('human.action_changed')
  })

  it('needs the approvals that the rule for the new action requires', async () => {
    await open({
      ...TEAM,
      rules: {
        ask: [
          { from: 'Worker', to: 'Master' },
          { from: 'Worker', to: 'Boss', approvers: ['ben', 'cleo'], quorum: 2 },
        ],
      },
    })
    await send()
    await expect(decideAs('ada', { decision: 'modify', fields: { to: 'Boss' } })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    })
    expect(await decideAs('ben', { decision: 'modify', fields: { to: 'Boss' } })).toMatchObject({
      request: { state: 'open', quorum: 2, approvers: ['ben', 'cleo'], approvals: [{ by: 'ben' }] },
    })
    await expect(approve('ada')).rejects.toMatchObject({ code: 'FORBIDDEN' })
  })

  it('resets earlier approvals and counts as the first new one', async () => {
    await open()
    await send('one')
    await approve('ada')
    const { request } = await decideAs('ben', { decision: 'modify', fields: { content: 'two' } })
    expect(request).toMatchObject({ state: 'open', approvals: [{ by: 'ben' }] })
    expect(await arrived()).toEqual([])
    // An approval must name the version that its person has seen.
    await expect(approve('cleo')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(/ben changed it/),
    })
    await expect(approve('ben', { hash: request.action!.hash })).rejects.toMatchObject({ code: 'CONFLICT' })
    const last = await approve('ada', { hash: request.action!.hash.slice(0, 12) })
    expect(last).toMatchObject({ request: { state: 'modified', decided_by: 'ada' } })
    expect(await arrived()).toEqual(['two'])
  })

  it('cannot be changed further by somebody who has not seen it', async () => {
    await open()
    await send('one')
    const { request } = await decideAs('ada', { decision: 'modify', fields: { content: 'two' } })
    const further = { decision: 'modify', fields: { priority: 'low' } } as const
    await expect(decideAs('ben', further)).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('ada changed it'),
      hint: expect.stringContaining('orc modify req_1 --hash '),
    })
    expect(await decideAs('ben', { ...further, hash: request.action!.hash })).toMatchObject({
      request: { state: 'open', approvals: [{ by: 'ben' }], action: { fields: { content: 'two' } } },
    })
  })
})

describe('a dialog of an agent program', () => {
  /** The verdict that the dialog gets, once its request exists. */
  async function ask() {
    await open()
    const question = { key: 'k', tool: 'Bash', input: { command: 'rm -r build' } }
    const verdict = engine.permissions.ask('Worker', question, new AbortController().signal)
    await expect.poll(() => engine.types()).toContain('human.asked')
    return { verdict }
  }

  it('can be approved but not changed', async () => {
    const { verdict } = await ask()
    await expect(decideAs('ada', { decision: 'modify', fields: { command: 'ls' } })).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    await approve('ada', { comment: 'go' })
    expect(await verdict).toEqual({ allow: true, comment: 'go' })
  })

  it('expires without approval and leaves a notice (C8)', async () => {
    const { verdict } = await ask()
    await engine.clock.advance(72 * HOUR)
    expect(await verdict).toBeUndefined()
    expect(engine.types()).toEqual(expect.arrayContaining(['human.expired', 'human.asked']))
  })
})

describe('roles', () => {
  it('let a moderator decide on moderation requests', async () => {
    await open({ ...TEAM, rules: { ask: [{ from: 'Worker', to: 'Master' }] } })
    await send()
    await engine.store.write((tx) => tx.run(`UPDATE human_requests SET kind = 'moderation'`))
    await expect(approve('vera')).rejects.toMatchObject({ code: 'FORBIDDEN' })
    expect(await approve('mo')).toMatchObject({ request: { state: 'approved', decided_by: 'mo' } })
  })

  it('record the person behind every command, and refuse claims of another name (C3)', async () => {
    await open()
    const say = (fields: Record<string, unknown>) =>
      engine.handle(person('ada'), {
        type: 'send_message',
        fields: { to: 'Master', content: 'x', ...fields },
      })
    expect(await say({})).toMatchObject({ status: 'delivered' })
    expect(await say({ from: 'Ada' })).toMatchObject({ status: 'delivered' })
    expect(await say({ from: 'ben' })).toMatchObject({ code: 'SENDER_MISMATCH' })
    expect(await say({ from: 'Boss' })).toMatchObject({ status: 'delivered' })
    const accepted = engine.entries.filter(({ type }) => type === 'message.accepted')
    expect(accepted.map(({ actor, data }) => [actor, data!.said_by])).toEqual([
      ['ada', undefined],
      ['ada', undefined],
      ['Boss', 'ada'],
    ])
    expect(await engine.handle(person('zoe'), { type: 'list_agents', fields: {} })).toMatchObject({
      code: 'FORBIDDEN',
      message: 'zoe is no longer one of the people of this team',
    })
  })
})

describe('a task whose command is held', () => {
  const agents = { Lead: {}, Worker: { parent: 'Lead' }, Spy: {} }
  const asking = { people: { ada: {} }, rules: { ask: [{ from: 'Worker', to: 'Spy' }] } }

  async function held() {
    const team = await openTeam(agents, asking)
    engine = team
    await team.rest('Lead', 'Worker', 'Spy')
    await team.says('Lead', 'delegate', { to: 'Worker', task: 'Find out' })
    await team.says('Worker', 'send_message', { to: 'Spy', content: 'Tell me' })
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_approval' })
    return team
  }

  it('continues with the verdict, including a changed command', async () => {
    const team = await held()
    await decideAs('ada', { decision: 'modify', fields: { content: 'Please tell me' } })
    await team.rest('Worker')
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    expect(team.turn('Worker')).toContain('- content: "Tell me" → "Please tell me"')
  })

  it('withdraws the command when it is cancelled, and notifies the asker', async () => {
    const team = await held()
    await team.says('Lead', 'task_action', { task_id: 'task_1', action: 'cancel' })
    await expect(approve('operator')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(/already withdrawn/),
    })
    expect(await engine.mailOf('Spy')).toEqual([])
    expect((await engine.mailOf('Worker')).map(({ content }) => content)).toContainEqual(
      expect.stringContaining('req_1 was withdrawn and not carried out'),
    )
  })

  it('leaves the request open when it completes', async () => {
    const team = await held()
    await team.says('Worker', 'report', { status: 'completed', result: 'done without' })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed' })
    expect(await approve('operator')).toMatchObject({ receipt: { status: 'delivered' } })
    expect((await engine.mailOf('Worker')).at(-1)).toMatchObject({ title: 'req_1 approved: send_message' })
  })

  it('is notified of the expiry', async () => {
    const team = await held()
    await engine.clock.advance(72 * HOUR)
    await team.rest('Worker')
    expect(team.turn('Worker')).toContain('Verdict: expired.')
    expect(await engine.mailOf('Spy')).toEqual([])
  })
})
