import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTeamFolder, type TeamFolder } from './orc.ts'

let team: TeamFolder

beforeAll(() => {
  team = createTeamFolder()
})
afterAll(() => team.close())

/** Every name in use before commands were grouped by nouns, and today's command. A literal list on purpose. */
const EARLIER: readonly (readonly [name: string, command: string])[] = [
  ['init', 'init'],
  ['up', 'up'],
  ['down', 'down'],
  ['serve', 'service serve'],
  ['demo', 'service demo'],
  ['play', 'service play'],
  ['run', 'run'],
  ['run show', 'run show'],
  ['run cancel', 'run cancel'],
  ['run send', 'run send'],
  ['run report', 'run report'],
  ['runs', 'run list'],
  ['plan', 'run propose'],
  ['workspace', 'workspace show'],
  ['workspace create', 'workspace create'],
  ['workspace show', 'workspace show'],
  ['workspace collect', 'workspace collect'],
  ['workspace dissolve', 'workspace dissolve'],
  ['spawn', 'agent start'],
  ['stop', 'agent stop'],
  ['go', 'service go'],
  ['halt', 'service halt'],
  ['reset', 'agent reset'],
  ['pause', 'agent pause'],
  ['resume', 'agent resume'],
  ['attach', 'attach'],
  ['logs', 'logs'],
  ['open', 'open'],
  ['status', 'status'],
  ['messages', 'message list'],
  ['message', 'message show'],
  ['tasks', 'task list'],
  ['task show', 'task show'],
  ['why', 'why'],
  ['trace', 'task trace'],
  ['ask', 'ask'],
  ['send', 'send'],
  ['take-over', 'task take-over'],
  ['inbox', 'inbox'],
  ['approve', 'approve'],
  ['reject', 'reject'],
  ['modify', 'modify'],
  ['answer', 'answer'],
  ['audit', 'audit list'],
  ['audit verify', 'audit verify'],
  ['audit export', 'audit export'],
  ['rules', 'rules show'],
  ['rules explain', 'rules explain'],
  ['rules check', 'rules check'],
  ['github', 'github status'],
  ['github setup', 'github setup'],
  ['github replay', 'github replay'],
  ['moderation', 'github moderation'],
  ['moderation decide', 'github moderate'],
  ['webhooks', 'webhook list'],
  ['webhooks test', 'webhook test'],
  ['token', 'token create'],
  ['token list', 'token list'],
  ['token revoke', 'token revoke'],
  ['prompt', 'agent prompt'],
  ['scan', 'message scan'],
  ['doctor', 'service doctor'],
  ['completion', 'completion'],
  ['mcp', 'service mcp'],
  ['hook', 'service hook'],
  ['help', 'help'],
  ['version', 'version'],
  ['send-message', 'send-message'],
  ['mailbox-check', 'mailbox-check'],
  ['query-mailbox', 'query-mailbox'],
  ['update-status', 'update-status'],
  ['request-action', 'request-action'],
  ['query-state', 'query-state'],
  ['list-agents', 'list-agents'],
  ['context-status', 'context-status'],
  ['acknowledge', 'acknowledge'],
  ['delegate', 'delegate'],
  ['report', 'report'],
  ['query', 'query'],
  ['ask-user', 'request-user-input'],
  ['request-user-input', 'request-user-input'],
  ['user-response', 'user-response'],
  ['judge', 'judge'],
  ['task-action', 'task-action'],
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
