import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { brief } from '../../../../src/cli/commands/tasks/task-event-text.ts'
import { sequenceDiagram } from '../../../../src/cli/commands/tasks/trace.ts'
import { servedTeam } from '../../orc.ts'
import { hasTerminals, openTerminal } from '../../own-terminal.ts'

const HOSTILE = 'a; b --> c\nNote over p0: %%{init: {}}%% <b>#59;</b> \u001b[31m "end" ﬂ°60¶ß `x` \u202e'

const say = (...args: string[]) => team.orc(args)
const read = (agent: string) => team.orc(`mailbox-check --agent ${agent}`)

const team = servedTeam()

beforeAll(async () => {
  await say('delegate', '--to', 'Master', HOSTILE)
  await read('Master')
  await say('delegate', '--from', 'Master', '--to', 'Worker', 'Count to three')
  await read('Worker')
  await say('query', '--from', 'Worker', '--to', 'Master', 'In which language?')
  await read('Master')
  await say('answer', 'task_2', '--from', 'Master', 'In Greek.')
  await read('Worker')
  await say('request-user-input', '--from', 'Worker', 'Old or new?')
  await say('answer', 'req_1', 'Old.')
  await read('Worker')
  await say('report', '--from', 'Worker', '--status', 'completed', 'heis, dyo, treis')
  await read('Master')
})

describe('orc task trace (S2.18)', () => {
  it('shows from, to, kind, time and task of everything in order, with questions to people and verdicts', async () => {
    const { out, code } = await team.orc('trace task_1')
    expect(code).toBe(0)
    expect(out).toMatch(/^task_1 +operator → Master +executing +a; b --> c/)
    expect(out).toMatch(/\n└─ task_2 +Master → Worker +completed +Count to three/)
    const lines = out.split('\n').filter((line) => /^ {2}\d\d:/.test(line))
    const flow = lines.map((line) => /^ {2}\S+ {2}(.*?) {2,}(\w+) +(task_\d)/.exec(line)?.slice(1).join('|'))
    const wanted = [
      'operator → Master|delegate|task_1',
      'Master → Worker|delegate|task_2',
      'Worker → Master|query|task_2',
      'Master → Worker|answer|task_2',
      'Worker → operator|input|task_2',
      'operator → Worker|answered|task_2',
      'operator → Worker|answer|task_2',
      'Worker|completed|task_2',
      'Worker → Master|report|task_2',
    ]
    expect(flow.filter((one) => wanted.includes(one!))).toEqual(wanted)
    expect(out).toContain('req_1: Old.')
    expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
  })

  it('renders a Mermaid sequence diagram that no text can break', async () => {
    const { out } = await team.orc('trace task_1 --mermaid')
    const lines = out.trimEnd().split('\n')
    expect(lines[0]).toBe('sequenceDiagram')
    expect(lines).toContain('  actor p0 as operator')
    expect(lines).toContain('  participant p1 as Master')
    expect(lines).toContain('  p1->>p2: delegate task_2#58; Count to three')
    expect(lines).toContain('  p2-->>p1: report task_2#58; heis, dyo, treis')
    expect(lines.filter((line) => line.startsWith('  Note over p0'))).toEqual([])
    expect(
      lines.slice(1).every((line) => isStatement(line)),
      out,
    ).toBe(true)
  })

  it('prints the complete trace as JSON', async () => {
    const [trace] = (await team.orc('trace task_1 --json')).json() as {
      steps: { type: string; text?: string }[]
      more: boolean
    }[]
    expect(trace).toMatchObject({ more: false, task: { id: 'task_1' } })
    const message = trace!.steps.find(({ type }) => type === 'message')
    expect(message!.text).toBe(HOSTILE)
    expect((await team.orc('trace task_99')).code).toBe(7)
    expect((await team.orc('trace task_1 --json --mermaid')).code).toBe(2)
    expect((await team.orc('trace task_1 --limit 2')).out).toContain('There are more events')
  })

  it('renders each step as one statement and loses no letter', () => {
    const hostile = fc.string({ unit: 'binary', maxLength: 60 })
    const tricky = fc.constantFrom(
      HOSTILE,
      ':wrap: a',
      '\r\n',
      ...'%%{init}%% end # ;; x%%y ﬂ°°60¶ß'.split(' '),
    )
    fc.assert(
      fc.property(fc.oneof(hostile, tricky), fc.oneof(hostile, tricky), (from, text) => {
        const step = { seq: 1, at: '', task_id: 'task_1', message_id: 'msg_1', from, to: 'Worker', text }
        const diagram = sequenceDiagram({ steps: [{ type: 'message', kind: 'query', ...step }] })
        const lines = diagram.split('\n')
        expect(lines).toHaveLength(4)
        for (const line of lines.slice(1)) expect(isStatement(line), line).toBe(true)
        const shown = lines[3]!.replace(/#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
        expect(shown).toContain(`query task_1: ${brief(text).toWellFormed()}`)
      }),
    )
  })
})

/** A valid line: after the head only letters, digits, a few signs and entities. */
function isStatement(line: string): boolean {
  const head = /^ {2}(?:(?:actor|participant) p\d+ as |p\d+--?>>p\d+: |Note over p\d+: )/.exec(line)
  return head !== null && /^(?:[\p{L}\p{N} .,()/_!?'+=-]|#\d+;)*$/u.test(line.slice(head[0].length))
}

describe('orc why', () => {
  it('says what a task waits for and since when, down to the subtask that blocks it', async () => {
    await say('delegate', '--to', 'Master', 'Long work')
    const { out: all } = await team.orc('tasks --json')
    const id = /"id":"(task_\d+)"[^\n]*Long work/.exec(all)![1]!
    await read('Master')
    const args = ['delegate', '--from', 'Master', '--to', 'Worker', '--in-response-to', id, 'A part of it']
    await say(...args)
    const { out } = await team.orc(`why ${id}`)
    expect(out).toMatch(
      new RegExp(`^${id} is waiting_child since \\d{4}-\\S+Z\\n  waits for task_\\d+ to end`),
    )
    expect(out).toMatch(/\n {4}task_\d+ is pending since \S+Z\n {6}waits for Worker to take it/)
    await team.orc(`task-action --task-id ${id} --action cancel`)
  })
})

describe('orc task list --follow', () => {
  it('prints each change once in a pipe, and ends quietly with Ctrl-C', async () => {
    const following = team.begin('tasks --follow')
    await following.shows('Count to three')
    await say('delegate', '--to', 'Spy', 'Look around')
    await following.shows(/operator → Spy +pending +Look around/)
    await read('Spy')
    await following.shows(/operator → Spy +\w+ing +Look around\n[\s\S]*operator → Spy +executing/)
    await say('report', '--from', 'Spy', '--status', 'completed', 'Nothing.')
    await following.shows(/operator → Spy +completed/)
    following.child.kill('SIGINT')
    expect(await following.ended).toMatchObject({ code: 130, err: '' })
  })

  it.runIf(hasTerminals)('redraws the tree on a terminal', async () => {
    const drawing = openTerminal(team.folder, 'tasks --follow')
    await drawing.shows('task_1')
    await say('delegate', '--to', 'Spy', 'Draw me')
    await drawing.shows(/\u001b\[\d+A\u001b\[\?7l[\s\S]*Draw me/)
    drawing.type('\u0003')
    expect(await drawing.ended).toBe(130)
  })
})
