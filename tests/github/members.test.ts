/** A member that speaks only the JSON of the team protocol over HTTP (issue 6, §2; S3.1–S3.16). */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { readConduct } from '../../src/github/store.ts'
import { type GithubTeam, NOTHING, openGithubTeam } from './harness.ts'

type Json = Record<string, unknown>

async function memberOf(team: GithubTeam, agent: string) {
  const { token } = await team.engine().tokens.mint(agent)
  const url = new URL('/api/v1/github/messages', team.hookUrl())
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return {
    async next(wait = 10): Promise<Json[]> {
      const answer = await fetch(`${url}?wait=${wait}`, { headers })
      return (await answer.json()) as Json[]
    },
    async say(message: Json | string) {
      const body = typeof message === 'string' ? message : JSON.stringify(message)
      const answer = await fetch(url, { method: 'POST', headers, body })
      return { status: answer.status, json: (await answer.json()) as Json }
    },
  }
}

/** The fields that all messages of a member share. */
const messageOf = (message_type: string, message_id: string, more: Json) => ({
  ...{ message_type, message_id, timestamp: '2030-01-01T00:00:00Z' },
  ...{ from_agent: 'triage', to_agent: 'orchestrator', ...more },
})

const completion = (delegation: Json, more: Json = {}) =>
  messageOf('task_completion', `answer to ${delegation.message_id}`, {
    in_reply_to: delegation.message_id,
    from_agent: delegation.to_agent,
    status: 'success',
    confidence_score: 0.97,
    execution_time_ms: 12,
    actions_taken: [
      { action_type: 'label_applied', details: { label: 'bug', issue_number: 1 }, confidence: 0.98 },
    ],
    rationale: 'It crashes.',
    ...more,
  })

const deliveriesOf = (team: GithubTeam) =>
  team
    .engine()
    .store.all<{ title: string; state: string }>(
      `SELECT m.title, d.state FROM messages m JOIN deliveries d ON d.message = m.seq WHERE m.recipient = 'Sorter'`,
    )
const HELLO = { to: 'Sorter', title: 'Hello', content: 'How are you?', priority: 'normal' }

const foreign = () =>
  openGithubTeam(
    { Concierge: NOTHING },
    { team: { triage: 'Sorter' } },
    { agents: { Sorter: {} }, people: { ada: { github: 'ada-gh' }, mo: { role: 'moderator' } } },
  )

describe('a member that polls', () => {
  it('gets a complete task_delegation, answers with a task_completion, and the action is performed', async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    const waiting = sorter.next()
    const issue = await team.opened({ title: 'Crash', body: 'It crashes, see @ada-gh' })
    const [delegation] = await waiting
    expect(delegation).toMatchObject({
      message_type: 'task_delegation',
      from_agent: 'orchestrator',
      to_agent: 'triage',
      event_context: { event_type: 'issues.opened', repository: 'octo/hello' },
      task: { priority: 'medium', timeout_seconds: 300, requires_hitl: false, confidence_threshold: 0.95 },
      context: {
        issue_number: 1,
        user: {
          login: 'newcomer',
          author_association: 'NONE',
          is_first_time_contributor: true,
          contribution_count: 0,
          account_created: '2020-01-15T10:00:00.000Z',
        },
        content: {
          title: 'Crash',
          body: 'It crashes, see @ada-gh',
          labels: [],
          state: 'open',
          created_at: '2030-01-01T00:00:00.000Z',
          updated_at: '2030-01-01T00:00:00.000Z',
          comments_count: 0,
        },
        additional_context: { mentions: ['@ada-gh'] },
      },
      repository_context: { governance_docs: expect.arrayContaining(['CONTRIBUTING.md']) },
    })
    // An immediate second poll gets nothing.
    expect(await sorter.next(0)).toEqual([])
    expect(await sorter.say(completion(delegation!))).toMatchObject({
      status: 200,
      json: { status: 'accepted' },
    })
    await team.settled()
    expect(issue.labels).toEqual(['bug'])
    // A repeated message changes nothing.
    expect(await sorter.say(completion(delegation!))).toMatchObject({
      status: 200,
      json: { status: 'known' },
    })
    expect(team.lines()).toEqual(expect.arrayContaining(['github.success: #1: 1 proposed. It crashes.']))
  })

  it('learns the problem of an invalid message, which has no effect (S3.18, S3.25, C3, C20)', async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    const issue = await team.opened({})
    const [delegation] = await sorter.next()
    const actions = Array.from({ length: 51 }, () => ({
      action_type: 'label_applied',
      details: { label: 'x' },
    }))
    const wrong: [Json | string, number, RegExp][] = [
      ['{', 400, /not JSON/],
      [completion(delegation!, { actions_taken: actions }), 400, /actions_taken: holds more than 50 actions/],
      [completion(delegation!, { rationale: 'x'.repeat(1001) }), 400, /rationale: is over 1000 characters/],
      [completion(delegation!, { from_agent: 'lifecycle' }), 403, /you are Sorter, not lifecycle/],
      [completion(delegation!, { in_reply_to: 'somebody else' }), 400, /not one of your delegations/],
      [completion(delegation!, { confidence_score: undefined }), 400, /confidence_score/],
      [completion(delegation!, { next_steps: ['x'.repeat(110_000)] }), 413, /./],
      [{ ...delegation!, from_agent: 'Sorter', to_agent: 'community' }, 403, /orchestrator/],
    ]
    for (const [message, status, text] of wrong) {
      const answer = await sorter.say(message)
      expect(answer.json.message).toMatch(text)
      expect(answer.status).toBe(status)
    }
    expect(issue.labels).toEqual([])
    expect(team.entries.filter(({ type }) => type === 'security.sender_mismatch')).toHaveLength(1)
    expect(await sorter.say(completion(delegation!))).toMatchObject({ status: 200 })
    await team.settled()
    expect(issue.labels).toEqual(['bug'])
  })

  it('sends a hitl_approval_request and an agent_health_check (S3.13, S3.16)', async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    await team.opened({ author: 'ada-gh', association: 'OWNER' })
    const [first] = await sorter.next()
    await sorter.say(completion(first!, { actions_taken: [] }))
    const issue = await team.opened({ title: 'The same' })
    const [second] = await sorter.next()
    const request = messageOf('hitl_approval_request', 'ask-1', {
      approval_needed_for: 'close_duplicate_issue',
      priority: 'high',
      timeout_hours: 72,
      proposed_action: {
        action_type: 'close_issue',
        issue_number: 2,
        reason: 'Duplicate of #1',
        details: { duplicate_of: 1 },
      },
      rationale: 'Both describe the same.',
      confidence: 0.96,
      human_decision_options: ['approve', 'reject', 'modify'],
    })
    expect(await sorter.say(request)).toMatchObject({ status: 200 })
    await sorter.say(completion(second!, { actions_taken: [] }))
    await team.settled()
    expect(issue.comments.map(({ body }) => body).join()).toContain('**Sorter** wants to close #2')
    await team.commented(issue, 'ada-gh', '/agent approve req_1')
    await team.until(() => expect(issue.state).toBe('closed'))
    const warnings = ['Token usage approaching daily limit']
    const more = { status: 'degraded', uptime_seconds: 86_400, warnings }
    const health = messageOf('agent_health_check', 'health-1', more)
    expect(await sorter.say(health)).toMatchObject({ status: 200 })
    expect((await team.engine().github!.state()).agents).toMatchObject([
      { agent: 'Sorter', status: 'degraded', warnings },
    ])
  })

  it('sets the time to decide, which the thread and the inbox show (S3.13)', async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    const issue = await team.opened({ author: 'ada-gh', association: 'OWNER' })
    const [delegation] = await sorter.next()
    const ask = (id: string, more: Json = {}) =>
      sorter.say(
        messageOf('hitl_approval_request', id, {
          ...{ approval_needed_for: 'close', rationale: 'zzwhyzz', confidence: 0.96 },
          in_reply_to: delegation!.message_id,
          proposed_action: { action_type: 'close_issue', issue_number: 1, reason: id },
          ...more,
        }),
      )
    await ask('one', { timeout_hours: 1.5 })
    await ask('two')
    await sorter.say(completion(delegation!, { actions_taken: [] }))
    await team.settled()
    const { store } = team.engine()
    const rows = await store.all<{ hours: number; reason: string }>(
      'SELECT (expires_at - created_at) / 3600000.0 AS hours, reason FROM human_requests ORDER BY id',
    )
    expect(rows).toEqual([
      { hours: 1.5, reason: expect.stringContaining('zzwhyzz') },
      { hours: 72, reason: expect.stringContaining('zzwhyzz') },
    ])
    const asked = issue.comments.map(({ body }) => /within (\S+) hours/.exec(body)?.[1])
    expect(asked.toSorted()).toEqual(['1.5', '72'])
    expect(await store.all(`SELECT ref, due_at FROM timers WHERE kind = 'expire_request'`)).toHaveLength(2)
  })

  it("leaves other messages unread, because it doesn't get them here (C27)", async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    await team.engine().handle({ kind: 'operator' }, { type: 'send_message', fields: HELLO })
    await team.opened({})
    const [delegation] = await sorter.next()
    const rows = await deliveriesOf(team)
    expect(rows.find(({ title }) => title === 'Hello')!.state).not.toBe('read')
    expect(rows.filter(({ title }) => title !== 'Hello')).toMatchObject([{ state: 'read' }])
    await sorter.say(completion(delegation!))
  })

  it('has read the message of its delegation, even if that arrived during the poll (C27)', async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    const { handle, store, mailboxes } = team.engine()
    // The work and its mail arrive between the two queries of a poll.
    const waitForMail = vi.spyOn(mailboxes, 'waitForMail').mockImplementationOnce(async (...given) => {
      await handle({ kind: 'operator' }, { type: 'send_message', fields: HELLO })
      waitForMail.mockRestore()
      const mail = await mailboxes.waitForMail(...given)
      await team.opened({})
      await team.until(async () =>
        expect(await store.all(`SELECT id FROM github_work WHERE state = 'delegated'`)).toHaveLength(1),
      )
      return mail
    })
    const [delegation] = await sorter.next()
    const rows = await deliveriesOf(team)
    expect(rows.filter(({ title }) => title !== 'Hello')).toMatchObject([{ state: 'read' }])
    await sorter.say(completion(delegation!))
  })

  it('that violates the protocol is recorded each time, and people are notified of repeated violations (S3.25)', async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    for (let count = 0; count < 4; count++) expect(await sorter.say('{')).toMatchObject({ status: 400 })
    // A message that may be about a person isn't even recorded (S3.15).
    await sorter.say({ message_type: 'coc_violation_flag' })
    const written = team.entries.filter(({ type }) => type === 'github.violation')
    expect(written).toHaveLength(4)
    expect(written[0]).toMatchObject({ class: 'internal', actor: 'Sorter', text: /not JSON/ })
    expect(await team.engine().store.all('SELECT question, reason FROM human_requests')).toMatchObject([
      { question: 'Sorter keeps violating the protocol of the GitHub team', reason: /^3 invalid messages/ },
    ])
  })

  it('reports complaints that only the operator reads, whatever its clock (S3.16)', async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    const complaints = { status: 'error', issues: ['zzissuezz'], warnings: ['zzwarningzz'] }
    const more = { ...complaints, timestamp: '2020-01-01T00:00:00Z', uptime_seconds: 1 }
    expect(await sorter.say(messageOf('agent_health_check', 'health-1', more))).toMatchObject({ status: 200 })
    const { agents } = await team.engine().github!.state()
    expect(agents).toMatchObject([{ agent: 'Sorter', ...complaints }])
    const checks = () => team.entries.filter(({ type }) => type === 'github.health')
    await team.ring('github_health')
    await team.until(() => expect(checks()).toHaveLength(1))
    expect(checks()[0]).toMatchObject({ class: 'public', text: 'Sorter is error' })
    expect(JSON.stringify(checks()[0])).not.toMatch(/zz\w+zz/)
  })

  it('flags conduct to moderators only (S3.14)', async () => {
    const team = await foreign()
    const sorter = await memberOf(team, 'Sorter')
    await team.opened({})
    const [delegation] = await sorter.next()
    const before = team.entries.length
    const flag = messageOf('coc_violation_flag', 'flag-1', {
      privacy_level: 'PRIVATE_TO_MODERATORS',
      violation: { severity: 'high', confidence: 0.9, violation_type: 'harassment', location: 'issue #1' },
      recommended_action: 'Review',
    })
    expect(await sorter.say(flag)).toMatchObject({ status: 200 })
    expect(await readConduct(team.engine().store, 'open', 10)).toMatchObject([{ number: 1 }])
    expect(team.entries.slice(before)).toEqual([])
    await sorter.say(completion(delegation!))
  })
})

describe('a member with a callback URL', () => {
  it('gets a signed delegation, with retries until it answers; the response may contain the completion', async () => {
    const got: { body: string; signature: string | undefined }[] = []
    const server = createServer(async (incoming, outgoing) => {
      let body = ''
      for await (const chunk of incoming) body += chunk
      got.push({ body, signature: incoming.headers['x-orchub-signature-256'] as string })
      if (got.length === 1) return void outgoing.writeHead(503).end()
      outgoing.end(JSON.stringify(completion(JSON.parse(body) as Json)))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    vi.stubEnv('SORTER_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}/tasks`)
    vi.stubEnv('SORTER_SECRET', 'a secret of theirs')
    const team = await openGithubTeam(
      {},
      {
        team: { triage: 'Sorter' },
        callbacks: { Sorter: { url_env: 'SORTER_URL', secret_env: 'SORTER_SECRET' } },
      },
      { agents: { Sorter: {} } },
    )
    const issue = await team.opened({})
    await team.until(() => expect(issue.labels).toEqual(['bug']))
    expect(got).toHaveLength(2)
    expect(got[0]!.body).toBe(got[1]!.body)
    const signature = createHmac('sha256', 'a secret of theirs').update(got[1]!.body).digest('hex')
    expect(got[1]!.signature).toBe(`sha256=${signature}`)
    await team.settled()
  })
})
