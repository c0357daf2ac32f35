/** The verbs of the GitHub team on the command line. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { insertConduct } from '../../../../src/github/store.ts'
import type { Orchub } from '../../../../src/main.ts'
import { gitOf } from '../../../fakes/github/git-routes.ts'
import { type FakeGitHub, SECRET, startGitHub, TOKEN } from '../../../fakes/github/github.ts'
import { createTeamFolder, type TeamFolder } from '../../orc.ts'

let github: FakeGitHub
let team: TeamFolder

const ENV = { CLI_GITHUB_SECRET: SECRET, CLI_GITHUB_TOKEN: TOKEN }
const PAYLOAD = {
  action: 'opened',
  issue: {
    number: 1,
    title: 'It crashes',
    body: 'Really.',
    labels: [],
    state: 'open',
    user: { login: 'newcomer' },
    author_association: 'FIRST_TIMER',
  },
  repository: { full_name: 'octo/hello' },
  sender: { login: 'newcomer', type: 'User' },
}
const REPORT = {
  status: 'success',
  confidence_score: 0.99,
  actions_taken: [
    { action_type: 'label_applied', details: { label: 'bug' }, confidence: 0.99 },
    { action_type: 'close_issue', details: { duplicate_of: 7 }, confidence: 0.99 },
    { action_type: 'merge_pr', details: {} },
  ],
  rationale: 'It crashes.',
}

beforeAll(async () => {
  github = await startGitHub()
  team = createTeamFolder(`agents: { Triage: {}, Concierge: {} }
people: { ada: { github: ada-gh }, ben: { github: ben-gh }, mo: { role: moderator } }
github:
  secret_env: CLI_GITHUB_SECRET
  token_env: CLI_GITHUB_TOKEN
  api_url: ${github.url}
  repositories: [octo/hello]
`)
  writeFileSync(join(team.folder, 'opened.json'), JSON.stringify(PAYLOAD))
  writeFileSync(join(team.folder, 'report.json'), JSON.stringify(REPORT))
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await team.close()
  await github.close()
})

describe('orc github replay --dry-run', () => {
  it('counts a community report that needs attention as a flag, like the service (S3.15)', async () => {
    const wish = { ...REPORT, actions_taken: [], requires_human_review: true }
    writeFileSync(join(team.folder, 'wish.json'), JSON.stringify(wish))
    const flagsOf = async (role: string) => {
      const { out } = await team.orc(
        `github replay opened.json --event issues --dry-run --report ${role}=wish.json --json`,
      )
      return /"flags":\s*(\d+)/.exec(out)?.[1]
    }
    expect(await flagsOf('community')).toBe('1')
    expect(await flagsOf('triage')).toBe('0')
  })

  it('shows routing and policies without a service, and sends nothing', async () => {
    const { code, out } = await team.orc('github replay opened.json --event issues --dry-run')
    expect(code).toBe(0)
    expect(out).toContain('issues.opened in octo/hello, #1 It crashes, by newcomer (FIRST_TIMER)')
    expect(out).toMatch(/gets it +triage +→ Triage +always/)
    expect(out).toMatch(/gets it +concierge +→ Concierge +first_timer/)
    expect(out).toMatch(/close +always needs an approval/)
    expect(github.calls).toEqual([])
  })

  it('judges a report', async () => {
    const { out } = await team.orc(
      'github replay opened.json --event issues --dry-run --report triage=report.json',
    )
    expect(out).toMatch(/done +apply the label 'bug' to #1/)
    expect(out).toMatch(/asked +close #1 as a duplicate of #7/)
    expect(out).toMatch(/refused +merge_pr/)
    const [json] = (
      await team.orc('github replay opened.json --event issues --dry-run --report triage=report.json --json')
    ).json() as { report: { proposals: object[] } }[]
    expect(json).toMatchObject({
      event: { type: 'issues.opened' },
      paused: false,
      report: { role: 'triage' },
    })
    expect(json!.report.proposals).toHaveLength(3)
  })

  it('reports wrong arguments', async () => {
    expect(await team.orc('github replay opened.json --dry-run')).toMatchObject({ code: 2 })
    expect(await team.orc('github replay opened.json --event Issues! --dry-run')).toMatchObject({ code: 2 })
    expect(await team.orc('github replay nowhere.json --event issues --dry-run')).toMatchObject({ code: 7 })
    await team.fails(['github', 'replay', '-', '--event', 'issues', '--dry-run'], 2, 'is not a JSON object', {
      input: '[]',
    })
  })
})

describe('orc github setup', () => {
  it("checks GitHub with the environment's credentials while no service runs, and exits with 1 if something is missing", async () => {
    const bare = await team.orc('github setup')
    expect(bare.code).toBe(1)
    expect(bare.out).toContain('CLI_GITHUB_SECRET is not set')
    const { code, out } = await team.orc('github setup', { env: ENV })
    expect(code).toBe(1)
    expect(out).toContain('it writes as orchub-bot')
    expect(out).toContain('There is no webhook')
    expect(out).not.toContain(TOKEN)
    const [json] = (await team.orc('github setup --json', { env: ENV })).json()
    expect(json).toMatchObject({
      ok: false,
      login: 'orchub-bot',
      needs: { events: expect.arrayContaining(['issues']) },
    })
  })
})

describe('an unknown new event', () => {
  it('is accepted with a note', async () => {
    const { code, err, json } = await team.orc(
      'github replay opened.json --event zebra_crossing --dry-run --json',
    )
    expect(code).toBe(0)
    expect(err).toContain('"zebra_crossing" is not a known GitHub event')
    expect(json()).toMatchObject([{ event: { type: 'zebra_crossing.opened' }, steps: [] }])
  })
})

describe('with a service', () => {
  let running: Orchub

  beforeAll(async () => {
    for (const [name, value] of Object.entries(ENV)) vi.stubEnv(name, value)
    running = await team.start()
  })

  it('setup uses the credentials of the service, not those of the caller', async () => {
    gitOf(github.repository).hooks.push({
      url: 'http://127.0.0.1:7420/github/webhooks',
      content_type: 'json',
      events: ['*'],
      active: true,
      code: 202,
    })
    expect((await team.orc('github setup')).out).toContain('The webhook points to 127.0.0.1:7420')
  })

  it('processes a replay, shows it in status, and exports and verifies the trail', async () => {
    github.repository.open({ title: 'It crashes' })
    const replayed = team.begin('github replay opened.json --event issues')
    await replayed.shows('triage → Triage: delegated')
    replayed.child.kill('SIGINT')
    expect((await replayed.ended).code).toBe(130)
    expect((await team.orc('status')).out).toMatch(/^GitHub: 2 healthy, last event /m)
    expect((await team.orc('github')).out).toMatch(/Triage +triage +healthy/)
    for (const format of ['text', 'jsonl', 'html']) {
      await team.orc(`audit export --public --format ${format} -o trail.${format}`)
      // In another folder, without a team.
      const verified = await team.orc(['audit', 'verify', join(team.folder, `trail.${format}`)], { cwd: '/' })
      expect(verified).toMatchObject({
        code: 0,
        out: expect.stringContaining('lines verified, none changed'),
      })
    }
    expect((await team.orc('audit export --public --format text')).out).toContain(
      '] [orchestrator→Triage] TASK: Triage issue #1\n',
    )
    await team.shell(`sed s/Triage/Somebody/ trail.text > changed.text`)
    expect(await team.orc('audit verify changed.text')).toMatchObject({ code: 1 })
    await team.orc('audit export --public --repository octo/other --format text -o other.text')
    expect((await team.orc('audit verify other.text')).out).toContain('0 lines')
    expect(await team.orc('audit verify trail.html --extends trail.text')).toMatchObject({ code: 0 })
    expect(await team.orc('audit verify trail.html --extends other.text')).toMatchObject({ code: 1 })
    expect(await team.orc('audit export --format html')).toMatchObject({ code: 2 })
  })

  it('shows moderation to moderators only', async () => {
    const { engine } = running
    const flag = {
      violation: { severity: 'high', violation_type: 'spam', confidence: 0.9 },
      recommended_action: 'Look',
    }
    await engine.store.write((tx) =>
      insertConduct(tx, { id: 'f1', repository: 'octo/hello', number: 1, flag: JSON.stringify(flag) }),
    )
    const { token } = await engine.tokens.mintForPerson('mo')
    const ada = await engine.tokens.mintForPerson('ada')
    for (const env of [{}, { ORC_TOKEN: ada.token }]) {
      const ran = await team.orc('moderation', { env })
      expect(ran).toMatchObject({ code: 7, out: '' })
      expect(await team.orc('moderation decide f1 upheld', { env })).toMatchObject({ code: 7 })
    }
    const env = { ORC_TOKEN: token }
    expect((await team.orc('moderation', { env })).out).toMatch(
      /^f1 +octo\/hello#1 .*high spam \(confidence: 0\.9\)/,
    )
    expect(await team.orc('moderation decide f1 sideways', { env })).toMatchObject({ code: 2 })
    expect(await team.orc('moderation decide f1 dismissed --comment fine', { env })).toMatchObject({
      code: 0,
    })
    expect(await team.orc('moderation', { env })).toMatchObject({ out: '' })
    expect((await team.orc('moderation --all', { env })).out).toContain('dismissed by mo: fine')
    for (const verb of ['status --json', 'audit --json', 'inbox --all --json', 'github --json'])
      expect((await team.orc(verb)).out).not.toMatch(/spam|dismissed|moderat/)
  })
})
