import { afterEach, describe, expect, it } from 'vitest'
import { createPuppets } from '../fakes/puppet-runtime.ts'
import { openTeam, type TaskTeam } from './harness.ts'

let team: TaskTeam
afterEach(() => team.close())

const PAIR = { Master: {}, Worker: { parent: 'Master' } }

async function openPair(more = {}) {
  team = await openTeam(PAIR, more)
  await team.rest('Master', 'Worker')
}

async function report(result: string) {
  return await team.says('Worker', 'report', { status: 'completed', result })
}

describe('an agent that is idle', () => {
  it('is stopped after the idle time, and restarted by the next task with its conversation', async () => {
    team = await openTeam({
      Master: {},
      Worker: { parent: 'Master', on_demand: true, stop_when_idle: '10m' },
    })
    await team.rest('Master')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.rest('Worker')
    await report('Done')
    await team.puppets.of('Worker').port.saveState({ conversation: 7 })
    await team.ends('Worker')
    await team.clock.advance(9 * 60_000)
    expect(team.puppets.of('Worker').ended).toBeUndefined()
    await team.clock.advance(60_000)
    expect(team.puppets.of('Worker').ended).toBe('stop')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'And this' })
    expect(team.puppets.started('Worker')).toBe(2)
    expect(team.puppets.of('Worker').start.savedState).toEqual({ conversation: 7 })
  })
})

describe('a restart', () => {
  it('before the task is taken starts the worker and delivers the task once', async () => {
    const puppets = createPuppets()
    team = await openTeam({ Master: {}, Worker: { parent: 'Master', on_demand: true } }, {}, puppets)
    await team.rest('Master')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    expect(await team.task('task_1')).toMatchObject({ state: 'pending' })
    team = await team.restarted()
    await team.rest('Worker')
    expect(team.turn('Worker')).toContain('Do it')
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', attempt: 1 })
    expect(team.turns('Worker')).toBe(1)
  })

  it('uses up no attempt for the time in which the service was down (C8)', async () => {
    const puppets = createPuppets()
    team = await openTeam({ Master: {}, Worker: { parent: 'Master', on_demand: true } }, {}, puppets)
    await team.rest('Master')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    team = await team.restarted(3 * 3600_000)
    await team.clock.advance(20_000)
    await team.rest('Worker')
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', attempt: 1 })
  })

  it('while the worker is at work reminds it, and does not send the task again', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    team = await team.restarted()
    await team.rest('Master', 'Worker')
    expect(team.turn('Worker')).toContain('Task: task_1 (reminder)')
    await team.says('Worker', 'report', { status: 'completed', result: 'Done' })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', attempt: 1 })
    expect((await team.mailOf('Worker')).filter(({ content }) => content === 'Do it')).toHaveLength(1)
  })

  it('while the task waits for an answer, a person or a child keeps the wait and its timer', async () => {
    team = await openTeam({ Top: {}, Middle: { parent: 'Top' }, Bottom: { parent: 'Middle' } })
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'One' })
    await team.says('Middle', 'delegate', { to: 'Bottom', task: 'Two' })
    await team.says('Bottom', 'request_user_input', { question: 'Which?' })
    team = await team.restarted()
    await team.rest('Top', 'Middle', 'Bottom')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_child' })
    expect(await team.task('task_2')).toMatchObject({ state: 'waiting_user' })
    expect(team.turns('Bottom')).toBe(0)
    await team.orders('user_response', { in_response_to: 'req_1', answer: 'That one' })
    expect(team.turn('Bottom')).toContain('That one')
    team = await team.restarted()
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Bottom', 'report', { status: 'completed', result: 'Two is done' })
    expect(team.turn('Middle')).toContain('Two is done')
    expect(team.turns('Middle')).toBe(1)
  })

  it('causes no reminder while mail of a child is unread', async () => {
    team = await openTeam({ Top: {}, Middle: { parent: 'Top' }, Bottom: { parent: 'Middle' } })
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'One' })
    await team.says('Middle', 'delegate', { to: 'Bottom', task: 'Two' })
    // Middle is still in its turn when the child asks.
    await team.says('Bottom', 'query', { question: 'Price or convenience?' })
    team = await team.restarted()
    await team.rest('Top', 'Bottom', 'Middle')
    const turns = team.puppets.of('Middle').turns.map(({ text }) => text)
    expect(turns.some((text) => text.includes('Price or convenience?'))).toBe(true)
    expect(turns.some((text) => text.includes('(reminder)'))).toBe(false)
    expect(await team.task('task_1')).toMatchObject({ reminders: 0 })
  })

  it('while a claim is checked runs the checks again, and counts them once', async () => {
    await openPair({ tasks: { checks: { once: { command: 'echo run >> ran; sleep 0.2' } } } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['once'] })
    await report('Done')
    team = await team.restarted()
    await team.until(async () => (await team.task('task_1')).claim === null)
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', claims: 1 })
    const { evidence } = await team.task('task_1')
    expect(evidence.filter(({ step }) => step === 'checks')).toHaveLength(1)
  })

  it('between a cancellation and its interrupt interrupts the worker, once its state is known', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    // Like kill -9: only the disk is left.
    await team.tasks.close()
    await team.orders('task_action', { task_id: 'task_1', action: 'cancel', text: 'changed our minds' })
    expect(team.puppets.of('Worker').interrupts).toBe(0)
    team = await team.restarted()
    expect(await team.task('task_1')).toMatchObject({ state: 'cancelled', interrupting: true })
    team.puppets.of('Worker').become('busy', 'found at work')
    await team.settle()
    expect(team.puppets.of('Worker').interrupts).toBe(1)
    expect(await team.task('task_1')).toMatchObject({ state: 'cancelled', interrupting: false })
    team = await team.restarted()
    team.puppets.of('Worker').become('busy')
    await team.settle()
    expect(team.puppets.of('Worker').interrupts).toBe(0)
  })

  it('does not let that interrupt hit the next turn', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.tasks.close()
    await team.orders('task_action', { task_id: 'task_1', action: 'cancel' })
    await team.orders('send_message', { to: 'Worker', content: 'And now something else' })
    team = await team.restarted()
    await team.rest('Worker')
    expect(team.turn('Worker')).toContain('And now something else')
    expect(team.puppets.of('Worker').interrupts).toBe(0)
    expect(await team.task('task_1')).toMatchObject({ state: 'cancelled', interrupting: false })
  })

  it('does not let the interrupt of one attempt hit the next', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.tasks.close()
    await team.clock.advance(300_000)
    expect(await team.task('task_1')).toMatchObject({ attempt: 2, interrupting: true })
    team = await team.restarted()
    await team.clock.advance(2000)
    expect(await team.task('task_1')).toMatchObject({ attempt: 2, interrupting: false })
    team.puppets.of('Worker').become('busy', 'at work on what it was sent again')
    await team.settle()
    expect(team.puppets.of('Worker').interrupts).toBe(0)
  })

  it('after the end changes nothing', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await report('Done')
    const before = await team.task('task_1')
    team = await team.restarted()
    await team.rest('Master', 'Worker')
    await team.clock.advance(3600_000)
    expect(await team.task('task_1')).toEqual(before)
    expect((await team.mailOf('Master')).filter(({ content }) => content === 'Done')).toHaveLength(1)
  })

  it('keeps the deadline', async () => {
    await openPair({ tasks: { timeout: '60s', retries: 0 } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.clock.advance(40_000)
    team = await team.restarted()
    await team.clock.advance(19_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    await team.clock.advance(2000)
    expect(await team.task('task_1')).toMatchObject({ state: 'failed' })
  })
})
