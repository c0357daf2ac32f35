import { describe, expect, it } from 'vitest'
import { AppError } from '../../src/base/errors.ts'
import { type ConfigInput, defineConfig, parseConfig } from '../../src/config/config.ts'

const env = {}

function failure(input: unknown): AppError {
  try {
    defineConfig(input as ConfigInput, { env })
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('It was accepted')
}

describe('a configuration without a file', () => {
  const input: ConfigInput = {
    agents: { Master: {}, Worker: { parent: 'master', permissions: { urgent: 'ask' } } },
    rules: { preset: 'tree', forbid: [{ from: 'Worker', to: '*' }] },
    limits: { rate: false, ping_pong: { turns: 9, within: '1m' } },
  }

  it('is the same as one from a file, except for line numbers', () => {
    const loaded = parseConfig(JSON.stringify(input), { env })
    const { lines, ...fromText } = loaded.ok ? loaded.value.config : expect.fail()
    expect(defineConfig(input, { env })).toEqual({ ...fromText, lines: {} })
    expect(Object.keys(lines)).toContain('rules.forbid[0]')
  })

  it('is a frozen copy: later changes of the input have no effect', () => {
    const steps = [1]
    const config = defineConfig({ agents: { A: { runtime: 'scripted', with: { steps } } } }, { env })
    steps.push(2)
    expect(config.agents[0]?.with).toEqual({ steps: [1] })
    expect(Object.isFrozen(config.agents[0]?.with.steps)).toBe(true)
  })

  it('throws CONFIG_INVALID with the path of every problem', () => {
    const error = failure({ agents: { A: { parent: 'Zoe' } }, rules: { preset: 'hub' } })
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain('agents.A.parent: There is no agent "Zoe"')
    expect(error.message).toContain('rules.preset: The preset "hub" needs')
    expect(error.data?.problems).toHaveLength(2)
    expect(error.hint).toContain('The agents are A')
  })

  const circular: Record<string, unknown> = {}
  circular.self = circular

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a function', { agents: { A: { with: { run: () => 1 } } } }],
    ['a class instance', { agents: new Map() }],
    ['an object inside itself', { agents: { A: { runtime: 'scripted', with: circular } } }],
    ['__proto__ as data', JSON.parse('{ "agents": { "A": {}, "__proto__": {} } }')],
  ])('refuses %s', (_name, input) => {
    expect(failure(input).code).toBe('CONFIG_INVALID')
  })
})
