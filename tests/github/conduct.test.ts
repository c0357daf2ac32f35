/** Flags about conduct: only moderators find any trace of them (S3.14, S3.15, C12). */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { EMPTY_REPORT, separateConduct } from '../../src/github/core/report.ts'
import { readConduct } from '../../src/github/store.ts'
import { commenting, type GithubTeam, NOTHING, OLD, openGithubTeam, proposing } from './harness.ts'

const RUDE = 'you are an unbelievable nincompoop'
const FLAG = {
  message_type: 'coc_violation_flag',
  privacy_level: 'PRIVATE_TO_MODERATORS',
  violation: {
    severity: 'high',
    confidence: 0.91,
    violation_type: 'harassment',
    location: 'issue #1, by @rude',
  },
  context: { excerpt: 'zzexcerptzz' },
  recommended_action: 'Review for a violation of the code of conduct',
}
/** Words that no output may contain. The flagged comment itself is public on GitHub. */
const TRACE =
  /harass|coc_viol|coc_concern|zzexcerptzz|zzrationalezz|zzreasonzz|violation of the code|moderat/i
const PEOPLE = {
  ada: { github: 'ada-gh' },
  vera: { role: 'viewer' as const },
  mo: { role: 'moderator' as const },
}

const SAYINGS: [string, unknown][] = [
  ['a flag beside its report', [FLAG, { ...NOTHING, rationale: 'zzrationalezz' }]],
  ['nothing but a flag', FLAG],
  ['a flag beside proposals', [FLAG, { ...commenting('zzrationalezz'), rationale: 'zzrationalezz' }]],
  ['a concern among its flags', { ...NOTHING, rationale: 'zzrationalezz', flags: { coc_concern: true } }],
  [
    'a wish that people look',
    {
      ...NOTHING,
      rationale: 'zzrationalezz',
      requires_human_review: true,
      human_review_reason: 'zzreasonzz',
    },
  ],
  [
    'a flag that does not fit the protocol',
    [
      { ...FLAG, violation: 'harassment' },
      { ...NOTHING, rationale: 'zzrationalezz' },
    ],
  ],
]

async function everythingOf(team: GithubTeam): Promise<Record<string, string>> {
  const { store, tokens } = team.engine()
  const found: Record<string, string> = {
    events: JSON.stringify(team.entries),
    log: team.logged.join('\n'),
  }
  const tables = await store.all<{ name: string }>(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'github_conduct%' AND name NOT LIKE 'sqlite%'`,
  )
  for (const { name } of tables)
    found[`table ${name}`] = JSON.stringify(await store.all(`SELECT * FROM ${name}`))
  const readers = {
    operator: (await tokens.mint(null)).token,
    ada: (await tokens.mintForPerson('ada')).token,
    vera: (await tokens.mintForPerson('vera')).token,
    Community: (await tokens.mint('Community')).token,
  }
  const paths = [
    '/api/v1/audit',
    '/api/v1/state',
    '/api/v1/tasks',
    '/api/v1/messages',
    '/api/v1/human-requests?state=all',
    '/api/v1/agents',
    '/api/v1/figures',
    '/api/v1/deliveries',
    '/api/v1/github',
    '/api/v1/agents/Community/terminal',
    '/api/v1/agents/Community/transcript',
    '/api/v1/tasks/task_2',
    '/api/v1/tasks/task_2/trace',
    '/metrics',
  ]
  for (const [reader, token] of Object.entries(readers)) {
    for (const path of paths) {
      const { status, text } = await team.call(path, { token })
      // The refusal to show the terminal is the same with and without a flag.
      if (status !== 403) found[`${path} for ${reader}`] = text
    }
  }
  const written = [...team.fake.repository.threads.values()]
  found.github = JSON.stringify(
    written.map(({ labels, comments, reviews }) => ({ labels, comments, reviews })),
  )
  return found
}

async function expectNoTrace(team: GithubTeam, except?: string) {
  for (const [where, text] of Object.entries(await everythingOf(team))) {
    const found = TRACE.exec(except === undefined ? text : text.replaceAll(except, ''))
    expect(found?.[0], where).toBeUndefined()
  }
}

describe('a flag about conduct', () => {
  it.each(SAYINGS)('appears in the output for moderators only, reported as %s', async (_, said) => {
    const team = await openGithubTeam(
      { Community: ({ userText }) => (userText.includes('nincompoop') ? (said as object) : NOTHING) },
      { maintainers: ['ada-gh'] },
      { people: PEOPLE },
    )
    const issue = await team.opened(OLD)
    await team.settled()
    await team.commented(issue, 'rude', RUDE)
    await team.settled()
    expect(await readConduct(team.engine().store, 'open', 10)).toMatchObject([
      { repository: 'octo/hello', number: 1 },
    ])
    await expectNoTrace(team)
  })

  it.each([
    ['not JSON', 'zzrationalezz: harassment'],
    ['another message', { message_type: 'harassment zzreasonzz' }],
    [
      'a failure',
      {
        status: 'failure',
        rationale: 'zzrationalezz',
        error: { error_type: 'other', error_message: 'zzreasonzz harassment' },
      },
    ],
  ])('is not revealed by a report that fails: %s', async (_, said) => {
    const team = await openGithubTeam({ Community: said }, { maintainers: ['ada-gh'] }, { people: PEOPLE })
    const issue = await team.opened(OLD)
    await team.settled()
    await team.commented(issue, 'rude', RUDE, 'CONTRIBUTOR')
    await team.until(() => {
      const told = team.prompts.filter(({ userText }) => userText.includes('(follow_up)'))
      if (typeof said === 'string' || 'message_type' in said) expect(told.length).toBeGreaterThan(0)
      else expect(team.lines().join()).toContain('failed: agent_error')
    })
    await expectNoTrace(team, 'A moderator can look at the thread.')
  })

  it('looks from outside like a comment without a flag: the same number, types and texts of audit entries', async () => {
    const team = await openGithubTeam(
      {
        Community: ({ userText }) =>
          userText.includes('nincompoop') ? [FLAG, NOTHING] : { ...NOTHING, confidence_score: 0.4 },
      },
      {},
      { people: PEOPLE },
    )
    const issue = await team.opened(OLD)
    await team.settled()
    const seen: string[][] = []
    for (const words of ['Thank you for this!', RUDE, 'Thank you again.']) {
      const before = team.entries.length
      await team.commented(issue, 'somebody', words, 'CONTRIBUTOR')
      await team.settled()
      // Costs and durations vary.
      const entries = team.entries.slice(before).filter(({ type }) => /^(?:github|task|human)\./.test(type))
      seen.push(
        entries.map(
          ({ type, class: kept, text, confidence }) =>
            `${type} ${kept} ${text.replace(/\d+/g, 'N')} ${confidence}`,
        ),
      )
    }
    expect(seen[1]).toEqual(seen[0])
    expect(seen[2]).toEqual(seen[0])
    const results = await team
      .engine()
      .store.all<{ document: string }>(`SELECT document FROM tasks WHERE agent = 'Community' ORDER BY id`)
    expect(
      new Set(results.map(({ document }) => (JSON.parse(document) as { result: string }).result)),
    ).toEqual(new Set([EMPTY_REPORT]))
  })

  it('notifies moderators at their URL without its content, and retries until the call succeeds', async () => {
    const got: string[] = []
    const server = createServer(async (incoming, outgoing) => {
      let body = ''
      for await (const chunk of incoming) body += chunk
      got.push(body)
      outgoing.writeHead(got.length === 1 ? 500 : 200).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    vi.stubEnv('MODERATORS_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`)
    const team = await openGithubTeam(
      { Community: [FLAG, NOTHING] },
      { moderators_url_env: 'MODERATORS_URL' },
      { people: PEOPLE },
    )
    const issue = await team.opened(OLD)
    await team.commented(issue, 'rude', RUDE)
    await team.until(() => expect(got).toHaveLength(2))
    expect(new Set(got)).toEqual(new Set(['{"text":"A flag needs a moderator: orc github moderation"}']))
    await team.settled()
  })

  it('is read and closed by a moderator only, once (S3.14, C12)', async () => {
    const team = await openGithubTeam({ Community: [FLAG, NOTHING] }, {}, { people: PEOPLE })
    const issue = await team.opened(OLD)
    await team.commented(issue, 'rude', RUDE)
    await team.settled()
    const { store, tokens } = team.engine()
    const [flag] = await readConduct(store, 'open', 1)
    const verdict = { decision: 'upheld', comment: 'spoken to' }
    const decide = async (token: string) =>
      (await team.call(`/api/v1/moderation/${flag!.id}`, { token, body: verdict })).status
    const others = [
      await tokens.mint(null),
      await tokens.mintForPerson('ada'),
      await tokens.mint('Community'),
    ]
    for (const { token } of others) {
      expect((await team.call('/api/v1/moderation', { token })).status).toBeGreaterThanOrEqual(403)
      expect(await decide(token)).toBeGreaterThanOrEqual(403)
    }
    // The audit contains everything that the agents did.
    await expect
      .poll(() => [...lastStates(team.entries).values()].every((state) => state === 'idle'))
      .toBe(true)
    const before = team.entries.length
    const { token } = await tokens.mintForPerson('mo')
    const look = async (by: string) =>
      (await team.call('/api/v1/agents/Community/terminal', { token: by })).status
    expect(await look((await tokens.mintForPerson('ada')).token)).toBe(403)
    expect(await look(token)).toBe(200)
    const seen = await team.call('/api/v1/moderation', { token })
    expect(seen.json()).toMatchObject({
      flags: [{ flag: { message_type: 'coc_violation_flag', context: FLAG.context } }],
    })
    expect(await decide(token)).toBe(200)
    expect(await decide(token)).toBe(404)
    expect(team.entries.slice(before).filter(({ type }) => !type.startsWith('token.'))).toEqual([])
    expect(await readConduct(store, 'all', 1)).toMatchObject([
      { decision: 'upheld', closed_by: 'mo', comment: 'spoken to' },
    ])
  })
})

describe('a proposal of a confidential role', () => {
  it('is stored without the words of the agent, which could be about a person (S3.15)', async () => {
    const said = {
      ...proposing('label_applied', { label: 'heated' }),
      rationale: 'zzrationalezz',
      next_steps: ['zzreasonzz'],
      flags: { potential_issue: 'harassment' },
      violation: { excerpt: 'zzreasonzz' },
    }
    const team = await openGithubTeam(
      { Community: ({ userText }) => (userText.includes('nincompoop') ? said : NOTHING) },
      {},
      { people: PEOPLE },
    )
    const issue = await team.opened(OLD)
    await team.settled()
    await team.commented(issue, 'rude', RUDE, 'CONTRIBUTOR')
    await team.until(() => expect(issue.labels).toEqual(['heated']))
    await team.settled()
    await expectNoTrace(team)
  })
})

describe('a report without a flag', () => {
  it('is not treated as a flag', () => {
    expect(separateConduct(NOTHING)).toBeUndefined()
    expect(
      separateConduct({ ...NOTHING, flags: { coc_concern: false, documentation_gap: 'FAQ' } }),
    ).toBeUndefined()
    expect(separateConduct({ ...NOTHING, requires_human_review: true })).toBeUndefined()
    expect(separateConduct('no JSON')).toBeUndefined()
  })
})

describe('the spending of a confidential role', () => {
  it('is visible to moderators only: high spending would reveal a flag (S3.15)', async () => {
    const team = await openGithubTeam({ Community: NOTHING }, {}, { people: PEOPLE })
    const issue = await team.opened(OLD)
    await team.settled()
    await team.commented(issue, 'someone', 'hello', 'CONTRIBUTOR')
    await team.settled()
    const { store, tokens } = team.engine()
    const [work] = await store.all<{ task: number }>(`SELECT task FROM github_work WHERE role = 'community'`)
    await team.until(async () =>
      expect(await store.all('SELECT * FROM spending WHERE task = ?', [work!.task])).not.toEqual([]),
    )
    const shown = async (person: string | null) => {
      const { token } = person === null ? await tokens.mint(null) : await tokens.mintForPerson(person)
      const { spent, spending } = (await team.call(`/api/v1/tasks/task_${work!.task}`, { token })).json<
        Record<string, unknown>
      >()
      const { tasks } = (await team.call('/api/v1/tasks?state=all', { token })).json<{
        tasks: { id: string; spent?: object }[]
      }>()
      const listed = tasks.find(({ id }) => id === `task_${work!.task}`)!
      return { spent, spending, listed: listed.spent, others: tasks.some((task) => task.spent !== undefined) }
    }
    expect(await shown(null)).toEqual({ spent: undefined, spending: [], listed: undefined, others: true })
    expect(await shown('mo')).toMatchObject({
      spent: { answers: expect.any(Number) },
      spending: [{ agent: 'Community' }],
      listed: { answers: expect.any(Number) },
    })
  })
})

/** By agent, as far as it is recorded. */
function lastStates(entries: GithubTeam['entries']): Map<unknown, unknown> {
  const changes = entries.filter(({ type }) => type === 'session.changed')
  return new Map(changes.map(({ data }) => [data?.agent, data?.session]))
}
