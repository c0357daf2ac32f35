import { describe, expect, it } from 'vitest'
import { mistakesIn, read } from './parse.ts'

const team = (github: string, people = '') => `agents: { Triage: {} }\n${people}\ngithub:\n${github}`
const githubIn = (github: string) => read(team(github)).config.github
const problems = (...args: Parameters<typeof team>) => mistakesIn(team(...args))

describe('github in orc.yaml', () => {
  it('needs a webhook secret and one kind of credential', () => {
    expect(problems('  token_env: T')).toHaveLength(1)
    expect(problems('  secret_env: S')).toEqual(['github: "github" needs either "token_env" or "app"'])
    expect(problems('  { secret_env: S, token_env: T, app: { id: 1, key_env: K } }')).toHaveLength(1)
    expect(problems('  { secret_env: S, token_env: T }')).toEqual([])
  })

  it('has the documented defaults', () => {
    const github = githubIn('  { secret_env: S, app: { id: 7, key_env: K } }')
    expect(github).toEqual({
      secretEnv: 'S',
      app: { id: 7, keyEnv: 'K' },
      apiUrl: 'https://api.github.com',
      dryRun: false,
      eventsPerMinute: 100,
      team: {},
      callbacks: {},
      confidence: 0.95,
      actions: {},
      maintainers: [],
      requiresHitl: [],
      routes: {},
      schedule: [],
    })
  })

  it('accepts short and long forms of policies and steps', () => {
    const github = githubIn(`
  secret_env: S
  token_env: T
  actions: { label: notice, close: { mode: approval, quorum: 2 } }
  routes: { issues.opened: [triage, { to: scribe, if: [first_timer, "!label:wip"], after: triage, on: any }] }`)
    expect(github).toMatchObject({
      actions: { label: { mode: 'notice', quorum: 1 }, close: { mode: 'approval', quorum: 2 } },
      routes: {
        'issues.opened': [
          { to: 'triage', when: [], on: 'success' },
          { to: 'scribe', when: ['first_timer', '!label:wip'], after: 'triage', on: 'any' },
        ],
      },
    })
  })

  it('lists roles and tasks whose every action needs approval (S3.5)', () => {
    const github = githubIn(`
  secret_env: S
  token_env: T
  requires_hitl: [scribe]
  routes: { issues.opened: [{ to: triage, requires_hitl: true, if: has_words }] }
  schedule: { weekly: { cron: "0 6 * * 1", to: scribe, task: t, repository: o/r, requires_hitl: true } }`)
    expect(github).toMatchObject({
      requiresHitl: ['scribe'],
      routes: { 'issues.opened': [{ to: 'triage', requiresHitl: true, when: ['has_words'] }] },
      schedule: [{ name: 'weekly', requiresHitl: true }],
    })
  })

  it.each([
    ['routes: { issues.opened: [{ to: a, after: b }, { to: b, after: a }] }', 'wait for each other'],
    ['routes: { issues.opened: [{ to: a, after: b }] }', '"b" is not a step of this event'],
    ['routes: { issues.opened: [{ to: a, if: full_moon }] }', ''],
    ['actions: { merge: autonomous }', ''],
    ['schedule: { x: { cron: "every day", to: a, task: t, repository: o/r } }', '"cron" is not understood'],
    ['schedule: { x: { cron: "0 0 31 2 *", to: a, task: t, repository: o/r } }', '"cron" never matches'],
    ['approvers: [nobody]', 'There is no person "nobody"'],
    ['requires_hitl: [scrib]', 'There is no role or agent "scrib"'],
    ['repositories: [everything]', ''],
  ])('refuses %s', (line, message) => {
    const found = problems(`  secret_env: S\n  token_env: T\n  ${line}`)
    expect(found).not.toEqual([])
    expect(found.join()).toContain(message)
  })

  it('accepts roles, agents and targets of routes and triggers in requires_hitl, ignoring case (S3.5)', () => {
    expect(
      problems(`
  secret_env: S
  token_env: T
  requires_hitl: [Scribe, TRIAGE, sorter, reviewer, clerk]
  team: { Sorter: Triage }
  routes: { issues.opened: [Reviewer] }
  schedule: { weekly: { cron: "0 6 * * 1", to: Clerk, task: t, repository: o/r } }`),
    ).toEqual([])
  })

  it('allows a login for one person only', () => {
    const twins = 'people: { ada: { github: octo }, ben: { github: OCTO } }'
    expect(problems('  { secret_env: S, token_env: T }', twins).join()).toContain(
      'ada already has the login "OCTO"',
    )
  })

  it('resolves callbacks and triggers', () => {
    const github = githubIn(`
  secret_env: S
  token_env: T
  callbacks: { triage: { url_env: URL } }
  schedule: { stale: { cron: "0 7 * * *", to: triage, stale_days: 60, repository: o/r } }`)
    expect(github?.callbacks).toEqual({ Triage: { urlEnv: 'URL' } })
    expect(github?.schedule).toMatchObject([
      { name: 'stale', staleDays: 60, task: expect.stringContaining('stale') },
    ])
    expect(problems('  { secret_env: S, token_env: T, callbacks: { Nobody: { url_env: URL } } }')).toEqual([
      'github.callbacks.Nobody: There is no agent "Nobody"',
    ])
    expect(
      problems(
        '  { secret_env: S, token_env: T, schedule: { x: { cron: "0 7 * * *", to: Triage, repository: o/r } } }',
      ),
    ).toEqual(['github.schedule.x: The schedule entry has no task'])
  })
})
