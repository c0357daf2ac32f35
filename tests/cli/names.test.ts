import { describe, expect, it } from 'vitest'
import { sharedTeam } from './orc.ts'

const team = sharedTeam()

/** Every name in use before commands were grouped by nouns, and today's command. Literal lists on purpose. */
const SAME = `
  init, up, down, run, run show, run cancel, run send, run report, workspace create, workspace show,
  workspace collect, workspace dissolve, attach, logs, open, status, task show, why, ask, send, inbox,
  approve, reject, modify, answer, audit verify, audit export, rules explain, rules check, github setup,
  github replay, token list, token revoke, completion, help, version, send-message, mailbox-check,
  query-mailbox, update-status, request-action, query-state, list-agents, context-status, acknowledge,
  delegate, report, query, request-user-input, user-response, judge, task-action
`
const RENAMED = `
  serve = service serve, demo = service demo, play = service play, runs = run list, plan = run propose,
  workspace = workspace show, spawn = agent start, stop = agent stop, go = service go,
  halt = service halt, reset = agent reset, pause = agent pause, resume = agent resume,
  messages = message list, message = message show, tasks = task list, trace = task trace,
  take-over = task take-over, audit = audit list, rules = rules show, github = github status,
  moderation = github moderation, moderation decide = github moderate, webhooks = webhook list,
  webhooks test = webhook test, token = token create, prompt = agent prompt, scan = message scan,
  doctor = service doctor, mcp = service mcp, hook = service hook, ask-user = request-user-input
`
const listed = (text: string) => text.split(',').map((item) => item.trim())
const EARLIER = [
  ...listed(SAME).map((name) => [name, name] as const),
  ...listed(RENAMED).map((pair) => pair.split(' = ') as [name: string, command: string]),
]

describe('an earlier name of a command', () => {
  it('still names its command', async () => {
    const all = await Promise.all(EARLIER.map(([name]) => team.orc([...name.split(' '), '--help', '--json'])))
    for (const [index, ran] of all.entries()) {
      const [name, command] = EARLIER[index]!
      expect(ran, name).toMatchObject({ code: 0, err: '' })
      expect(ran.json(), name).toMatchObject([{ name: command }])
    }
  }, 120_000)

  it('behaves like the new one, exit code and output included', async () => {
    await team.start()
    for (const [earlier, now] of [
      ['spawn Nobody', 'agent start Nobody'],
      ['message msg_99', 'message show msg_99'],
      ['tasks --all', 'task list --all'],
      ['runs --json', 'run list --json'],
      ['rules --json', 'rules show --json'],
      ['workspace', 'workspace show'],
      ['webhooks', 'webhook list'],
      ['list-agents', 'agent list'],
      ['query-mailbox --agent Worker --filter unread', 'message query --agent Worker --filter unread'],
      ['status --nope', 'service status --nope'],
    ] as const) {
      const [old, renamed] = await Promise.all([team.orc(earlier), team.orc(now)])
      expect(renamed, now).toMatchObject({ code: old.code, out: old.out, err: old.err })
    }
  }, 60_000)

  it('accepts the shell forms of the specification', async () => {
    const sent = await team.orc([
      ...['send-message', '--from', 'Master', '--to', 'Worker', '--title', 'Review request'],
      'Please review it.',
    ])
    expect(sent).toMatchObject({ code: 0, err: '' })
    expect((await team.orc('query-mailbox --agent Worker --filter unread')).out).toContain('Review request')
  })
})
