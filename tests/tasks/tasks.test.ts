import { afterEach, describe, expect, it } from 'vitest'
import type { Receipt } from '../../src/protocol/receipt.ts'
import { createPuppets } from '../fakes/puppet-runtime.ts'
import { openTeam, type TaskTeam } from './harness.ts'

let team: TaskTeam
afterEach(() => team.close())

const PAIR = { Master: {}, Worker: { parent: 'Master' } }
const CHAIN = { Top: {}, Middle: { parent: 'Top' }, Bottom: { parent: 'Middle' } }

function questionOf(receipt: Receipt): string {
  return receipt.status === 'ok' ? String(receipt.details?.question_id) : ''
}

async function openPair(more = {}) {
  team = await openTeam(PAIR, more)
  await team.rest('Master', 'Worker')
}

describe('delegation', () => {
  it('runs from DELEGATE to a validated REPORT: simple delegation (S2.9, S2.17)', async () => {
    await openPair()
    const delegated = await team.says('Master', 'DELEGATE', {
      type: undefined,
      from: 'Master',
      to: 'Worker',
      task: 'Find the cheapest flight',
      context: { from: 'LAX' },
      message_id: 'uuid-1',
      requires_response: true,
    })
    expect(delegated).toMatchObject({ status: 'ok', details: { task_id: 'task_1', to: 'Worker' } })
    expect(team.turn('Worker')).toContain('Find the cheapest flight')
    expect(team.turn('Worker')).toContain('"from": "LAX"')
    expect(team.turn('Worker')).toContain('Task: task_1 (delegate)')
    expect(team.turn('Worker')).toContain('report in_response_to="task_1"')
    expect(await team.task('task_1')).toMatchObject({
      state: 'executing',
      delegator: 'Master',
      agent: 'Worker',
    })

    const reported = await team.says('Worker', 'REPORT', {
      from: 'Worker',
      to: 'Master',
      result: 'Flight 7 for 99',
      status: 'completed',
      message_id: 'uuid-2',
      in_response_to: 'uuid-1',
    })
    expect(reported).toMatchObject({ status: 'ok', details: { task_id: 'task_1', state: 'completed' } })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', result: 'Flight 7 for 99' })
    expect(team.turn('Master')).toContain('Flight 7 for 99')
    expect(team.turn('Master')).toContain('From: Worker')
    expect(team.types()).toEqual(
      expect.arrayContaining(['task.delegated', 'task.executing', 'task.completed']),
    )
  })

  it('goes only from parent to child, unless a rule allows the pair; a person may delegate to all (S2.2)', async () => {
    team = await openTeam(
      { Master: {}, Worker: { parent: 'Master' }, Friend: {} },
      { rules: { allow: [{ from: 'Friend', to: 'Worker' }] } },
    )
    await team.rest('Master', 'Worker', 'Friend')
    expect(await team.says('Worker', 'delegate', { to: 'Master', task: 'Do it' })).toMatchObject({
      status: 'blocked',
      reason: 'Worker may delegate to nobody; Master does not report to it',
    })
    expect(await team.says('Master', 'delegate', { to: 'Friend', task: 'Do it' })).toMatchObject({
      status: 'blocked',
    })
    expect(await team.says('Friend', 'delegate', { to: 'Worker', task: 'Do it' })).toMatchObject({
      status: 'ok',
    })
    expect(await team.orders('delegate', { to: 'Friend', task: 'Do it' })).toMatchObject({ status: 'ok' })
    expect(
      await team.says('Friend', 'report', { status: 'completed', result: 'Done', in_response_to: 'task_2' }),
    ).toMatchObject({
      status: 'ok',
    })
    expect(await team.task('task_2')).toMatchObject({
      state: 'completed',
      delegator: 'operator',
      result: 'Done',
    })
  })

  it('allows queries in both directions (S2.6, S2.7, S2.17, C11)', async () => {
    team = await openTeam(CHAIN)
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'Plan a trip' })
    await team.says('Middle', 'delegate', { to: 'Bottom', task: 'Book a flight' })
    await team.ends('Middle')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_child' })

    await team.says('Bottom', 'query', { to: 'Middle', question: 'Price or convenience?', message_id: 'q-1' })
    expect(await team.task('task_2')).toMatchObject({ state: 'waiting_parent' })
    expect(team.turn('Middle')).toMatch(/Price or convenience\?/)
    expect(team.turn('Middle')).toMatch(/Reply with: answer in_response_to="msg_\d+"/)
    await team.says('Middle', 'answer', { to: 'Bottom', answer: 'Price', in_response_to: 'q-1' })
    await team.ends('Middle')
    await team.ends('Bottom')
    expect(await team.task('task_2')).toMatchObject({ state: 'executing' })
    expect(team.turn('Bottom')).toContain('Price')

    await team.says('Middle', 'query', { to: 'Bottom', question: 'How far are you?' })
    await team.ends('Bottom')
    expect(team.turn('Bottom')).toContain('How far are you?')
    expect(await team.says('Bottom', 'answer', { to: 'Middle', answer: 'Half way' })).toMatchObject({
      status: 'ok',
    })
    expect(team.turn('Middle')).toContain('Half way')
  })

  it('is distinguished from another task with the same sender-chosen id (C10)', async () => {
    team = await openTeam({
      ...PAIR,
      Boss: {},
      Hand: { parent: 'Boss' },
    })
    await team.rest('Master', 'Worker', 'Boss', 'Hand')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Mine', message_id: '001' })
    await team.clock.advance(1000)
    await team.says('Boss', 'delegate', { to: 'Hand', task: 'Theirs', message_id: '001' })
    const done = { in_response_to: '001', status: 'completed', result: 'Done' }
    expect(await team.says('Worker', 'report', done)).toMatchObject({ details: { task_id: 'task_1' } })
    expect(await team.says('Hand', 'report', done)).toMatchObject({ details: { task_id: 'task_2' } })
  })

  it('is accepted by the delegating agent only after validation left it to that agent (C22, ask 6)', async () => {
    team = await openTeam({ ...PAIR, Judge: {} }, { tasks: { judge: 'Judge', retries: 0 } })
    await team.rest('Master', 'Worker', 'Judge')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    const accept = { task_id: 'task_1', action: 'accept' }
    expect(await team.says('Master', 'task_action', accept)).toMatchObject({ code: 'CONFLICT' })
    await team.says('Worker', 'report', { status: 'completed', result: 'As good as done' })
    expect(await team.says('Master', 'task_action', accept)).toMatchObject({ code: 'CONFLICT' })
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', claim: { step: 'judge' } })
    await team.says('Judge', 'judge', { task_id: 'task_1', claim: 1, completed: false, reason: 'Half of it' })
    expect(await team.says('Master', 'task_action', accept)).toMatchObject({
      details: { state: 'completed' },
    })
  })

  it.each([
    ['close a circle through three agents', {}, /Top would wait for itself: Top → Middle → Bottom → Top/],
    ['go too deep', { tasks: { depth: 2 } }, /Delegations may be 2 deep; this would be 3/],
  ])('is refused where it would %s (ask 12)', async (_, more, message) => {
    team = await openTeam(CHAIN, { rules: { allow: [{ from: 'Bottom', to: 'Top' }] }, ...more })
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'One' })
    await team.says('Middle', 'delegate', { to: 'Bottom', task: 'Two' })
    const refused = await team.says('Bottom', 'delegate', { to: 'Top', task: 'Three' })
    expect(refused).toMatchObject({
      status: 'error',
      code: 'FORBIDDEN',
      message: expect.stringMatching(message),
    })
    expect(await team.task('task_2')).toMatchObject({ state: 'executing', delegations: 0 })
    expect(await team.task('task_3')).toBeUndefined()
    expect((await team.mailOf('Top')).filter(({ content }) => content === 'Three')).toEqual([])
  })

  it('wakes a parent once, when all its children have ended in any way', async () => {
    team = await openTeam({ Master: {}, A: { parent: 'Master' }, B: { parent: 'Master' } })
    await team.rest('Master', 'A', 'B')
    await team.orders('delegate', { to: 'Master', task: 'Both' })
    await team.says('Master', 'delegate', { to: 'A', task: 'First' })
    await team.says('Master', 'delegate', { to: 'B', task: 'Second' })
    await team.ends('Master')
    const before = team.turns('Master')
    await team.says('A', 'report', { status: 'completed', result: 'One' })
    expect(team.turns('Master')).toBe(before)
    await team.says('B', 'report', { status: 'completed', result: 'Two' })
    expect(team.turns('Master')).toBe(before + 1)
    expect(team.turn('Master')).toContain('Task: task_1 (children_ended)')
    expect(team.turn('Master')).toContain('task_2 A: completed. One')
    await team.says('Master', 'report', { status: 'completed', result: 'One and two' })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', result: 'One and two' })
  })

  it('asks an agent with several tasks which one it means, unless its turn is on one', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'First' })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Second' })
    expect(await team.says('Worker', 'report', { status: 'completed', result: 'First done' })).toMatchObject({
      details: { task_id: 'task_1' },
    })
    await team.ends('Worker')
    expect(await team.says('Worker', 'report', { status: 'completed', result: 'Second done' })).toMatchObject(
      {
        details: { task_id: 'task_2' },
      },
    )
    expect(await team.says('Worker', 'report', { status: 'completed', result: 'What?' })).toMatchObject({
      status: 'error',
      code: 'NOT_FOUND',
    })
  })
})

describe('a command without in_response_to in a turn on one task', () => {
  const queued = async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'First' })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Second' })
    expect(await team.task('task_2')).toMatchObject({ state: 'pending' })
  }
  const report = (result: string, more = {}) =>
    team.says('Worker', 'report', { status: 'completed', result, ...more })
  const which = { status: 'error', code: 'CONFLICT', hint: 'Name the task with in_response_to.' }

  it('never reports on the next task, which is still queued (C3, ask 6)', async () => {
    await queued()
    expect(await report('First is done')).toMatchObject({ details: { task_id: 'task_1' } })
    expect(await report('I have done the first, as I said')).toMatchObject({
      ...which,
      message: 'Your turn is about another task than the one you have: task_2 (Second)',
    })
    expect(await team.says('Worker', 'query', { question: 'Was that all?' })).toMatchObject(which)
    expect(await team.task('task_2')).toMatchObject({ state: 'pending', result: null })
    expect(await report('Both, in fact', { in_response_to: 'task_2' })).toMatchObject({
      details: { task_id: 'task_2' },
    })
  })

  it('is not about the next task if its own was cancelled', async () => {
    await queued()
    // Both happen before the interrupt reaches the agent.
    await team.say('Master', 'task_action', { task_id: 'task_1', action: 'cancel' })
    const late = await team.say('Worker', 'report', { status: 'completed', result: 'First is done' })
    expect(late).toMatchObject(which)
    expect(await team.task('task_1')).toMatchObject({ state: 'cancelled' })
    expect((await team.task('task_2')).result).toBeNull()
  })

  it('does not report on the next task if its own was cancelled, even after the next was delivered (C3, ask 6)', async () => {
    await queued()
    // After the interrupt, the agent gets the next task at once.
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'cancel' })
    expect(team.turn('Worker')).toContain('Task: task_2')
    expect(await team.task('task_2')).toMatchObject({ state: 'executing' })
    expect(await report('First is done')).toMatchObject({
      status: 'error',
      code: 'CONFLICT',
      message: 'task_1 ended while you worked on it: is this report about it, or about task_2?',
      hint: 'If it is about task_2, report again with in_response_to task_2.',
    })
    expect(await team.task('task_2')).toMatchObject({ state: 'executing', result: null })
    expect(await report('Second is done', { in_response_to: 'task_2' })).toMatchObject({
      details: { task_id: 'task_2', state: 'completed' },
    })
  })

  it('reports on the next task again after a turn on it has ended', async () => {
    await queued()
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'cancel' })
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('Task: task_2 (reminder)')
    expect(await report('Second is done')).toMatchObject({ details: { task_id: 'task_2' } })
  })

  it('does not report on the next task if an agent without turns has not read that its own ended', async () => {
    const away = { runtime: 'none' as const, program: undefined, with: undefined }
    team = await openTeam({ Master: {}, Worker: { parent: 'Master', ...away } })
    await team.rest('Master')
    const readAll = async () => {
      const unread = await team.mailOf('Worker', 'unread')
      await team.says('Worker', 'mailbox_check')
      await team.says('Worker', 'acknowledge', { ids: unread.map(({ id }) => id) })
      expect(unread).not.toEqual([])
    }
    await team.says('Master', 'delegate', { to: 'Worker', task: 'First' })
    await readAll()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Second' })
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'cancel' })
    expect(await report('First is done')).toMatchObject({ status: 'error', code: 'CONFLICT' })
    await readAll()
    expect(await report('Second is done')).toMatchObject({ details: { task_id: 'task_2' } })
  })

  it('is about an earlier started task if its own has ended', async () => {
    team = await openTeam(CHAIN)
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'Plan' })
    await team.says('Middle', 'delegate', { to: 'Bottom', task: 'Book' })
    await team.ends('Middle')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'Greet' })
    await team.says('Top', 'delegate', { to: 'Middle', task: 'Wait' })
    await team.says('Middle', 'report', { status: 'completed', result: 'Hello' })
    expect(await team.says('Middle', 'query', { question: 'By train?' })).toMatchObject({
      status: 'ok',
      details: { task_id: 'task_1' },
    })
  })

  it("does not delegate for the next task either; in a turn on other agents' work it delegates for none", async () => {
    team = await openTeam(CHAIN)
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'Plan' })
    await team.says('Top', 'delegate', { to: 'Middle', task: 'Later' })
    await team.says('Middle', 'report', { status: 'completed', result: 'Planned' })
    expect(await team.says('Middle', 'delegate', { to: 'Bottom', task: 'Book' })).toMatchObject(which)
    await team.orders('delegate', { to: 'Top', task: 'Queued' })
    expect(await team.says('Top', 'delegate', { to: 'Middle', task: 'And then' })).toMatchObject({
      status: 'ok',
    })
    expect(await team.task('task_4')).toMatchObject({ text: 'And then', parent: null })
  })
})

describe('a forgetful model', () => {
  it('gets a reminder after a turn that only repeated an answered question (ask 5, C25)', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    const question = { question: 'How?', message_id: 'q1' }
    const asked = await team.says('Worker', 'query', question)
    await team.ends('Worker')
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'follow_up', text: 'And soon' })
    expect(team.turn('Worker')).toContain('And soon')
    expect(await team.says('Worker', 'query', question)).toEqual(asked)
    await team.says('Master', 'answer', { in_response_to: questionOf(asked), answer: 'So.' })
    const mail = await team.mailOf('Worker', 'unread')
    await team.says('Worker', 'mailbox_check')
    await team.says('Worker', 'acknowledge', { ids: mail.map(({ id }) => id) })
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('Task: task_1 (reminder)')
  })

  it('gets two reminders; then its parent gets its last output (ask 5)', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.ends('Worker', 'I think I am done.')
    expect(team.turn('Worker')).toContain('Task: task_1 (reminder)')
    await team.ends('Worker', 'Really done.')
    expect(team.turns('Worker')).toBe(3)
    await team.ends('Worker', 'Told you so.')
    expect(team.turns('Worker')).toBe(3)
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    expect(team.turn('Master')).toContain('Task: task_1 (needs_help)')
    expect(team.turn('Master')).toContain('Told you so.')
    expect(await team.says('Master', 'task_action', { task_id: 'task_1', action: 'accept' })).toMatchObject({
      status: 'ok',
      details: { state: 'completed' },
    })
  })

  it('gets a reminder after a silent turn that follows a turn with a question', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.says('Worker', 'query', { question: 'How?' })
    await team.says('Master', 'answer', { to: 'Worker', answer: 'So.' })
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('So.')
    await team.ends('Worker', 'Thanks.')
    expect(team.turn('Worker')).toContain('Task: task_1 (reminder)')
  })

  it('gets no reminder after a turn in which it reported, asked or delegated', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.says('Worker', 'query', { question: 'How?' })
    await team.ends('Worker', 'I have asked.')
    expect(team.turns('Worker')).toBe(1)
    await team.says('Master', 'answer', { to: 'Worker', answer: 'So.' })
    expect(team.turns('Worker')).toBe(2)
    await team.ends('Worker', '<orc-command name="report" status="completed">All of it</orc-command>')
    expect(team.turns('Worker')).toBe(2)
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', result: 'All of it' })
  })
})

describe('a turn that only sends commands without a response', () => {
  it('must still end with a report, so the agent gets a reminder (ask 5)', async () => {
    team = await openTeam(CHAIN)
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'Plan' })
    await team.says('Middle', 'delegate', { to: 'Bottom', task: 'Note it', requires_response: false })
    await team.ends('Middle', 'Noted.')
    expect(team.turn('Middle')).toContain('Task: task_1 (reminder)')
    await team.says('Middle', 'query', { question: 'By the way?', requires_response: false })
    await team.ends('Middle', 'Asked.')
    expect(team.turn('Middle')).toContain('Task: task_1 (reminder)')
    expect(team.turns('Middle')).toBe(3)
  })
})

describe('an agent whose output is read from a file', () => {
  const REPORT = '<orc-command name="report" status="completed">All of it</orc-command>'

  async function openLate() {
    team = await openTeam(PAIR, {}, Object.assign(createPuppets(), { heardLate: true }))
    await team.rest('Master', 'Worker')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
  }

  const write = (text: string) =>
    team.puppets.of('Worker').port.onText({ text, channel: 'transcript', key: text })

  it('gets no reminder for a report that is read shortly after its turn (ask 5)', async () => {
    await openLate()
    await team.ends('Worker')
    await team.clock.advance(900)
    await write('Nearly there.')
    await team.clock.advance(900)
    await write(REPORT)
    await team.clock.advance(60_000)
    expect(team.turns('Worker')).toBe(1)
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', result: 'All of it' })
  })

  it('gets a reminder once no more output comes, and only for its last turn', async () => {
    await openLate()
    await team.ends('Worker')
    expect(team.turns('Worker')).toBe(1)
    await team.clock.advance(1000)
    expect(team.turn('Worker')).toContain('Task: task_1 (reminder)')
    await team.ends('Worker')
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'follow_up', text: 'Go on' })
    await team.clock.advance(5000)
    expect(team.turns('Worker')).toBe(3)
  })

  it('that is idle after a restart is read to the end too', async () => {
    await openLate()
    team = await team.restarted()
    await team.rest('Worker')
    await write(REPORT)
    await team.clock.advance(60_000)
    expect(team.turns('Worker')).toBe(0)
    expect(await team.task('task_1')).toMatchObject({ state: 'completed' })
  })
})

describe('the timers of a task', () => {
  it('wait for a program to start, within a limit, before the time to take the task counts (C8)', async () => {
    team = await openTeam({ ...PAIR, Stuck: { parent: 'Master' } })
    await team.rest('Master')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.says('Master', 'delegate', { to: 'Stuck', task: 'Do it' })
    await team.clock.advance(89_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'pending', attempt: 1 })
    team.puppets.of('Worker').arrival = new Promise(() => {})
    await team.rest('Worker')
    await team.clock.advance(30_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'pending', attempt: 1 })
    await team.clock.advance(31_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'pending', attempt: 2 })
    expect(await team.task('task_2')).toMatchObject({ state: 'pending', attempt: 1 })
    await team.clock.advance(4 * 60_000)
    expect(await team.task('task_2')).toMatchObject({ attempt: 2 })
  })

  it('do not fail a task while its worker is busy (C8)', async () => {
    await openPair()
    team.puppets.of('Worker').become('busy')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.clock.advance(60_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'analyzing', attempt: 1 })
    await team.ends('Worker')
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', attempt: 1 })
    expect(team.turn('Worker')).toContain('Do it')
  })

  it('interrupt a worker that is not done in time, and retry (S3.19)', async () => {
    await openPair({ tasks: { timeout: '10s', retries: 1 } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.clock.advance(10_000)
    expect(team.puppets.of('Worker').interrupts).toBe(1)
    await team.clock.advance(1000)
    expect(team.turn('Worker')).toContain('This is attempt 2 of 2')
    await team.clock.advance(10_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'failed' })
  })

  it('are extended by the delegator (S3.19)', async () => {
    await openPair({ tasks: { timeout: '10s' } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.says('Worker', 'task_action', {
      task_id: 'task_1',
      action: 'extend',
      seconds: 60,
      text: 'It is long',
    })
    expect(team.turn('Master')).toContain('Task: task_1 (extension)')
    expect(
      await team.says('Master', 'task_action', { task_id: 'task_1', action: 'grant_extension' }),
    ).toMatchObject({ status: 'ok' })
    await team.clock.advance(60_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', attempt: 1 })
  })
})

describe('the end of a task', () => {
  it('does not come when a worker exits at work: a new attempt starts (C7)', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    team.puppets.of('Worker').become('exited', 'it crashed')
    await team.clock.advance(1000)
    expect(team.puppets.started('Worker')).toBe(2)
    await team.rest('Worker')
    expect(team.turn('Worker')).toContain('attempt 2 of 4')
  })
})

describe('on demand', () => {
  it('an agent is started when something is delegated to it (S2.1)', async () => {
    team = await openTeam({ Master: {}, Worker: { parent: 'Master', on_demand: true } })
    await team.rest('Master')
    expect(team.puppets.started('Worker')).toBe(0)
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    expect(team.puppets.started('Worker')).toBe(1)
    await team.rest('Worker')
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
  })
})
