/** Failures reach people, and the health of agents is recorded (S3.12, S3.16, S3.19–S3.21, C7, C9). */
import { describe, expect, it } from 'vitest'
import { bug, type GithubTeam, NOTHING, openGithubTeam } from './harness.ts'

const failing = (is_recoverable: boolean) => ({
  status: 'failure',
  rationale: 'The model of the repository is away.',
  error: {
    error_type: 'api_error',
    error_message: 'the private reason',
    error_code: 'ERR_7',
    is_recoverable,
  },
})

describe('a failure that an agent reports', () => {
  it('as recoverable is retried after 1, 2 and 4 s until it succeeds (S3.20, C7)', async () => {
    let tries = 0
    const team = await openGithubTeam({
      Triage: () => (++tries < 3 ? failing(true) : bug(0.99)),
      Concierge: NOTHING,
    })
    const issue = await team.opened({})
    await team.until(() => expect(issue.labels).toEqual(['bug']))
    expect(tries).toBe(3)
    expect(issue.comments).toEqual([])
    expect(team.lines().join()).not.toContain('failed: ')
    await team.settled()
  })

  it('as final leads to the label agent-error, a comment to the maintainers and a notice, with the error object (S3.12)', async () => {
    let tries = 0
    const team = await openGithubTeam(
      {
        Triage() {
          tries += 1
          return failing(false)
        },
        Concierge: NOTHING,
      },
      { maintainers: ['ada-gh'] },
    )
    const issue = await team.opened({})
    await team.settled()
    expect(tries).toBe(1)
    expect(issue.labels).toEqual(['agent-error'])
    expect(issue.comments.map(({ body }) => body).join()).toContain(
      '**Triage** could not do its work here (`api_error`). Try again later. @ada-gh',
    )
    const failure = team.entries.find(({ type }) => type === 'github.failure')!
    expect(failure).toMatchObject({
      class: 'public',
      text: '#1 failed: api_error',
      data: {
        error: { error_type: 'api_error', error_code: 'ERR_7', retry_count: 0, is_recoverable: false },
      },
    })
    // The words of the agent may quote private text.
    expect(JSON.stringify(team.entries.filter((entry) => entry.class === 'public'))).not.toContain(
      'private reason',
    )
    const requests = await team
      .engine()
      .store.all<{ question: string; reason: string }>('SELECT * FROM human_requests')
    expect(requests).toMatchObject([{ reason: expect.stringContaining('the private reason') }])
  })
})

describe('an approval request without a decision for 72 hours', () => {
  it('expires without an action, and a comment mentions the approvers (S3.13, C9)', async () => {
    const team = await openGithubTeam({ Triage: bug(0.5), Concierge: NOTHING })
    const issue = await team.opened({})
    await team.settled()
    expect(issue.comments).toHaveLength(1)
    await team.ring('expire_request')
    await team.until(() => expect(issue.comments).toHaveLength(2))
    expect(issue.comments[1]!.body).toContain(
      "Nobody decided on req_1 within 72 hours, so **Triage** did not apply the label 'bug' to #1.",
    )
    expect(issue.comments[1]!.body).toContain('@ada-gh')
    expect(issue.labels).toEqual([])
    expect(team.lines().join('\n')).toContain(
      "Not done, req_1 is expired: apply the label 'bug' to #1 in octo/hello",
    )
    const { store } = team.engine()
    const open = await store.all(`SELECT question FROM human_requests WHERE state = 'open'`)
    expect(open).toMatchObject([{ question: expect.stringContaining('Nobody decided in time') }])
    // Too late: this approval has no effect.
    await team.commented(issue, 'ada-gh', '/agent approve req_1')
    await team.settled()
    expect(issue.labels).toEqual([])
  })
})

describe('an approval request without an approver who has a login', () => {
  it('is reported to the maintainers when it expires (S3.13, C9)', async () => {
    const team = await openGithubTeam(
      { Triage: bug(0.5), Concierge: NOTHING },
      { maintainers: ['boss'] },
      { people: { ada: {}, vera: { role: 'viewer', github: 'vera-gh' } } },
    )
    const issue = await team.opened({})
    await team.settled()
    await team.ring('expire_request')
    await team.until(() => expect(issue.comments).toHaveLength(2))
    expect(issue.comments[1]!.body).toContain('Nobody decided on req_1')
    expect(issue.comments[1]!.body.match(/@[\w-]+/g)).toEqual(['@boss'])
    await team.settled()
  })
})

describe('the health of the team', () => {
  it('is recorded every five minutes in the format of the protocol, and shown in the state and the metrics (S3.16)', async () => {
    const team = await openGithubTeam({ Triage: bug(0.97), Concierge: NOTHING })
    await team.opened({})
    await team.settled()
    await team.ring('github_health')
    const checks = () => team.entries.filter(({ type }) => type === 'github.health')
    await team.until(() => expect(checks()).toHaveLength(5))
    expect(checks().find(({ actor }) => actor === 'Triage')).toMatchObject({
      class: 'internal',
      subject: 'orchestrator',
      data: {
        message_type: 'agent_health_check',
        from_agent: 'triage',
        status: 'healthy',
        last_task_completed: expect.any(String),
        performance_metrics: {
          tasks_completed_last_hour: 1,
          error_rate_percentage: 0,
          confidence_score_average: 0.97,
          average_response_time_ms: expect.any(Number),
        },
        issues: [],
        warnings: [],
      },
    })
    const { store, clock } = team.engine()
    const [next] = await store.all<{ due_at: number }>(
      `SELECT due_at FROM timers WHERE kind = 'github_health'`,
    )
    expect(next!.due_at).toBeGreaterThan(clock.now() + 290_000)
    expect(next!.due_at).toBeLessThanOrEqual(clock.now() + 300_000)
    const { text } = await team.call('/metrics')
    expect(text).toContain('orchub_github_agent_health{agent="Triage",status="healthy"} 1')
    expect(text).toContain('orchub_github_error_rate_percentage{agent="Triage"} 0')
    expect(text).toContain('orchub_github_confidence_average{agent="Triage"} 0.97')
    const state = await team.call('/api/v1/state')
    const { github } = state.json<{ github: { agents: { agent: string }[] } }>()
    expect(github.agents.find(({ agent }) => agent === 'Triage')).toMatchObject({
      error_rate_percentage: 0,
      confidence_score_average: 0.97,
    })
  })

  it('reports a suspended agent in public once, and its recovery', async () => {
    const team = await openGithubTeam({ Triage: () => failing(false), Concierge: NOTHING })
    for (let n = 0; n < 6; n++) {
      await team.opened({ association: 'OWNER' })
      await team.settled()
    }
    await team.ring('github_health')
    const told = () =>
      team.entries.filter((entry) => entry.type === 'github.health' && entry.class === 'public')
    await team.until(() => expect(told()).toMatchObject([{ actor: 'Triage', data: { status: 'error' } }]))
    expect(told()[0]!.text).toContain('suspended after 6 failures in a row: orc agent resume Triage')
    await team.ring('github_health')
    await team.until(() =>
      expect(team.entries.filter(({ type }) => type === 'github.health')).toHaveLength(10),
    )
    expect(told()).toHaveLength(1)
    // A restart doesn't repeat it, but reports a recovery.
    await team.restart()
    await team.ring('github_health')
    await team.until(() =>
      expect(team.entries.filter(({ type }) => type === 'github.health')).toHaveLength(15),
    )
    expect(told()).toHaveLength(1)
  })
})

describe('a step after another', () => {
  const ROUTES = {
    'issues.opened': [
      'triage',
      { to: 'scribe', after: 'triage', on: 'any' as const },
      { to: 'lifecycle', after: 'triage', on: 'success' as const },
    ],
  }
  const states = (team: GithubTeam, number: number) =>
    team
      .engine()
      .store.all<{ role: string; state: string }>(
        'SELECT role, state FROM github_work WHERE number = ? ORDER BY role',
        [number],
      )

  it('does not wait for a suspended agent, nor for one that cannot get its task', async () => {
    const team = await openGithubTeam({ Triage: () => failing(false) }, { routes: ROUTES })
    const { store } = team.engine()
    await store.write((tx) =>
      tx.run(`INSERT INTO github_standing (agent, failures, halted_at) VALUES ('Triage', 6, 1)`),
    )
    await team.opened({ association: 'OWNER' })
    await team.settled()
    expect(await states(team, 1)).toEqual([
      { role: 'lifecycle', state: 'skipped' },
      { role: 'scribe', state: 'done' },
      { role: 'triage', state: 'skipped' },
    ])
    await store.write((tx) => tx.run('DELETE FROM github_standing'))
    const { tasks } = team.engine()
    const delegate = tasks.delegate
    tasks.delegate = async (tx, order) =>
      order.agent === 'Triage'
        ? { ok: false, error: { code: 'TOO_DEEP', message: 'no' } }
        : await delegate(tx, order)
    await team.opened({ association: 'OWNER' })
    await team.settled()
    expect(await states(team, 2)).toEqual([
      { role: 'lifecycle', state: 'skipped' },
      { role: 'scribe', state: 'done' },
      { role: 'triage', state: 'failed' },
    ])
  })
})
