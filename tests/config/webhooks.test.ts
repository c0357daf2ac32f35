import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'

const load = (webhooks: string) =>
  parseConfig(`agents: { A: {} }\nwebhooks:\n  chat: ${webhooks}\n`, { env: {} })
const problems = (webhooks: string) => {
  const loaded = load(webhooks)
  return loaded.ok ? [] : loaded.error.map(({ path, message, hint }) => `${path}: ${message} ${hint}`)
}

describe('webhooks', () => {
  it('have defaults', () => {
    const loaded = load('{ url: "https://x.example/y", events: [human.asked, "task.*"], secret_env: S }')
    expect(loaded.ok && loaded.value.config.webhooks).toEqual([
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
    expect(problems(written).join('\n')).toContain(words)
  })

  it('cause a warning for an unencrypted URL on another machine', () => {
    const warned = (url: string) => {
      const loaded = load(`{ url: "${url}", events: ["*"], secret_env: S }`)
      return loaded.ok ? loaded.value.warnings.length : -1
    }
    expect([warned('http://chat.example/x'), warned('http://127.0.0.1:1/x'), warned('https://c.d')]).toEqual([
      1, 0, 0,
    ])
  })
})

describe('notify', () => {
  it.each([
    ['off', 'off'],
    ['bell', 'bell'],
    ['desktop', 'desktop'],
  ])('may be %s', (written, read) => {
    const loaded = parseConfig(`agents: { A: {} }\nnotify: ${written}\n`, { env: {} })
    expect(loaded.ok && loaded.value.config.notify).toBe(read)
  })
})
