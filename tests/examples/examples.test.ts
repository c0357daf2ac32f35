import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { parseConfig } from '../../src/config/config.ts'
import { readPlan } from '../../src/runs/plan/read-plan.ts'
import { runOrc } from '../cli/orc.ts'
import { startModelServer } from '../fakes/model-server/model-server.ts'

const EXAMPLES = join(import.meta.dirname, '..', '..', 'examples')
const names = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
const read = (...parts: string[]) => readFileSync(join(EXAMPLES, ...parts), 'utf8')

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A copy of the example, so that running it changes nothing in the repository. */
function copyOf(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-example-'))
  folders.push(folder)
  cpSync(join(EXAMPLES, name), folder, {
    recursive: true,
    filter: (path) => !/\/(runs|\.orc)(\/|$)/.test(path),
  })
  return folder
}

describe('every example', () => {
  it.each(names)('%s has a README and a plan without mistakes, by the team and models beside it', (name) => {
    expect(read('README.md')).toContain(`(${name}/)`)
    expect(read(name, 'README.md')).toMatch(/^# .+\n/)
    const config = existsSync(join(EXAMPLES, name, 'orc.yaml'))
      ? parseConfig(read(name, 'orc.yaml'), { env: {} })
      : undefined
    expect(config?.ok === false ? config.error : []).toEqual([])
    const team = config?.ok
      ? {
          agents: config.value.config.agents.map((agent) => agent.name),
          models: Object.keys(config.value.config.models),
        }
      : { agents: [], models: [] }
    const plan = readPlan(read(name, 'plan.yaml'), { team })
    expect(plan.ok ? [] : plan.error).toEqual([])
    if (!plan.ok) return
    const inputs = plan.value.agents.flatMap((agent) => agent.inputs.map(({ path }) => path))
    expect(inputs.filter((path) => !existsSync(join(EXAMPLES, name, path)))).toEqual([])
  })
})

describe('examples/words', () => {
  it('runs as its README says: a retry, a check, and nobody twice', async () => {
    const folder = copyOf('words')
    const ran = await runOrc(folder, ['run', 'plan.yaml'])
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(ran.out).toMatch(/second running, attempt 2/)
    expect(ran.out).toMatch(/first progress \d\/3/)
    const report = readFileSync(join(folder, 'runs/run_1/_outputs/report/report.md'), 'utf8')
    expect(report).toMatch(/Most used: is the to a and /)
    const again = await runOrc(folder, ['run', 'plan.yaml', '--resume', 'run_1'])
    expect(again.out.match(/ as before/g)).toHaveLength(12)
    expect(again.out).not.toContain('running')
    expect(existsSync(join(folder, 'runs/run_1/report.html'))).toBe(true)
  })
})

describe('examples/research', () => {
  it('hands findings on to the writer and all of it to the reviewer, each judged, with its costs', async () => {
    const folder = copyOf('research')
    const prompts: string[] = []
    const server = await startModelServer({
      play: ({ system, userText }) => {
        if (!system.includes('You do one step of a plan'))
          return { text: '{"completed":true,"reason":"It is."}' }
        prompts.push(userText)
        const path = /outbox\/((?!summary)\w+\.md)/.exec(userText)![1]!
        return { text: JSON.stringify({ summary: 'Wrote it.', files: [{ path, content: `# ${path}` }] }) }
      },
    })
    try {
      const config = join(folder, 'orc.yaml')
      writeFileSync(
        config,
        readFileSync(config, 'utf8').replaceAll(
          'provider: anthropic',
          `provider: anthropic, base_url: "${server.url}/v1"`,
        ),
      )
      const ran = await runOrc(folder, ['run', 'plan.yaml'], {
        env: { ANTHROPIC_API_KEY: 'sk-ant-fake-Lead' },
      })
      expect(ran).toMatchObject({ code: 0, err: '' })
      expect(prompts).toHaveLength(4)
      expect(prompts[3]).toContain('# answer.md')
      expect(prompts[3]).toContain('findings/skeptic/findings.md')
      expect(ran.out).toMatch(/✓ reviewer +completed .*tokens\)/)
    } finally {
      await server.close()
    }
  })
})

/** The work of the agent programs as commands: a test, two solutions in worktrees, a review. */
const STAND_INS: Record<string, string> = {
  tests: `cd worktree && printf 'test -e solved\\n' > test.sh && git add . && git commit -qm tests
    git diff HEAD~1 > ../outbox/tests.patch; echo "Wrote a test that fails." > ../outbox/summary.md`,
  plain: `cd worktree && git apply ../inbox/tests/tests.patch && touch solved && git add . && git commit -qm plain
    echo "Solved it plainly." > ../outbox/summary.md`,
  clever: `cd worktree && git apply ../inbox/tests/tests.patch && git add . && git commit -qm nothing
    echo "Said to be solved." > ../outbox/summary.md`,
  review: `ls inbox > outbox/review.md; echo "Compared them." > outbox/summary.md`,
}

describe('examples/code', () => {
  it('keeps each solution on a branch of its own, and takes nobody at their word', async () => {
    const folder = copyOf('code')
    const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' })
    git('init', '-q', '-b', 'main')
    git('config', 'user.name', 'Tester')
    git('config', 'user.email', 'tester@example.org')
    writeFileSync(join(folder, '.gitignore'), 'runs/\n.orc/\n')
    git('add', '.')
    git('commit', '-qm', 'first')
    const plan = parse(read('code', 'plan.yaml'))
    for (const [name, agent] of Object.entries<Record<string, unknown>>(plan.agents)) {
      const { program: _, ...rest } = agent
      const checks = JSON.parse(JSON.stringify(rest.checks ?? []).replaceAll('npm test', 'sh test.sh'))
      plan.agents[name] = { ...rest, checks, retries: 0, command: STAND_INS[name] }
    }
    writeFileSync(join(folder, 'plan.yaml'), stringify(plan))
    git('commit', '-qam', 'stand-ins')
    const ran = await runOrc(folder, ['run', 'plan.yaml'])
    expect(ran.out).toMatch(/✓ plain +completed/)
    expect(ran.out).toMatch(/✗ clever +failed/)
    expect(ran.code).toBe(9)
    expect(readFileSync(join(folder, 'runs/run_1/_outputs/review/review.md'), 'utf8')).toContain('plain')
    expect(git('status', '--porcelain')).toBe('')
    expect(git('branch', '--list').trim().split('\n')).toHaveLength(4)
    const dissolved = await runOrc(folder, ['workspace', 'dissolve', 'runs/run_1', '--archive'])
    expect(dissolved).toMatchObject({
      code: 0,
      err: expect.stringContaining('Kept the branch orc/run_1/plain'),
    })
  })
})
