import { describe, expect, it } from 'vitest'
import { problemsOf as problemsIn, read } from './parse.ts'

const yaml = (models: string, agents = 'agents: { A: {} }') => `${agents}\nmodels: ${models}`
const modelsOf = (models: string) => read(yaml(models)).config.models
const problemsOf = (...args: Parameters<typeof yaml>) => problemsIn(yaml(...args))

describe('models in orc.yaml', () => {
  it.each([
    ['anthropic', 'ANTHROPIC_API_KEY'],
    ['openai', 'OPENAI_API_KEY'],
    ['google', 'GEMINI_API_KEY'],
  ])('of %s take their key from %s by default', (provider, keyEnv) => {
    const models = modelsOf(
      `{ a: { provider: ${provider}, model: m }, b: { provider: ${provider}, model: m, key_env: MINE } }`,
    )
    expect(models).toEqual({
      a: { provider, model: 'm', keyEnv, timeoutMs: 120_000, retries: 2 },
      b: { provider, model: 'm', keyEnv: 'MINE', timeoutMs: 120_000, retries: 2 },
    })
  })

  it('accept all settings', () => {
    const models = modelsOf(
      '{ local: { provider: openai-compatible, model: qwen3, base_url: "http://localhost:11434/v1/", timeout: 5m, retries: 0, max_output_tokens: 500, temperature: 0, context_window: 8192 } }',
    )
    expect(models.local).toEqual({
      provider: 'openai-compatible',
      model: 'qwen3',
      baseUrl: 'http://localhost:11434/v1',
      timeoutMs: 300_000,
      retries: 0,
      maxOutputTokens: 500,
      temperature: 0,
      contextWindow: 8192,
    })
  })

  it.each([
    ['{ m: { provider: anthropic, model: m, api_key: sk-ant-secret } }', 'models.m.api_key', /key_env/],
    ['{ m: { provider: anthropic, model: m, key_env: sk-ant-secret } }', 'models.m.key_env', /variable/],
    ['{ m: { provider: openai-compatible, model: m } }', 'models.m', /base_url/],
    [
      '{ m: { provider: openai, model: m, base_url: "https://me:secret@host/v1" } }',
      'models.m.base_url',
      /key_env/,
    ],
    ['{ m: { provider: openai, model: m, base_url: "ftp://host" } }', 'models.m.base_url', /URL of the API/],
    ['{ m: { provider: openia, model: m } }', 'models.m.provider', /Did you mean "openai"/],
    ['{ m: { provider: openai } }', 'models.m.model', /name for the model/],
    ['{ "my model": { provider: openai, model: m } }', 'models["my model"]', /starts with a letter/],
    ['{ m: { provider: openai, model: m, timeout: 30 } }', 'models.m.timeout', /90s/],
  ])('report the mistake in %s without showing a secret', (text, path, hint) => {
    const problems = problemsOf(text)
    expect(problems).toMatchObject([{ path, hint: expect.stringMatching(hint) }])
    expect(JSON.stringify(problems)).not.toContain('secret')
  })

  it('cause a warning if a key would be sent unencrypted', () => {
    const { warnings } = read(
      yaml('{ m: { provider: openai-compatible, model: m, base_url: "http://far.example/v1", key_env: K } }'),
    )
    expect(warnings).toMatchObject([{ path: 'models.m.base_url', hint: 'Use https.' }])
  })

  it('must exist for every llm agent', () => {
    const agents = 'agents: { A: { runtime: llm, with: { model: fats } } }'
    const problems = problemsOf('{ fast: { provider: openai, model: m } }', agents)
    expect(problems).toMatchObject([{ path: 'agents.A.with.model', hint: 'Did you mean "fast"?' }])
    expect(problemsOf('{ fats: { provider: openai, model: m } }', agents)).toEqual([])
  })

  it('cannot run a program', () => {
    const agents = 'agents: { A: { runtime: llm, program: codex, with: { model: m } } }'
    const problems = problemsOf('{ m: { provider: openai, model: m } }', agents)
    expect(problems).toMatchObject([{ path: 'agents.A.program' }])
  })
})
