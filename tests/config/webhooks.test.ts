import { describe, expect, it } from 'vitest'
import { problemsOf, read } from './parse.ts'

const yaml = (webhook: string) => `agents: { A: {} }\nwebhooks:\n  chat: ${webhook}\n`

describe('webhooks', () => {
  it('have defaults', () => {
    const { config } = read(
      yaml('{ url: "https://x.example/y", events: [human.asked, "task.*"], secret_env: S }'),
    )
    expect(config.webhooks).toEqual([
      {
        name: 'chat',
        url: 'https://x.example/y',
        secretEnv: 'S',
        format: 'json',
        events: ['human.asked', 'task.*'],
      },
    ])
  })

  it.each([
    ['{ events: ["*"], format: slack }', 'A webhook needs either "url" or "url_env"'],
    [
      '{ url: "https://a.b", url_env: U, events: ["*"], format: slack }',
      'A webhook needs either "url" or "url_env"',
    ],
    ['{ url: "https://a.b", events: ["*"] }', 'A json webhook needs a secret'],
    ['{ url: "https://a:b@c.d", events: ["*"], secret_env: S }', 'must not have a password'],
    ['{ url: "ftp://a.b", events: ["*"], secret_env: S }', 'must start with http:// or https://'],
    ['{ url: "https://a.b", events: [], secret_env: S }', 'events'],
    ['{ url: "https://a.b", events: ["no such thing"], secret_env: S }', 'is not a valid event type'],
    ['{ url: "https://a.b", events: ["*"], secret: x }', 'Never put secrets into this file'],
  ])('%s is refused: %s', (written, words) => {
    const problems = problemsOf(yaml(written)).map(({ path, message, hint }) => `${path}: ${message} ${hint}`)
    expect(problems.join('\n')).toContain(words)
  })

  it('cause a warning for an unencrypted URL on another machine', () => {
    const warned = (url: string) =>
      read(yaml(`{ url: "${url}", events: ["*"], secret_env: S }`)).warnings.length
    expect([warned('http://chat.example/x'), warned('http://127.0.0.1:1/x'), warned('https://c.d')]).toEqual([
      1, 0, 0,
    ])
  })
})

describe('notify', () => {
  it.each(['off', 'bell', 'desktop'])('may be %s', (written) => {
    expect(read(`agents: { A: {} }\nnotify: ${written}\n`).config.notify).toBe(written)
  })
})
