import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { extract } from 'tar'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { dissolve } from '../../src/workspaces/dissolve.ts'
import { keepAttempt, prepareInbox } from '../../src/workspaces/workspaces.ts'
import { addWorktree, findWorktree } from '../../src/workspaces/worktree/worktree.ts'
import { git } from '../fakes/git.ts'
import { codesOf, expectOk, instructions, makePlace, makeWorkspace, problemsOf, write } from './harness.ts'

async function makeTeam() {
  const place = makePlace()
  const agents = []
  for (const name of ['finder', 'writer', 'checker']) {
    const workspace = await makeWorkspace(name, place)
    expectOk(await prepareInbox({ workspace, task: name, instructions }))
    write(workspace, {
      'outbox/summary.md': `What ${name} did.\n# Not a heading\n`,
      'outbox/result.txt': `result of ${name}`,
      'workspace/private.txt': 'PRIVATE',
      'status.json':
        '{"state": "completed", "started": "2024-01-15T10:30:00Z", "completed": "2024-01-15T10:30:42Z"}',
    })
    agents.push({ name, workspace, isRunning: false })
  }
  return { place, agents }
}

async function unpack(file: string): Promise<Record<string, string>> {
  const folder = makePlace()
  await extract({ file, cwd: folder, strict: true })
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const paths = entries.map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(
    paths.sort().map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]),
  )
}

describe('dissolving', () => {
  it('writes the report, the archive and the outputs, and removes the folders', async () => {
    const { place, agents } = await makeTeam()
    write(agents[0]!.workspace, {
      'outbox/error_report.md': '## Error Type\nFirst try\n## Description\nIt broke.',
    })
    expectOk(await keepAttempt(agents[0]!.workspace, 1))
    write(agents[0]!.workspace, { 'outbox/summary.md': 'Found.', 'outbox/a|b.txt': 'x' })
    symlinkSync('/etc/passwd', join(agents[1]!.workspace, 'outbox/link'))
    const archive = join(place, 'run.tar.gz')
    const keepOutputsIn = join(place, 'outputs')
    const { report, leftOut, branchesKept } = expectOk(
      await dissolve({ title: 'A run', agents, archive, keepOutputsIn, allowLoss: true }),
    )
    expect(report).toContain('# A run\n')
    expect(report).toContain('| writer | completed | 42 s | 2 | 1 |')
    expect(report).toContain('| finder | `a\\|b.txt` | 1 bytes |')
    expect(report).toContain('> What writer did.\n> # Not a heading\n')
    expect(report).toContain('- attempt 1: completed First try: It broke.')
    expect(report).toContain('- note: outbox/link is a symbolic link')
    expect([...report.matchAll(/^#+ .*$/gm)].map(String)).toEqual([
      '# A run',
      '## Outputs',
      '## finder',
      '## writer',
      '## checker',
    ])
    expect(branchesKept).toEqual([])
    expect(leftOut.map(({ path }) => path)).toEqual(['writer/outbox/link', 'outbox/link'])

    expect(readdirSync(place).sort()).toEqual(['outputs', 'run.tar.gz'])
    expect(readdirSync(keepOutputsIn).sort()).toEqual(['checker', 'finder', 'writer'])
    expect(readFileSync(join(keepOutputsIn, 'writer/result.txt'), 'utf8')).toBe('result of writer')
    const archived = await unpack(archive)
    expect(archived['report.md']).toBe(report)
    expect(Object.keys(archived)).toEqual([
      'checker/SKILL.md',
      'checker/inbox/instructions.md',
      'checker/outbox/result.txt',
      'checker/outbox/summary.md',
      'checker/status.json',
      'finder/SKILL.md',
      'finder/attempts/1/outbox/error_report.md',
      'finder/attempts/1/outbox/result.txt',
      'finder/attempts/1/outbox/summary.md',
      'finder/attempts/1/status.json',
      'finder/inbox/instructions.md',
      'finder/outbox/a|b.txt',
      'finder/outbox/summary.md',
      'finder/status.json',
      'report.md',
      'writer/SKILL.md',
      'writer/inbox/instructions.md',
      'writer/outbox/result.txt',
      'writer/outbox/summary.md',
      'writer/status.json',
    ])
  })

  it('reports that an error report is too large', async () => {
    const { agents } = await makeTeam()
    write(agents[0]!.workspace, { 'outbox/error_report.md': 'x'.repeat(1024 * 1024 + 1) })
    expectOk(await keepAttempt(agents[0]!.workspace, 1))
    write(agents[0]!.workspace, { 'outbox/error_report.md': 'x'.repeat(2 * 1024 * 1024) })
    const { report } = expectOk(await dissolve({ title: 'x', agents }))
    expect(report).toContain('- note: outbox/error_report.md is 2 MiB, over the limit of 1 MiB\n')
    expect(report).toContain('- note: attempts/1/outbox/error_report.md is 1048577 bytes, over the limit')
  })

  it('refuses while an agent runs, and changes nothing', async () => {
    const { place, agents } = await makeTeam()
    const running = [agents[0]!, { ...agents[1]!, isRunning: true }]
    const refused = await dissolve({ title: 'x', agents: running, archive: join(place, 'x.tar.gz') })
    expect(problemsOf(refused).map(({ message }) => message)).toEqual([
      'writer is still running: stop it first',
    ])
    expect(readdirSync(place).sort()).toEqual(['checker', 'finder', 'writer'])
  })

  it('removes nothing and leaves nothing behind if the archive or the copy of the outputs fails', async () => {
    const { place, agents } = await makeTeam()
    const kept = { archive: join(place, 'x.tar.gz'), keepOutputsIn: join(place, 'kept/outputs') }
    const deep = 'd/'.repeat(33)
    write(agents[1]!.workspace, { [`outbox/${deep}x`]: '' })
    expect(codesOf(await dissolve({ title: 'x', agents, ...kept }))).toEqual(['too_deep'])
    expect(readdirSync(place).sort()).toEqual(['checker', 'finder', 'writer'])
    rmSync(join(agents[1]!.workspace, 'outbox/d'), { recursive: true })
    write(place, { 'there/writer/result.txt': 'mine' })
    const taken = { ...kept, keepOutputsIn: join(place, 'there') }
    expect(codesOf(await dissolve({ title: 'x', agents, ...taken }))).toEqual(['exists'])
    expect(existsSync(kept.archive)).toBe(false)
    expect(readdirSync(join(place, 'there'), { recursive: true })).toEqual(['writer', 'writer/result.txt'])
    expect(readFileSync(join(place, 'there/writer/result.txt'), 'utf8')).toBe('mine')
  })

  it('refuses to delete uncommitted files, and keeps a branch with commits', async () => {
    const { place, agents } = await makeTeam()
    const repository = join(place, 'repo')
    mkdirSync(repository)
    git(repository, 'init', '-q', '-b', 'main')
    git(repository, 'commit', '-q', '--allow-empty', '-m', 'first')
    const worktree = expectOk(
      await addWorktree({ workspace: agents[0]!.workspace, repository, branch: 'work' }),
    )
    write(worktree.path, { 'a.txt': 'a', 'b.txt': 'b' })
    git(worktree.path, 'add', 'a.txt')
    git(worktree.path, 'commit', '-q', '-m', 'second')
    const wanted = { title: 'x', agents: [{ ...agents[0]!, worktree }] }
    expect(problemsOf(await dissolve(wanted)).map(({ message }) => message)).toEqual([
      'finder has unsaved work: files in no commit: b.txt',
    ])
    expect(existsSync(join(worktree.path, 'b.txt'))).toBe(true)
    const { branchesKept, report } = expectOk(await dissolve({ ...wanted, allowLoss: true }))
    expect(branchesKept).toEqual(['work'])
    expect(report).toContain('- branch work stays; commits on no other branch: 1')
    expect(git(repository, 'log', '--format=%s', 'work')).toBe('second\nfirst')
    expect(existsSync(agents[0]!.workspace)).toBe(false)
  })

  describe('a workspace with a worktree', () => {
    async function makeCoder() {
      const place = makePlace()
      git(place, 'init', '-q', '-b', 'main')
      git(place, 'commit', '-q', '--allow-empty', '-m', 'first')
      const workspace = await makeWorkspace('coder', place)
      const { path } = expectOk(
        await addWorktree({ workspace, repository: place, branch: 'orc/run-1/coder' }),
      )
      const inTree = (...args: string[]) => git(path, ...args)
      const dissolveIt = async (allowLoss = false) => {
        const { worktree, unseen } = await findWorktree(workspace)
        const agents = [{ name: 'coder', workspace, isRunning: false, worktree, unseenWorktrees: unseen }]
        return await dissolve({ title: 'x', agents, allowLoss })
      }
      const refusal = async () => problemsOf(await dissolveIt()).map(({ message }) => message)
      return { place, workspace, path, inTree, dissolveIt, refusal }
    }

    it('names commits on no branch, and deletes them only with allowLoss', async () => {
      const { place, workspace, inTree, dissolveIt, refusal } = await makeCoder()
      inTree('checkout', '-q', '--detach')
      inTree('commit', '-q', '--allow-empty', '-m', 'loose')
      const hash = inTree('rev-parse', '--short=12', 'HEAD')
      const lost = `commits on no branch: ${hash} loose`
      expect(await refusal()).toEqual([`coder has unsaved work: ${lost}`])
      expect(existsSync(workspace)).toBe(true)
      const { report, branchesKept } = expectOk(await dissolveIt(true))
      expect(report).toContain(`- ${lost}\n`)
      expect(branchesKept).toEqual([])
      expect(existsSync(workspace)).toBe(false)
      expect(git(place, 'worktree', 'list').split('\n')).toHaveLength(1)
    })

    it('reports ignored files, and goes on', async () => {
      const { path, inTree, dissolveIt } = await makeCoder()
      write(path, { '.gitignore': '*.csv\nbuild/\n', 'x.csv': 'important', 'build/a': '', 'build/b': '' })
      inTree('add', '.gitignore')
      inTree('commit', '-q', '-m', 'ignore')
      const { report, agents } = expectOk(await dissolveIt())
      expect(report).toContain('- ignored files or folders in no commit: build/, x.csv\n')
      expect(agents[0]!.unmerged[0]!.ignored).toEqual(['build/', 'x.csv'])
    })

    it.each(['a link', 'a link to nowhere', 'nothing'])(
      'refuses if %s is in the place of the worktree, unless told to go on',
      async (what) => {
        const { place, workspace, path, inTree, dissolveIt, refusal } = await makeCoder()
        inTree('commit', '-q', '--allow-empty', '-m', 'work')
        write(path, { 'open.txt': '' })
        const victim = join(place, 'victim')
        write(victim, { 'private-name': '' })
        renameSync(path, join(workspace, 'moved'))
        if (what !== 'nothing') symlinkSync(what === 'a link' ? victim : '/nowhere', path)
        const why = what === 'nothing' ? 'worktree is gone' : 'worktree is a symbolic link'
        expect(await refusal()).toEqual([
          expect.stringContaining(`in a worktree that cannot be checked: ${why}`),
        ])
        const { report, branchesKept } = expectOk(await dissolveIt(true))
        expect(report).toContain(`- note: ${why}`)
        expect(report).not.toContain('private-name')
        expect(branchesKept).toEqual(['orc/run-1/coder'])
        expect(readdirSync(victim)).toEqual(['private-name'])
        expect(existsSync(workspace)).toBe(false)
        expect(git(place, 'worktree', 'list').split('\n')).toHaveLength(1)
      },
    )

    it('is not held up by a pipe in the place of the pointer in its record', async () => {
      const { workspace, inTree } = await makeCoder()
      const pointer = join(inTree('rev-parse', '--absolute-git-dir'), 'gitdir')
      rmSync(pointer)
      execFileSync('mkfifo', [pointer])
      const { worktree, unseen } = await findWorktree(workspace)
      expect(worktree).toBeUndefined()
      expect(unseen.map(({ code }) => code)).toEqual(['invalid'])
    })

    it('needs no git if there is no worktree', async () => {
      const { place } = await makeCoder()
      const plain = await makeWorkspace('plain', place)
      vi.stubEnv('PATH', join(place, 'nowhere'))
      onTestFinished(() => void vi.unstubAllEnvs())
      expect(await findWorktree(plain)).toEqual({ unseen: [] })
    })
  })
})

describe('an archive', () => {
  it('holds long and odd names, empty and large files, readable by any tar', async () => {
    const place = makePlace()
    const workspace = await makeWorkspace('all', place)
    const long = `${'long name '.repeat(20)}/${'x'.repeat(150)}/ünï 😀.txt`
    write(join(workspace, 'outbox'), { [long]: 'long', empty: '', large: '', exact: 'x'.repeat(1024) })
    truncateSync(join(workspace, 'outbox/large'), 3_000_001)
    const archive = join(place, 'a.tar.gz')
    const agents = [{ name: 'all', workspace, isRunning: false }]
    expectOk(await dissolve({ title: 'x', agents, archive }))
    const content = await unpack(archive)
    expect(content[`all/outbox/${long}`]).toBe('long')
    expect(content['all/outbox/empty']).toBe('')
    expect(content['all/outbox/exact']).toBe('x'.repeat(1024))
    expect(content['all/outbox/large']).toBe('\0'.repeat(3_000_001))
    execFileSync('tar', ['-tzf', archive])
  })

  it('does not appear if a file changes while it is read, and nothing is removed', async () => {
    const place = makePlace()
    const workspace = await makeWorkspace('all', place)
    const file = join(workspace, 'outbox/growing')
    writeFileSync(file, Buffer.alloc(8 * 1024 * 1024, 1))
    const agents = [{ name: 'all', workspace, isRunning: false }]
    const dissolving = dissolve({ title: 'x', agents, archive: join(place, 'a.tar.gz') })
    const growing = setInterval(() => writeFileSync(file, 'x', { flag: 'a' }), 0)
    try {
      expect(codesOf(await dissolving)).toEqual(['changed'])
    } finally {
      clearInterval(growing)
    }
    expect(readdirSync(place)).toEqual(['all'])
  })
})
