import { afterEach, describe, expect, it } from 'vitest'
import { spentOnTask } from '../../../src/agents/store.ts'
import type { ConfigInput } from '../../../src/config/config.ts'
import type { FailureCode, Models, ObjectCall, Spending } from '../../../src/llm/llm.ts'
import { createPuppets } from '../../fakes/puppet-runtime.ts'
import { openTeam, type TaskTeam } from '../harness.ts'

let team: TaskTeam
afterEach(() => team.close())

const PAIR = { Master: {}, Worker: { parent: 'Master' } }
const MODELS: ConfigInput['models'] = {
  wise: { provider: 'openai', model: 'gpt-wise' },
  other: { provider: 'openai', model: 'gpt-other' },
}

type Answer = { completed: boolean; reason: string } | FailureCode | 'silence'

/** Models with these answers, each for a million tokens; records the requests. */
function answering(...answers: Answer[]) {
  const asked: { model: string; prompt: string }[] = []
  const spending: Spending = { model: 'gpt-wise', input: 1_000_000, output: 0, cacheRead: 0, cacheWrite: 0 }
  const models = {
    about: () => undefined,
    stream: () => Promise.reject(new Error('a judge has no conversation')),
    async generateObject({ model, prompt, spent, signal }: ObjectCall) {
      asked.push({ model, prompt })
      const value = answers.shift()
      if (value === 'silence') {
        await new Promise((resolve) => signal?.addEventListener('abort', resolve))
        return { ok: false, code: 'aborted', message: 'no longer wanted', hint: '' }
      }
      spent?.(spending)
      if (typeof value !== 'object') return { ok: false, code: value, message: `it is ${value}`, hint: '' }
      return { ok: true, value, spending }
    },
  } as unknown as Models
  return { models, asked }
}

async function openJudged(models: Models, more: Partial<ConfigInput> = {}) {
  const tasks = { judge: 'wise', retries: 1, ...more.tasks }
  team = await openTeam(PAIR, { models: MODELS, ...more, tasks }, createPuppets(), models)
  await team.rest('Master', 'Worker')
  await team.says('Master', 'delegate', { to: 'Worker', task: 'Sum up' })
}

const report = (result: string) => team.says('Worker', 'report', { status: 'completed', result })
const last = async (id = 'task_1') => (await team.task(id)).evidence.at(-1)!

describe('a model that judges', () => {
  it('judges a few claims in parallel; time in the queue does not count, and cancelled claims are aborted', async () => {
    const { models, asked } = answering(...Array.from({ length: 20 }, (): Answer => 'silence'))
    const workers = Object.fromEntries(
      Array.from({ length: 18 }, (_, index) => [`W${index}`, { parent: 'Master' }]),
    )
    const tasks = { judge: 'wise', retries: 1 }
    team = await openTeam({ Master: {}, ...workers }, { models: MODELS, tasks }, createPuppets(), models)
    await team.rest('Master', ...Object.keys(workers))
    for (const to of Object.keys(workers)) {
      await team.say('Master', 'delegate', { to, task: 'Sum up' })
      await team.says(to, 'report', { status: 'completed', result: 'Done' })
    }
    expect(asked).toHaveLength(16)
    await team.clock.advance(200_000)
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'cancel' })
    expect(asked).toHaveLength(17)
    await team.clock.advance(101_000)
    expect(asked).toHaveLength(18)
    expect(await team.task('task_2')).toMatchObject({ claim: null })
    for (const id of ['task_17', 'task_18']) {
      expect(await team.task(id)).toMatchObject({ claim: { step: 'judge' } })
    }
  })

  it('rejects work that does not do the task, and accepts work that does (S2.11)', async () => {
    const { models, asked } = answering(
      { completed: false, reason: 'the sum is missing' },
      { completed: true, reason: 'the sum is there' },
    )
    await openJudged(models)
    await report('I did it')
    expect(await last()).toMatchObject({ step: 'judge', outcome: 'failed', by: 'wise', claim: 1 })
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('the sum is missing')
    await report('It is 42')
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', reason: 'the sum is there' })
    expect(asked[1]!.prompt).toContain('Sum up')
    expect(asked[1]!.prompt).toContain('It is 42')
  })

  it.each(['garbage', 'refused', 'timeout', 'no_key', 'unavailable'] as const)(
    'that fails with %s has not judged: it is on record, and the delegator decides',
    async (code) => {
      await openJudged(answering(code).models)
      await report('I did it')
      expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent', result: 'I did it' })
      expect(await last()).toMatchObject({
        step: 'judge',
        outcome: 'unavailable',
        text: `the judge wise failed (${code}): it is ${code}`,
      })
      expect(team.turn('Master')).toContain(`it is ${code}`)
      await team.says('Master', 'task_action', { task_id: 'task_1', action: 'accept' })
      expect(await team.task('task_1')).toMatchObject({ state: 'completed', result: 'I did it' })
    },
  )

  it('that does not answer in time is given up, and its request is aborted (C8)', async () => {
    await openJudged(answering('silence').models, { tasks: { judge_timeout: '90s' } })
    await report('I did it')
    await team.clock.advance(89_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    await team.clock.advance(1000)
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    expect(await last()).toMatchObject({ outcome: 'unavailable', text: expect.stringContaining('in time') })
  })

  it('that orc.yaml no longer has leaves the decision to the delegator', async () => {
    await openJudged(answering().models)
    const { config } = team.team()
    await team.engine.reload({ ...config, models: {}, tasks: { ...config.tasks, judge: undefined } })
    await report('I did it')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    expect(await last()).toMatchObject({ outcome: 'unavailable' })
  })

  it('is asked again after a crash, and counts once', async () => {
    const { models, asked } = answering('silence', { completed: true, reason: 'fine' })
    await openJudged(models)
    await report('I did it')
    team = await team.restarted()
    await team.rest('Master', 'Worker')
    expect(asked).toHaveLength(2)
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', claims: 1 })
    expect((await team.task('task_1')).evidence.filter(({ step }) => step === 'judge')).toHaveLength(1)
  })

  it('is billed to the task and the service (issue 4, §3)', async () => {
    const { models } = answering({ completed: false, reason: 'no' }, { completed: true, reason: 'yes' })
    await openJudged(models, { prices: { 'gpt-wise': { input: 2, output: 8 } } })
    await report('One')
    await report('Two')
    expect(await spentOnTask(team.store, 1)).toMatchObject([
      { agent: 'orchestrator', answers: 2, input: 2_000_000, cost: 4, unpriced: 0 },
    ])
    expect(team.usageTracker.spent('orchestrator')).toBe(4)
    team = await team.restarted()
    expect(team.usageTracker.spent('orchestrator')).toBe(4)
  })

  it('is not asked beyond the spending limit; a person gets one notice, and delegators decide', async () => {
    const no = { completed: false, reason: 'no' }
    const { models, asked } = answering(no, no)
    await openJudged(models, {
      prices: { 'gpt-wise': { input: 2, output: 8 } },
      limits: { rate: 'off', spend: { per_agent: 2 } },
    })
    await report('One')
    await report('Two')
    expect(asked).toHaveLength(1)
    expect(await last()).toMatchObject({
      outcome: 'unavailable',
      text: expect.stringContaining('limits.spend'),
    })
    expect(team.entries.filter(({ type }) => type === 'human.asked')).toHaveLength(1)
  })

  it('is chosen by a delegation only with the permission choose_judge, or where it is the judge anyway', async () => {
    const yes = { completed: true, reason: 'fine' }
    const { models, asked } = answering(yes, yes)
    await openJudged(models)
    await report('One')
    const delegate = (judge: string) => team.says('Master', 'delegate', { to: 'Worker', task: 'More', judge })
    expect(await delegate('other')).toMatchObject({ status: 'blocked' })
    expect(await delegate('wise')).toMatchObject({ status: 'ok' })
    expect(await delegate('nobody')).toMatchObject({ status: 'error', code: 'NOT_FOUND' })
    expect(
      await team.orders('delegate', { to: 'Worker', task: 'By a person', judge: 'other' }),
    ).toMatchObject({ status: 'ok' })
    await team.says('Worker', 'report', { status: 'completed', result: 'Yes', in_response_to: 'task_3' })
    expect(asked.map(({ model }) => model)).toEqual(['wise', 'other'])
  })
})

describe('an agent that judges', () => {
  const TRIO = { ...PAIR, Reviewer: {} }

  async function openReviewed(more: Partial<ConfigInput> = {}, agents: ConfigInput['agents'] = TRIO) {
    const tasks = { judge: 'Reviewer', retries: 1, ...more.tasks }
    team = await openTeam(agents, { ...more, tasks })
    await team.rest('Master', 'Worker')
    if (team.puppets.started('Reviewer') > 0) await team.rest('Reviewer')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Sum up' })
  }

  const judge = (claim: number, completed: boolean, reason = 'I looked') =>
    team.says('Reviewer', 'judge', { task_id: 'task_1', claim, completed, reason })

  it('gets the task, the claim and the evidence as a message, and answers with a command (S2.11)', async () => {
    await openReviewed()
    await report('It is 42')
    const asked = team.turn('Reviewer')
    for (const part of [
      'From: orchestrator',
      'Task: task_1 (review)',
      'Reply with: judge task_id="task_1"',
      '> Sum up',
      '> It is 42',
      'claim 1',
    ]) {
      expect(asked).toContain(part)
    }
    expect(await team.task('task_1')).toMatchObject({
      state: 'executing',
      claim: { number: 1, step: 'judge' },
    })
    expect(await judge(1, true, 'The sum is right')).toMatchObject({
      status: 'ok',
      result: 'task_1 is completed',
      details: { task_id: 'task_1', claim: 1, state: 'completed' },
    })
    expect(await last()).toMatchObject({ outcome: 'passed', by: 'Reviewer', text: 'The sum is right' })
    expect(team.turn('Master')).toContain('It is 42')
  })

  it('is accepted in free text, with words for yes and no and the number as text (S0.16)', async () => {
    await openReviewed()
    await report('I did it')
    await team.ends(
      'Reviewer',
      '<orc-command name="judge" task_id="task_1" claim="1" completed="no">The sum is missing.</orc-command>',
    )
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('The sum is missing.')
    expect(team.turns('Reviewer')).toBe(1)
  })

  it('cannot judge an earlier claim, judge twice, or judge claims of others', async () => {
    await openReviewed()
    await report('One')
    expect(await judge(1, false)).toMatchObject({ result: 'task_1 is not done; Worker continues' })
    await report('Two')
    expect(await judge(1, true)).toMatchObject({ status: 'error', code: 'CONFLICT' })
    for (const name of ['Worker', 'Master']) {
      expect(
        await team.says(name, 'judge', { task_id: 'task_1', claim: 2, completed: true, reason: 'mine' }),
      ).toMatchObject({ status: 'error', code: 'FORBIDDEN' })
    }
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    expect(await judge(2, true)).toMatchObject({ result: 'task_1 is completed' })
    expect(await judge(2, true)).toMatchObject({ status: 'error', code: 'CONFLICT' })
  })

  it('must say why, which claim, and yes or no', async () => {
    await openReviewed()
    await report('One')
    for (const wrong of [{ reason: ' ' }, { completed: 'maybe' }, { claim: 'first' }, { claim: undefined }]) {
      const fields = { task_id: 'task_1', claim: 1, completed: true, reason: 'fine', ...wrong }
      expect(await team.says('Reviewer', 'judge', fields)).toMatchObject({ code: 'INVALID_COMMAND' })
    }
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
  })

  it('that forgets gets two reminders; then the delegator decides with its last output (ask 5)', async () => {
    await openReviewed()
    await report('One')
    await team.ends('Reviewer', 'Looks good.')
    await team.ends('Reviewer', 'Yes, good.')
    expect(team.turns('Reviewer')).toBe(3)
    expect(team.turn('Reviewer')).toContain('still needs your judgement')
    await team.ends('Reviewer', 'I said it is good.')
    expect(team.turns('Reviewer')).toBe(3)
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    await team.ends('Master')
    expect(team.turn('Master')).toContain('I said it is good.')
    expect(await judge(1, true)).toMatchObject({ code: 'CONFLICT' })
  })

  it('that is busy gets the claim when it is idle, and no reminder before', async () => {
    await openReviewed()
    team.puppets.of('Reviewer').become('busy')
    await report('One')
    expect(team.turns('Reviewer')).toBe(0)
    await team.ends('Reviewer')
    expect(team.turns('Reviewer')).toBe(1)
    expect(team.turn('Reviewer')).toContain('(review)')
  })

  it('that exits or never starts has not judged: the evidence says so, and the delegator decides', async () => {
    await openReviewed()
    await report('One')
    team.puppets.of('Reviewer').become('exited', 'it crashed')
    await team.settle()
    expect(await last()).toMatchObject({
      outcome: 'unavailable',
      text: expect.stringContaining('it crashed'),
    })
    await team.close()
    await openReviewed()
    team.puppets.of('Reviewer').become('busy')
    await report('One')
    await team.clock.advance(30 * 60_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    // An undelivered claim is withdrawn.
    await team.ends('Reviewer')
    expect(team.turns('Reviewer')).toBe(0)
  })

  it('that has left the team is given up', async () => {
    await openReviewed()
    const { config } = team.team()
    await team.engine.reload({ ...config, agents: config.agents.filter(({ name }) => name !== 'Reviewer') })
    await report('One')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    expect(await last()).toMatchObject({
      outcome: 'unavailable',
      text: 'Reviewer cannot judge it: it is no longer in the team',
    })
  })

  it('is started on demand, and kept awake until it has judged', async () => {
    await openReviewed({}, { ...PAIR, Reviewer: { on_demand: true, stop_when_idle: '1m' } })
    expect(team.puppets.started('Reviewer')).toBe(0)
    await report('One')
    expect(team.puppets.started('Reviewer')).toBe(1)
    await team.rest('Reviewer')
    expect(team.turn('Reviewer')).toContain('(review)')
    await judge(1, true)
    await team.ends('Reviewer')
    await team.clock.advance(60_000)
    expect(team.puppets.of('Reviewer').ended).toBe('stop')
  })

  it('is reminded after a restart of the service, and its judgement counts', async () => {
    await openReviewed()
    await report('One')
    team = await team.restarted()
    await team.rest('Master', 'Worker', 'Reviewer')
    expect(team.turn('Reviewer')).toContain('still needs your judgement')
    expect(await judge(1, true)).toMatchObject({ result: 'task_1 is completed' })
  })

  it('does not judge its own work, and cannot be named for it', async () => {
    await openReviewed({}, { Master: {}, Worker: { parent: 'Master' }, Reviewer: { parent: 'Master' } })
    const self = { to: 'Reviewer', task: 'Look', judge: 'Reviewer' }
    expect(await team.says('Master', 'delegate', self)).toMatchObject({ code: 'INVALID_COMMAND' })
    await team.says('Master', 'delegate', { to: 'Reviewer', task: 'Look' })
    await team.says('Reviewer', 'report', { status: 'completed', result: 'Seen' })
    expect(await team.task('task_2')).toMatchObject({ state: 'completed' })
    expect(await last('task_2')).toMatchObject({
      outcome: 'skipped',
      text: 'Reviewer does not judge its own work',
    })
  })

  it('can be overruled by a person, who judges in its place', async () => {
    await openReviewed()
    await report('One')
    expect(
      await team.orders('judge', { task_id: 'task_1', claim: 1, completed: true, reason: 'Good enough' }),
    ).toMatchObject({ result: 'task_1 is completed' })
    expect(await last()).toMatchObject({ by: 'operator' })
  })
})

describe('what agents spend', () => {
  it('is billed to the task of their turn, if it is only one', async () => {
    team = await openTeam(PAIR, { prices: { m: { input: 1, output: 1 } } })
    await team.rest('Master', 'Worker')
    const use = (name: string, key: string) =>
      team.puppets.of(name).port.onUsage({
        model: 'm',
        spent: { key, input: 1_000_000, output: 0, cacheRead: 0, cacheWrite: 0 },
      })
    use('Worker', 'before')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Sum up' })
    use('Worker', 'during')
    use('Worker', 'during')
    await report('It is 42')
    await team.ends('Worker')
    // The usage may be recorded a moment later.
    use('Worker', 'late')
    await team.settle()
    expect(await spentOnTask(team.store, 1)).toMatchObject([{ agent: 'Worker', answers: 2, cost: 2 }])
    expect(team.usageTracker.spent('Worker')).toBe(3)
  })
})
