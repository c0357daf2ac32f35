/** `orc github setup`: the needs of the team on GitHub, what is missing, and how to fix it (issue 6, §3). */
import { describe, expect, it } from 'vitest'
import { createTeam } from '../../src/commands/team.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
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
const FACTS: RepositoryFacts = { isPrivate: false, isArchived: false, hasIssues: true }
const EVENTS = [
  ...['issues', 'issue_comment', 'pull_request'],
  ...['pull_request_review', 'pull_request_review_comment'],
]
const MAY_WRITE = { metadata: 'read', issues: 'write', pull_requests: 'write', contents: 'write' }
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
    repository: async () => facts ?? ok({ ...FACTS, roles: ['pull', 'push'] }),
    hooks: async () => hooks ?? ok([HOOK]),
  }
  const { findings, needs } = await checkSetup(createTeam(config), survey, env)
  return {
    needs,
    findings,
    missing: findings.filter(({ level }) => level === 'missing').map(({ text, fix }) => `${text} | ${fix}`),
  }
}

describe('the setup of the GitHub team', () => {
  it('that is complete has no missing item', async () => {
    const { findings } = await check()
    expect(findings.filter(({ level }) => level !== 'ok')).toEqual([])
  })

  it.each<[string, Given, RegExp]>([
    ['a missing secret', { env: { TOKEN: 'x' } }, /SECRET is not set.*openssl rand/],
    ['a missing token', { env: { SECRET: ENV.SECRET } }, /TOKEN is not set/],
    [
      'a file name instead of a key',
      { app: true, env: { ...ENV, KEY: '/etc/key.pem' } },
      /no private key in PEM/,
    ],
    [
      'a missing URL of the moderators',
      { github: { moderators_url_env: 'MODS' } },
      /MODS is not set: moderators are not notified/,
    ],
    ['a revoked token', { self: no('unauthenticated', 401) }, /wrong or was revoked/],
    [
      'a repository that the account cannot see',
      { facts: no('gone', 404) },
      /This account cannot see octo\/hello/,
    ],
    [
      'a token without the scope',
      { self: ok({ kind: 'token', login: 'bot', scopes: ['gist'] }) },
      /scope gist.*public_repo/,
    ],
    [
      'an account that may only read',
      { facts: ok({ ...FACTS, roles: ['pull'] }) },
      /cannot label or close.*triage/,
    ],
    [
      'an account that may not write branches',
      { facts: ok({ ...FACTS, roles: ['triage'] }) },
      /cannot create branches.*prohibited/,
    ],
    [
      'a missing webhook',
      { hooks: ok([]) },
      /no webhook.*https:\/\/orc\.example\.org\/github\/webhooks, application\/json/,
    ],
    [
      'a webhook to another service',
      { hooks: ok([{ ...HOOK, url: 'https://ci.example.org/x' }]) },
      /one to ci\.example\.org/,
    ],
    ['a webhook that sends forms', { hooks: ok([{ ...HOOK, contentType: 'form' }]) }, /sends form/],
    ['a disabled webhook', { hooks: ok([{ ...HOOK, isActive: false }]) }, /The webhook is disabled/],
    [
      'missing events of the webhook',
      { hooks: ok([{ ...HOOK, events: ['issues'] }]) },
      /does not send issue_comment/,
    ],
    [
      'a different secret on GitHub',
      { hooks: ok([{ ...HOOK, lastStatus: 401 }]) },
      /last webhook with 401.*differ/,
    ],
    [
      'a host name that the service does not accept',
      { hooks: ok([{ ...HOOK, url: 'https://other.example.org/github/webhooks' }]) },
      /allowed_hosts: \[other\.example\.org\]/,
    ],
    [
      'a missing permission of the App',
      { app: true, facts: ok({ ...FACTS, permissions: { ...MAY_WRITE, issues: 'read' }, events: EVENTS }) },
      /read access to issues; it needs write \(label, comment, close\).*issues: write/,
    ],
    [
      'a missing event of the App',
      { app: true, facts: ok({ ...FACTS, permissions: MAY_WRITE, events: ['issues'] }) },
      /does not receive issue_comment.*Subscribe to events/,
    ],
  ])('reports %s, and how to fix it', async (_, given, expected) => {
    const { missing } = await check(given)
    expect(missing).toHaveLength(1)
    expect(missing[0]).toMatch(expected)
  })

  it.each(['ada-gh', 'Ada-GH'])('reports a token that belongs to a person of the team: %s', async (login) => {
    const { missing } = await check({ self: ok({ kind: 'token', login, scopes: ['repo'] }) })
    expect(missing).toHaveLength(1)
    expect(missing[0]).toMatch(
      /The token belongs to ada: the team ignores .* including approvals.*GitHub App/,
    )
  })

  it('lists unknown facts, and never shows the value of a variable', async () => {
    const { findings } = await check({ self: ok({ kind: 'token', login: 'bot' }), hooks: no('gone', 404) })
    expect(findings.filter(({ level }) => level === 'unknown')).toHaveLength(2)
    expect(JSON.stringify(findings)).not.toContain(ENV.SECRET)
  })
})

describe('the needs of the team', () => {
  it('shrink with the allowed actions', async () => {
    type Actions = NonNullable<NonNullable<ConfigInput['github']>['actions']>
    const levelOf = async (actions: Actions, name: string) =>
      (await check({ github: { actions } })).needs.permissions.find((one) => one.name === name)?.level
    const never = 'prohibited' as const
    expect(await levelOf({}, 'contents')).toBe('write')
    expect(await levelOf({ branch: never, pull_request: never }, 'contents')).toBe('read')
    expect(await levelOf({ label: never, comment: never, close: never }, 'issues')).toBe('read')
  })

  it('include the routed events, and comments for slash commands', async () => {
    const more = await check({ github: { routes: { 'release.published': ['scribe'] } } })
    expect(more.needs.events).toContain('release')
    const none = { 'issue_comment.created': [], 'pull_request_review_comment.created': [] }
    expect((await check({ github: { routes: none } })).needs.events).toEqual(EVENTS.toSorted())
  })
})
