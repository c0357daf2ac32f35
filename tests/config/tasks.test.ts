import { describe, expect, it } from 'vitest'
import { defineConfig } from '../../src/config/config.ts'
import { problemsOf, read } from './parse.ts'

const TEAM = 'agents: { Master: {}, Worker: { parent: Master } }\n'

describe('tasks in orc.yaml', () => {
  it('have durations, checks and a judge', () => {
    const config = defineConfig({
      agents: { Master: {} },
      models: { wise: { provider: 'openai', model: 'm' } },
      tasks: {
        timeout: '90s',
        retries: 0,
        depth: 3,
        reminders: 1,
        checks: { tests: { command: 'npm test', timeout: '1m' }, lint: { command: 'npm run lint' } },
        judge: 'wise',
      },
    })
    expect(config.tasks).toEqual({
      timeoutMs: 90_000,
      retries: 0,
      depth: 3,
      reminders: 1,
      checks: {
        tests: { command: 'npm test', timeoutMs: 60_000 },
        lint: { command: 'npm run lint', timeoutMs: 300_000 },
      },
      judge: { kind: 'model', name: 'wise' },
      judgeMs: undefined,
      selector: undefined,
      answerCheck: undefined,
      userInputMs: undefined,
    })
  })

  it('have no judge when it is off', () => {
    for (const judge of ['off', false] as const)
      expect(defineConfig({ agents: { Master: {} }, tasks: { judge } }).tasks.judge).toBeUndefined()
  })

  it('accept only an existing model as the selector (S2.14)', () => {
    const models = { fast: { provider: 'openai' as const, model: 'm' } }
    expect(defineConfig({ agents: { Master: {} }, models, tasks: { selector: 'fast' } }).tasks.selector).toBe(
      'fast',
    )
    expect(problemsOf(`${TEAM}tasks: { selector: nobody }`)).toMatchObject([
      { line: 2, path: 'tasks.selector', message: 'There is no model "nobody"' },
    ])
  })

  it('report an unknown judge at its position', () => {
    expect(problemsOf(`${TEAM}tasks: { judge: nobody }`)).toMatchObject([
      { line: 2, path: 'tasks.judge', message: 'There is no model or agent "nobody"' },
    ])
  })

  it('accept an agent as judge, ignoring case, and refuse a name that is both model and agent', () => {
    const { tasks } = defineConfig({
      agents: { Master: {}, Reviewer: {} },
      tasks: { judge: 'reviewer', judge_timeout: '90s' },
    })
    expect(tasks).toMatchObject({ judge: { kind: 'agent', name: 'Reviewer' }, judgeMs: 90_000 })
    const both = 'models: { Worker: { provider: openai, model: m } }\ntasks: { judge: Worker }'
    expect(problemsOf(TEAM + both)).toMatchObject([
      { path: 'tasks.judge', message: '"Worker" is both a model and an agent' },
    ])
  })

  it('refuse more retries than the backoff has steps (C7)', () => {
    expect(problemsOf(`${TEAM}tasks: { retries: 6 }`)).toHaveLength(1)
    expect(problemsOf(`${TEAM}tasks: { timeout: 5 }`)).toHaveLength(1)
  })
})

describe('an agent with on_demand', () => {
  it('does not start with the service unless autostart is set', () => {
    const { agents } = defineConfig({
      agents: {
        A: { on_demand: true, stop_when_idle: '10m', capabilities: ['python'] },
        B: { on_demand: true, autostart: true },
        C: {},
      },
    })
    expect(agents).toMatchObject([
      { autostart: false, onDemand: true, stopWhenIdleMs: 600_000, capabilities: ['python'] },
      { autostart: true, onDemand: true },
      { autostart: true, onDemand: false, capabilities: [] },
    ])
  })

  it('causes a warning if it would be stopped and never started again', () => {
    const { warnings } = read('agents: { A: { stop_when_idle: 10m } }')
    expect(warnings).toMatchObject([{ path: 'agents.A.stop_when_idle' }])
  })
})
