import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTeamFolder, sharedTeam, startOrc } from '../../orc.ts'

const PLAN = `name: Small
goal: To be seen.
agents:
  first: { command: "true" }
  left: { command: "true", depends_on: [first] }
  right: { agent: Worker, depends_on: [first] }
  last: { command: "true", inputs: [none.txt], depends_on: [left, { agent: right, on_failure: proceed }] }
`

const team = sharedTeam()

beforeAll(async () => {
  writeFileSync(join(team.folder, 'plan.yaml'), PLAN)
})

const write = (text: string) => writeFileSync(join(team.folder, 'other.yaml'), text)

describe('orc run --dry-run', () => {
  it('shows the order and the graph, and starts nothing', async () => {
    const { code, out, err } = await team.orc('run plan.yaml --dry-run')
    expect({ code, err }).toEqual({ code: 0, err: 'warning: input none.txt does not exist\n' })
    expect(out).toContain('Small: 4 agents, at most 32 at once\nTo be seen.')
    expect(out).toContain('1. first\n2. left, right\n3. last')
    expect(out).toContain('╭ first\n├── left\n├ right  [Worker]\n╰ last (or proceed)  also after left')
    expect(existsSync(team.state)).toBe(false)
  })

  it('prints Mermaid and JSON', async () => {
    const { out } = await team.orc('run plan.yaml --dry-run --mermaid')
    expect(out).toMatch(/^flowchart TD\n {2}n0\["first"\]/)
    expect((await team.orc('run plan.yaml --dry-run --json')).json()).toMatchObject([
      { name: 'Small', steps: [['first'], ['left', 'right'], ['last']], missing: ['none.txt'] },
    ])
    expect((await team.orc('run plan.yaml --dry-run --json --mermaid')).code).toBe(2)
  })

  it('shows the requested concurrency', async () => {
    const { out } = await team.orc('run plan.yaml --dry-run --concurrency 7')
    expect(out).toContain('4 agents, at most 7 at once')
    const shown = await team.orc('run plan.yaml --dry-run --json --concurrency 10000')
    expect(shown.json()).toMatchObject([{ concurrency: 10_000 }])
  })
})

describe('a plan with mistakes', () => {
  it.each([
    [
      'a cycle',
      PLAN.replace('"true" }', '"true", depends_on: [last] }'),
      /other\.yaml:4:.*first → .*→ first/,
    ],
    [
      'an agent that is not there',
      PLAN.replace('[first]', '[frist]'),
      /other\.yaml:5:.*frist[\s\S]*Did you mean.*first/,
    ],
    [
      'an output that nobody makes',
      PLAN.replace('command: "true" }', 'command: "true", outputs: [a.txt] }').replace(
        'depends_on: [first]',
        'depends_on: [{ agent: first, outputs: [b.txt] }]',
      ),
      /other\.yaml:5:.*b\.txt/,
    ],
    ['someone who is not in the team', PLAN.replace('Worker', 'Wroker'), /other\.yaml:6:[\s\S]*Worker/],
  ])('is refused before anything starts: %s', async (_, text, place) => {
    write(text)
    for (const args of ['run other.yaml', 'run other.yaml --dry-run']) {
      const { code, err } = await team.orc(args)
      expect(code).toBe(1)
      expect(err).toMatch(place)
      expect(err).toContain('Nothing was started')
    }
    expect(existsSync(team.state)).toBe(false)
  })

  it('is refused in the same words by a running service, which also reports missing inputs', async () => {
    const served = createTeamFolder()
    onTestFinished(() => served.close())
    writeFileSync(join(served.folder, 'other.yaml'), PLAN.replace('[first]', '[frist]'))
    const before = await served.orc('run other.yaml')
    await served.start()
    const during = await served.orc('run other.yaml')
    expect({ code: during.code, err: during.err }).toEqual({ code: 1, err: before.err })
    expect(during.err).toMatch(/other\.yaml:5:.*frist[\s\S]*Nothing was started/)
    writeFileSync(join(served.folder, 'other.yaml'), Buffer.from([0x61, 0xff, 0x62]))
    expect(await served.orc('run other.yaml')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Nothing was started'),
    })
    expect((await served.orc('run list --json')).out).toBe('')
    writeFileSync(join(served.folder, 'other.yaml'), 'agents: { a: { command: "true", inputs: [none.txt] } }')
    expect((await served.orc('run other.yaml --detach')).err).toContain(
      'warning: input none.txt does not exist\n',
    )
  })
})

describe('a plan without a team', () => {
  it.each([
    ['before any run', false],
    ['after another plan ran', true],
  ])('is refused for what it names, by the name of its file: %s', async (_, hasRun) => {
    const folder = mkdtempSync(join(tmpdir(), 'orc-nobody-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(
      join(folder, 'jm.yaml'),
      `agents:
  a: { command: "true", judge: nomodel }
  b: { agent: nobody }
  c: { model: m }
  d: { command: "true", on_error: fix, fixer: nobody }
`,
    )
    if (hasRun) {
      writeFileSync(join(folder, 'other.yaml'), 'agents: { a: { command: "true" } }')
      await startOrc(folder, ['run', 'other.yaml']).ended
      expect(existsSync(join(folder, '.orc', 'orc.yaml'))).toBe(true)
    }
    for (const args of [
      ['run', 'jm.yaml'],
      ['run', 'jm.yaml', '--dry-run'],
    ]) {
      const { code, err } = await startOrc(folder, args).ended
      expect(code).toBe(1)
      expect(err.match(/jm\.yaml:\d/g)).toEqual(['jm.yaml:2', 'jm.yaml:3', 'jm.yaml:4', 'jm.yaml:5'])
      expect(err).not.toContain('Did you mean')
    }
    expect(existsSync(join(folder, '.orc'))).toBe(hasRun)
  })
})

describe('orc run', () => {
  it.each([
    ['run --detach', 'PLAN is missing'],
    ['run --dry-run --resume run_1', '--dry-run needs a PLAN'],
    ['run plan.yaml --dry-run --detach', '--dry-run starts nothing'],
    ['run plan.yaml --mermaid', '--mermaid needs --dry-run'],
    ['run plan.yaml --fresh', '--fresh needs --resume'],
    ['run plan.yaml --dry-run --concurrency 0', '"0" is not a valid number of agents'],
    ['run plan.yaml --dry-run --concurrency abc', '"abc" is not a valid number of agents'],
    ['run --resume run_1 --concurrency 10001', '"10001" is not a valid number of agents'],
  ])('reports options that cannot be combined: orc %s', async (args, why) => {
    await team.fails(args, 2, why)
  })

  it('reports an unknown run where nothing was run, and creates nothing', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'orc-nobody-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const { code, err } = await startOrc(folder, ['run', '--resume', 'run_1']).ended
    expect(code).toBe(7)
    expect(err).toContain('There is no run run_1 here')
    expect(existsSync(join(folder, '.orc'))).toBe(false)
  })

  it('reports a missing file', async () => {
    expect(await team.orc('run none.yaml')).toMatchObject({ code: 7 })
  })
})
