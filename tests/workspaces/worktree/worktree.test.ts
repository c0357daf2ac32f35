import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { inWorktree, runGit } from '../../../src/workspaces/worktree/git.ts'
import { findUnmerged, listFiles } from '../../../src/workspaces/worktree/unsaved-work.ts'
import { addWorktree, releaseWorktree, summarizeBranch } from '../../../src/workspaces/worktree/worktree.ts'
import { git } from '../../fakes/git.ts'
import { allText, codesOf, expectOk, makePlace, makeWorkspace, problemsOf, write } from '../harness.ts'

async function makeTree() {
  const place = makePlace()
  const repository = join(place, 'repo')
  mkdirSync(repository)
  git(repository, 'init', '-q', '-b', 'main')
  write(repository, { 'a.txt': 'one\n', 'folder/b.txt': 'two\n' })
  git(repository, 'add', '.')
  git(repository, 'commit', '-q', '-m', 'first')
  const workspace = await makeWorkspace('coder', place)
  const worktree = expectOk(
    await addWorktree({ workspace, repository: join(repository, 'folder'), branch: 'orc/run-1/coder' }),
  )
  const commit = (name: string, text: string) => {
    write(worktree.path, { [name]: text })
    git(worktree.path, 'add', '.')
    git(worktree.path, 'commit', '-q', '-m', `change ${name}`)
  }
  return { place, repository, workspace, worktree, commit }
}

describe('a worktree', () => {
  it('is on a branch of its own, and leaves the user’s folder and branch alone', async () => {
    const { repository, worktree, commit, workspace } = await makeTree()
    expect(worktree.path).toBe(join(workspace, 'worktree'))
    expect(git(worktree.path, 'branch', '--show-current')).toBe('orc/run-1/coder')
    commit('a.txt', 'changed\n')
    expect(git(repository, 'branch', '--show-current')).toBe('main')
    expect(git(repository, 'status', '--porcelain')).toBe('')
    expect(readFileSync(join(repository, 'a.txt'), 'utf8')).toBe('one\n')
  })

  it('writes its commits, its diff and its branch to the outbox, and merges nothing', async () => {
    const { repository, workspace, worktree, commit } = await makeTree()
    commit('a.txt', 'changed\n')
    commit('new file.txt', 'new\n')
    write(worktree.path, { 'a.txt': 'changed again\n', 'untracked.txt': '' })
    const summary = expectOk(await summarizeBranch(worktree))
    expect(summary).toMatchObject({
      branch: 'orc/run-1/coder',
      base: git(repository, 'rev-parse', 'main'),
      notes: [],
    })
    expect(summary.commits.map(({ subject, author }) => [subject, author])).toEqual([
      ['change new file.txt', 'A'],
      ['change a.txt', 'A'],
    ])
    expect(summary.files).toEqual([
      { path: 'a.txt', added: 1, deleted: 1 },
      { path: 'new file.txt', added: 1, deleted: 0 },
    ])
    expect(summary.uncommitted).toEqual(['a.txt', 'untracked.txt'])
    const read = (name: string) => readFileSync(join(workspace, 'outbox/git', name), 'utf8')
    expect(JSON.parse(read('branch.json'))).toEqual(summary)
    expect(read('changes.diff')).toContain('+changed\n')
    expect(read('uncommitted.diff')).toContain('+changed again\n')
    expect(git(repository, 'log', '--format=%s', 'main')).toBe('first')
    git(repository, 'apply', '--check', join(workspace, 'outbox/git/changes.diff'))
  })

  it('lists commits on no other branch, commits on no branch, and files in no commit', async () => {
    const { repository, worktree, commit } = await makeTree()
    const unmerged = async () => expectOk(await findUnmerged(worktree))
    const nothing = {
      ...{ worktree: 'worktree', branch: 'orc/run-1/coder', commits: 0, looseCommits: [] },
      ...{ uncommitted: [], ignored: [] },
    }
    expect(await unmerged()).toEqual(nothing)
    commit('x', '1')
    commit('y', '1')
    write(worktree.path, { 'odd\nname "x"': '' })
    git(worktree.path, 'stash', '-q', '--include-untracked')
    expect(await unmerged()).toEqual({ ...nothing, commits: 2 })
    git(worktree.path, 'checkout', '-q', '--detach')
    commit('z', '1')
    write(worktree.path, { 'odd\nname "x"': '' })
    const loose = { hash: git(worktree.path, 'rev-parse', 'HEAD'), subject: 'change z' }
    expect(await unmerged()).toEqual({
      ...nothing,
      commits: 2,
      looseCommits: [loose],
      uncommitted: ['odd\nname "x"'],
    })
    git(worktree.path, 'branch', '-q', 'kept')
    expect((await unmerged()).looseCommits).toEqual([])
    git(worktree.path, 'checkout', '-q', 'orc/run-1/coder')
    git(repository, 'merge', '-q', 'orc/run-1/coder')
    expect((await unmerged()).commits).toBe(0)
  })

  it('lists ignored files, each folder as one', async () => {
    const { worktree, commit } = await makeTree()
    commit('.gitignore', 'node_modules/\n*.csv\n')
    write(worktree.path, { 'node_modules/a/1': '', 'node_modules/b': '', 'x.csv': '', 'folder/y.csv': '' })
    expect(expectOk(await findUnmerged(worktree))).toMatchObject({
      uncommitted: [],
      ignored: ['folder/y.csv', 'node_modules/', 'x.csv'],
    })
  })

  it('fails if git cannot count its unmerged commits', async () => {
    const { repository, worktree, commit } = await makeTree()
    commit('x', '1')
    const lost = git(worktree.path, 'rev-parse', 'HEAD')
    commit('y', '1')
    rmSync(join(repository, '.git', 'objects', lost.slice(0, 2), lost.slice(2)), { force: true })
    expect(codesOf(await findUnmerged(worktree))).toEqual(['unreadable'])
    expect(await releaseWorktree(worktree)).toEqual({ branchKept: true })

    const deleted = await makeTree()
    git(deleted.worktree.path, 'checkout', '-q', '--orphan', 'unborn')
    git(deleted.repository, 'branch', '-q', '-D', 'orc/run-1/coder')
    expect(expectOk(await findUnmerged(deleted.worktree))).toMatchObject({ commits: 0, looseCommits: [] })
  })

  it('fails if git cannot read its commits', async () => {
    const { repository, worktree, commit } = await makeTree()
    commit('x', '1')
    const lost = git(worktree.path, 'rev-parse', 'HEAD')
    commit('y', '1')
    rmSync(join(repository, '.git', 'objects', lost.slice(0, 2), lost.slice(2)), { force: true })
    expect(problemsOf(await summarizeBranch(worktree)).map(({ message }) => message)).toEqual([
      expect.stringContaining('orc/run-1/coder has commits that git cannot list: '),
    ])
  })

  it('counts a repository inside it as unsaved', async () => {
    const { worktree, commit } = await makeTree()
    const inner = join(worktree.path, 'lib')
    mkdirSync(inner)
    git(inner, 'init', '-q')
    git(inner, 'commit', '-q', '--allow-empty', '-m', 'inner')
    commit('x', '1')
    const { uncommitted } = expectOk(await findUnmerged(worktree))
    expect(uncommitted).toEqual(['lib/ (a repository of its own)'])
  })

  it('hides the environment of the service from git', async () => {
    const { place, worktree, repository } = await makeTree()
    const seen = join(place, 'seen')
    // A filter is what git cannot be told to leave out: it runs, with what git was given.
    git(repository, 'config', 'filter.spy.clean', `env > ${seen}; cat`)
    vi.stubEnv('ORC_TOKEN', 'secret')
    vi.stubEnv('GIT_DIR', '/nowhere')
    onTestFinished(() => void vi.unstubAllEnvs())
    write(worktree.path, { '.gitattributes': '* filter=spy\n', 'a.txt': 'other\n' })
    expectOk(await findUnmerged(worktree))
    const variables = readFileSync(seen, 'utf8')
    expect(variables).toContain('PATH=')
    expect(variables).not.toContain('secret')
    expect(variables).not.toContain('/nowhere')
  })

  it('blocks every transport of git', async () => {
    const { place, repository, worktree } = await makeTree()
    // A setting for one transport outweighs a ban on all.
    for (const transport of ['ext', 'file'])
      git(repository, 'config', `protocol.${transport}.allow`, 'always')
    for (const address of [`ext::touch ${join(place, 'sprung')}`, repository, `file://${repository}`]) {
      const ran = await runGit({ gitDir: worktree.gitDir }, ['ls-remote', address], 1000)
      expect(ran).toMatchObject({
        ok: false,
        error: { message: expect.stringMatching(/transport '\w+' not allowed/) },
      })
    }
    expect(existsSync(join(place, 'sprung'))).toBe(false)
  })

  it('returns a failure if git cannot be started', async () => {
    const { worktree } = await makeTree()
    const ran = await runGit({ gitDir: worktree.gitDir }, ['log', 'x'.repeat(200_000)], 1000)
    expect(ran).toEqual({ ok: false, error: { code: 'E2BIG', message: 'git cannot be run (E2BIG)' } })
  })

  it.each(['gitdir', 'locked'])(
    'is not held up by a pipe in the place of %s in its record',
    async (file) => {
      const { repository, workspace, worktree } = await makeTree()
      const pipe = join(worktree.ownDir, file)
      rmSync(pipe, { force: true })
      execFileSync('mkfifo', [pipe])
      const { ownDir, branch } = worktree
      if (file === 'locked') {
        expect(expectOk(await addWorktree({ workspace, repository, branch }))).toEqual(worktree)
      }
      expect(await releaseWorktree(worktree)).toEqual({ branchKept: false })
      expect(existsSync(ownDir)).toBe(false)
    },
    10_000,
  )

  it('never runs git in a submodule, where the agent’s own settings apply', async () => {
    const { place, worktree } = await makeTree()
    const sub = join(worktree.path, 'sub')
    git(worktree.path, 'init', '-q', sub)
    write(sub, { f: '1' })
    git(sub, 'add', '.')
    git(sub, 'commit', '-q', '-m', 'sub')
    git(worktree.path, 'add', 'sub')
    git(worktree.path, 'commit', '-q', '-m', 'with sub')
    const trap = join(place, 'trap.sh')
    writeFileSync(trap, `#!/bin/sh\ntouch ${join(place, 'sprung')}\n`, { mode: 0o755 })
    git(sub, 'config', 'core.fsmonitor', trap)
    git(sub, 'config', 'filter.spy.clean', trap)
    write(sub, { '.gitattributes': '* filter=spy\n', f: '2' })
    expectOk(await summarizeBranch(worktree))
    expect(existsSync(join(place, 'sprung'))).toBe(false)
  })

  it('keeps its branch after the removal, unless another branch has all of its commits', async () => {
    const { repository, worktree, commit } = await makeTree()
    commit('x', '1')
    expect(await releaseWorktree(worktree)).toEqual({ branchKept: true })
    expect(git(repository, 'log', '--format=%s', 'orc/run-1/coder')).toBe('change x\nfirst')
    expect(git(repository, 'worktree', 'list').split('\n')).toHaveLength(1)

    const merged = await makeTree()
    merged.commit('x', '1')
    git(merged.repository, 'merge', '-q', 'orc/run-1/coder')
    expect(await releaseWorktree(merged.worktree)).toEqual({ branchKept: false })
    expect(git(merged.repository, 'branch', '--format=%(refname:short)')).toBe('main')
  })

  it('never deletes a branch of the user’s that the agent checked out', async () => {
    const { repository, worktree } = await makeTree()
    git(repository, 'branch', '-q', 'theirs')
    git(worktree.path, 'checkout', '-q', 'theirs')
    expect(await releaseWorktree({ ...worktree, branch: 'theirs' })).toEqual({ branchKept: false })
    expect(git(repository, 'branch', '--list', 'theirs')).toBe('theirs')
  })

  it('ignores where its .git points, and starts no program of the agent’s', async () => {
    const { place, worktree, commit } = await makeTree()
    commit('x', '1')
    const evil = join(place, 'evil')
    git(place, 'init', '-q', evil)
    const trap = join(place, 'trap.sh')
    writeFileSync(trap, `#!/bin/sh\ntouch ${join(place, 'sprung')}\n`)
    chmodSync(trap, 0o755)
    for (const setting of ['core.fsmonitor', 'diff.external', 'core.pager'])
      git(evil, 'config', setting, trap)
    for (const setting of ['core.fsmonitor', 'diff.external', 'core.pager', 'core.sshCommand']) {
      git(worktree.path, 'config', setting, trap)
    }
    rmSync(join(worktree.path, '.git'))
    writeFileSync(join(worktree.path, '.git'), `gitdir: ${join(evil, '.git')}\n`)
    expect(expectOk(await summarizeBranch(worktree)).commits).toHaveLength(1)
    expect(expectOk(await findUnmerged(worktree)).commits).toBe(1)
    expect(await releaseWorktree(worktree)).toEqual({ branchKept: true })
    expect(existsSync(join(place, 'sprung'))).toBe(false)
    expect(existsSync(evil)).toBe(true)
  })

  describe('whose agent committed elsewhere', () => {
    const own = 'Not on orc/run-1/coder, and so not in changes.diff: commits on'
    const shortOf = (path: string, revision: string) => git(path, 'rev-parse', '--short=12', revision)

    it('names commits on a detached HEAD', async () => {
      const { worktree, commit } = await makeTree()
      git(worktree.path, 'checkout', '-q', '--detach')
      commit('x', '1')
      const hash = git(worktree.path, 'rev-parse', 'HEAD')
      const { commits, elsewhere, notes } = expectOk(await summarizeBranch(worktree))
      expect(commits).toEqual([])
      expect(elsewhere).toEqual([{ branch: null, commits: [{ hash, subject: 'change x' }] }])
      expect(notes).toEqual([`${own} a detached HEAD: ${hash.slice(0, 12)} change x`])
    })

    it('names commits on another branch until they are merged', async () => {
      const { worktree, commit } = await makeTree()
      git(worktree.path, 'checkout', '-q', '-b', 'mine')
      commit('x', '1')
      const mine = `${own} the branch mine: ${shortOf(worktree.path, 'mine')} change x`
      expect(expectOk(await summarizeBranch(worktree)).notes).toEqual([mine])
      git(worktree.path, 'checkout', '-q', 'orc/run-1/coder')
      git(worktree.path, 'merge', '-q', 'mine')
      expect(expectOk(await summarizeBranch(worktree)).notes).toEqual([])
    })

    it('notes that its own branch is deleted', async () => {
      const { worktree, commit } = await makeTree()
      git(worktree.path, 'checkout', '-q', '-b', 'mine')
      commit('x', '1')
      git(worktree.path, 'branch', '-q', '-D', 'orc/run-1/coder')
      const { head, notes } = expectOk(await summarizeBranch(worktree))
      expect(head).toBe('')
      expect(notes[0]).toBe('The agent has deleted its branch orc/run-1/coder.')
      expect(notes.at(-1)).toContain('commits on the branch mine')
    })
  })

  describe('that the agent exchanged for a link', () => {
    async function makeVictim() {
      const tree = await makeTree()
      const { place, workspace, worktree } = tree
      const victim = join(place, 'victim')
      write(victim, { secret: 'SECRET-1', 'a.txt': 'SECRET-2', 'private-name': '' })
      const exchange = `mv ${worktree.path} ${join(workspace, 'wt2')}; ln -s ${victim} ${worktree.path}`
      tree.commit('secret', 'x')
      return { ...tree, victim, exchange }
    }

    it('fails without reading the target', async () => {
      const { workspace, worktree, victim, exchange } = await makeVictim()
      execFileSync('sh', ['-c', exchange])
      const summed = await summarizeBranch(worktree)
      expect(problemsOf(summed).map(({ message }) => message)).toEqual([
        'worktree is a symbolic link, which is not followed',
      ])
      expect(allText(join(workspace, 'outbox'))).toBe('')
      expect(expectOk(await findUnmerged(worktree))).toMatchObject({
        commits: 1,
        uncommitted: [],
        unseen: { code: 'symbolic_link' },
      })
      expect(await releaseWorktree(worktree)).toEqual({ branchKept: true })
      expect(readdirSync(victim).sort()).toEqual(['a.txt', 'private-name', 'secret'])
    })

    it('is read in its own folder if it is exchanged only while git runs', async () => {
      const { workspace, worktree, exchange } = await makeVictim()
      write(worktree.path, { 'open.txt': '' })
      const looked = await inWorktree(worktree, async (own) => {
        execFileSync('sh', ['-c', exchange])
        const { uncommitted } = await listFiles(own)
        rmSync(worktree.path)
        renameSync(join(workspace, 'wt2'), worktree.path)
        return uncommitted
      })
      expect(expectOk(looked)).toEqual(['open.txt'])
    })

    it('fails if it is exchanged while git runs', async () => {
      const { repository, workspace, worktree, exchange } = await makeVictim()
      // A filter runs in the midst of what git does.
      git(repository, 'config', 'filter.swap.clean', `test -L ${worktree.path} || { ${exchange}; }; cat`)
      write(worktree.path, { '.gitattributes': '* filter=swap\n', 'a.txt': 'other\n' })
      expect(codesOf(await summarizeBranch(worktree))).toEqual(['changed'])
      expect(readlinkSync(worktree.path)).toContain('victim')
      expect(allText(join(workspace, 'outbox'))).toBe('')
    })
  })

  it('belongs to the repository that it was created in, even if an agent changes git’s record', async () => {
    const { place, workspace, worktree } = await makeTree()
    const other = join(place, 'other')
    git(place, 'init', '-q', other)
    write(other, { 'secret.txt': 'SECRET' })
    git(other, 'add', '.')
    git(other, 'commit', '-q', '-m', 'SECRET subject')
    writeFileSync(join(worktree.ownDir, 'commondir'), `${join(other, '.git')}\n`)
    writeFileSync(join(worktree.ownDir, 'HEAD'), 'ref: refs/heads/master\n')
    await summarizeBranch(worktree)
    expect(allText(join(workspace, 'outbox'))).not.toContain('SECRET')
  })

  it('that is gone is reported, and its commits still count', async () => {
    const { workspace, worktree, commit } = await makeTree()
    const gone = 'worktree is gone: the agent deleted or moved it, including its uncommitted files'
    const moved = join(workspace, 'moved')
    renameSync(worktree.path, moved)
    expect(problemsOf(await summarizeBranch(worktree)).map(({ message }) => message)).toEqual([
      `${gone}; it committed nothing`,
    ])
    renameSync(moved, worktree.path)
    commit('x', '1')
    rmSync(worktree.path, { recursive: true })
    const { commits, notes } = expectOk(await summarizeBranch(worktree))
    expect(commits.map(({ subject }) => subject)).toEqual(['change x'])
    expect(notes).toEqual([`${gone}; what it committed is still there`])
    expect(expectOk(await findUnmerged(worktree))).toMatchObject({ commits: 1, unseen: { code: 'missing' } })
  })

  it('that the agent removed with git is reported as gone, with its commits', async () => {
    const { repository, worktree, commit } = await makeTree()
    commit('x', '1')
    git(repository, 'worktree', 'remove', worktree.path)
    const { commits, notes } = expectOk(await summarizeBranch(worktree))
    expect(commits).toHaveLength(1)
    expect(notes[0]).toContain('worktree is gone')
  })

  it('writes nothing through a link in the place of outbox/git', async () => {
    const { place, workspace, worktree } = await makeTree()
    mkdirSync(join(place, 'outside'))
    symlinkSync(join(place, 'outside'), join(workspace, 'outbox/git'))
    expect(codesOf(await summarizeBranch(worktree))).toEqual(['symbolic_link'])
  })

  describe('that is requested again after a crash', () => {
    const again = ({ workspace, repository }: Awaited<ReturnType<typeof makeTree>>) =>
      addWorktree({ workspace, repository, branch: 'orc/run-1/coder' })

    it('is returned again, with the commit that it began from', async () => {
      const tree = await makeTree()
      expect(expectOk(await again(tree))).toEqual(tree.worktree)
      tree.commit('x', '1')
      write(tree.worktree.path, { 'open.txt': 'not committed' })
      expect(expectOk(await again(tree))).toEqual(tree.worktree)
      expect(readFileSync(join(tree.worktree.path, 'open.txt'), 'utf8')).toBe('not committed')
    })

    it.each(['half filled', 'without its pointer', 'gone', 'never registered', 'only a branch'])(
      'is made anew where it is %s',
      async (state) => {
        const tree = await makeTree()
        const { path, ownDir } = tree.worktree
        if (state === 'half filled') {
          rmSync(join(path, 'a.txt'))
          writeFileSync(join(ownDir, 'locked'), 'initializing\n')
        }
        if (state === 'without its pointer') rmSync(join(path, '.git'))
        if (state === 'gone') rmSync(path, { recursive: true })
        if (state === 'never registered' || state === 'only a branch') {
          rmSync(ownDir, { recursive: true })
          rmSync(path, { recursive: true })
          if (state === 'never registered') write(path, { '.git': `gitdir: ${ownDir}\n` })
        }
        const { base } = tree.worktree
        expect(expectOk(await again(tree))).toMatchObject({ path, branch: 'orc/run-1/coder', base })
        expect(git(path, 'status', '--porcelain')).toBe('')
        expect(git(path, 'branch', '--show-current')).toBe('orc/run-1/coder')
        expect(git(tree.repository, 'worktree', 'list').split('\n')).toHaveLength(2)
      },
    )

    it('never takes over an unknown branch with commits or an unknown folder with files', async () => {
      const tree = await makeTree()
      tree.commit('x', '1')
      await releaseWorktree(tree.worktree)
      expect(codesOf(await again(tree))).toEqual(['invalid'])
      write(tree.worktree.path, { 'a.txt': 'mine' })
      const { workspace, repository } = tree
      expect(codesOf(await addWorktree({ workspace, repository, branch: 'new' }))).toEqual(['invalid'])
      expect(readFileSync(join(tree.worktree.path, 'a.txt'), 'utf8')).toBe('mine')
    })
  })

  it('is refused without a repository or the commit, and for a taken or invalid branch name', async () => {
    const { place, repository } = await makeTree()
    const workspace = await makeWorkspace('other', place)
    const refusal = async (change: object) =>
      codesOf(await addWorktree({ workspace, repository, branch: 'new', ...change }))
    const outside = join(place, 'plain')
    mkdirSync(outside)
    expect(await refusal({ repository: outside })).toEqual(['invalid'])
    git(outside, 'init', '-q')
    expect(await refusal({ repository: outside })).toEqual(['invalid'])
    expect(await refusal({ branch: 'orc/run-1/coder' })).toEqual(['invalid'])
    for (const branch of ['--force', 'a b', 'a..b', ''])
      expect(await refusal({ branch })).toEqual(['invalid'])
  })
})
