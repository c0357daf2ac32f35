/** `orc github setup`: what the team needs of GitHub, whether it has it, how to mend it (issue 6, §3). */
import { describe, expect, it } from 'vitest'
import { createTeam } from '../../src/commands/team.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { neededEvents, neededPermissions } from '../../src/github/core/needs.ts'
import type {
  AccountIdentity,
  GitHubResult,
  RepositoryFacts,
  SetupSurvey,
  WebhookFacts,
} from '../../src/github/port.ts'
import { checkSetup } from '../../src/github/setup.ts'

const ENV = { SECRET: 'x'.repeat(32), TOKEN: 'token', KEY: '-----BEGIN RSA PRIVATE KEY-----' }
const HOOK: WebhookFacts = {
  url: 'https://orc.example.org/github/webhooks',
  isActive: true,
  contentType: 'json',
  events: ['*'],
  lastStatus: 202,
}
const ok = <Value>(value: Value): GitHubResult<Value> => ({ ok: true, value })
const no = (kind: 'gone' | 'unauthenticated' | 'forbidden', status: number): GitHubResult<never> => ({
  ok: false,
  error: { kind, status, message: 'Not Found' },
})

interface Given {
  self?: GitHubResult<AccountIdentity>
  facts?: GitHubResult<RepositoryFacts>
  hooks?: GitHubResult<readonly WebhookFacts[]>
  github?: Partial<NonNullable<ConfigInput['github']>>
  env?: Record<string, string>
  app?: boolean
}

async function check({ self, facts, hooks, github, env = ENV, app = false }: Given = {}) {
  const config = defineConfig(
    {
      agents: { Triage: {}, Concierge: {}, Lifecycle: {}, Scribe: {}, Community: {} },
      people: { ada: { github: 'ada-gh' }, ben: { github: 'ben-gh' }, mo: { role: 'moderator' } },
      service: { allowed_hosts: ['orc.example.org'] },
      github: {
        secret_env: 'SECRET',
        ...(app ? { app: { id: 7, key_env: 'KEY' } } : { token_env: 'TOKEN' }),
        repositories: ['octo/hello'],
        maintainers: ['ada-gh'],
        ...github,
      },
    },
    { file: '/tmp/orc.yaml', env: {} },
  )
  const survey: SetupSurvey = {
    self: async () =>
      self ??
      ok(app ? { kind: 'app', login: 'orchub[bot]' } : { kind: 'token', login: 'bot', scopes: ['repo'] }),
    repository: async () =>
      facts ?? ok({ isPrivate: false, isArchived: false, hasIssues: true, roles: ['pull', 'push'] }),
    hooks: async () => hooks ?? ok([HOOK]),
  }
  const { findings } = await checkSetup(createTeam(config), survey, env)
  return {
    findings,
    missing: findings.filter(({ level }) => level === 'missing').map(({ text, mend }) => `${text} | ${mend}`),
  }
}

describe('the set-up of the GitHub team', () => {
  it('that is whole misses nothing', async () => {
    const { findings } = await check()
    expect(findings.filter(({ level }) => level !== 'ok')).toEqual([])
  })

  it.each<[string, Given, RegExp]>([
    ['no secret', { env: { TOKEN: 'x' } }, /SECRET is not set.*openssl rand/],
    ['no token', { env: { SECRET: ENV.SECRET } }, /TOKEN is not set/],
    [
      'the name of a file in place of a key',
      { app: true, env: { ...ENV, KEY: '/etc/key.pem' } },
      /no private key in PEM/,
    ],
    [
      'no address of the moderators',
      { github: { moderators_url_env: 'MODS' } },
      /MODS is not set: moderators are not notified/,
    ],
    ['a token that was revoked', { self: no('unauthenticated', 401) }, /wrong or was revoked/],
    ['a repository that is not for it', { facts: no('gone', 404) }, /This account cannot see octo\/hello/],
    [
      'a token without the scope',
      { self: ok({ kind: 'token', login: 'bot', scopes: ['gist'] }) },
      /scope gist.*public_repo/,
    ],
    [
      'an account that may only read',
      { facts: ok({ isPrivate: false, isArchived: false, hasIssues: true, roles: ['pull'] }) },
      /cannot label or close.*triage/,
    ],
    [
      'an account that may not write branches',
      { facts: ok({ isPrivate: false, isArchived: false, hasIssues: true, roles: ['triage'] }) },
      /cannot create branches.*prohibited/,
    ],
    [
      'no webhook',
      { hooks: ok([]) },
      /no webhook.*https:\/\/orc\.example\.org\/github\/webhooks, application\/json/,
    ],
    [
      'a webhook elsewhere',
      { hooks: ok([{ ...HOOK, url: 'https://ci.example.org/x' }]) },
      /one to ci\.example\.org/,
    ],
    ['a webhook that sends forms', { hooks: ok([{ ...HOOK, contentType: 'form' }]) }, /sends form/],
    ['a webhook that is off', { hooks: ok([{ ...HOOK, isActive: false }]) }, /The webhook is disabled/],
    [
      'events that are not sent',
      { hooks: ok([{ ...HOOK, events: ['issues'] }]) },
      /does not send issue_comment/,
    ],
    ['another secret on GitHub', { hooks: ok([{ ...HOOK, lastStatus: 401 }]) }, /answered with 401.*differ/],
    [
      'a name that the service does not answer to',
      { hooks: ok([{ ...HOOK, url: 'https://other.example.org/github/webhooks' }]) },
      /allowed_hosts: \[other\.example\.org\]/,
    ],
    [
      'a permission of the App',
      {
        app: true,
        facts: ok({
          isPrivate: false,
          isArchived: false,
          hasIssues: true,
          permissions: { metadata: 'read', issues: 'read', pull_requests: 'write', contents: 'write' },
          events: [
            ...['issues', 'issue_comment', 'pull_request'],
            ...['pull_request_review', 'pull_request_review_comment'],
          ],
        }),
      },
      /read access to issues; it needs write \(label, comment, close\).*issues: write/,
    ],
    [
      'an event of the App',
      {
        app: true,
        facts: ok({
          isPrivate: false,
          isArchived: false,
          hasIssues: true,
          permissions: { metadata: 'read', issues: 'write', pull_requests: 'write', contents: 'write' },
          events: ['issues'],
        }),
      },
      /does not receive issue_comment.*Subscribe to events/,
    ],
  ])('says that there is %s, and how to mend it', async (_, given, expected) => {
    const { missing } = await check(given)
    expect(missing).toHaveLength(1)
    expect(missing[0]).toMatch(expected)
  })

  it.each(['ada-gh', 'Ada-GH'])("finds it missing that the token is a person's own: %s", async (login) => {
    const { missing } = await check({ self: ok({ kind: 'token', login, scopes: ['repo'] }) })
    expect(missing).toHaveLength(1)
    expect(missing[0]).toMatch(/The token is ada's own: the team ignores .* approvals too.*GitHub App/)
  })

  it('says what GitHub does not tell, and never what is in a variable', async () => {
    const { findings } = await check({ self: ok({ kind: 'token', login: 'bot' }), hooks: no('gone', 404) })
    expect(findings.filter(({ level }) => level === 'unknown')).toHaveLength(2)
    expect(JSON.stringify(findings)).not.toContain(ENV.SECRET)
  })
})

describe('what is needed', () => {
  it('is less where less may be done', () => {
    const never = { mode: 'prohibited' as const, quorum: 1 }
    const level = (actions: Parameters<typeof neededPermissions>[0], name: string) =>
      neededPermissions(actions).find((one) => one.name === name)?.level
    expect(level({}, 'contents')).toBe('write')
    expect(level({ branch: never, pull_request: never }, 'contents')).toBe('read')
    expect(level({ label: never, comment: never, close: never }, 'issues')).toBe('read')
  })

  it('are the events that are routed, and comments, for commands', () => {
    expect(neededEvents({ 'release.published': [{ to: 'scribe', when: [], on: 'any' }] })).toContain(
      'release',
    )
    const none = { 'issue_comment.created': [], 'pull_request_review_comment.created': [] }
    expect(neededEvents(none)).toEqual([
      ...['issue_comment', 'issues', 'pull_request'],
      ...['pull_request_review', 'pull_request_review_comment'],
    ])
  })
})
