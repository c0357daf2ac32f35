import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { addWorktree, findWorktree, releaseWorktree } from '../../../../src/workspaces/worktree/worktree.ts'
import { sharedTeam } from '../../orc.ts'

let at = 0
let base: string

const team = sharedTeam()
beforeEach(() => {
  base = `case-${++at}`
  mkdirSync(join(team.folder, base))
})

const path = (...parts: string[]) => join(team.folder, base, ...parts)
const orc = (args: string | readonly string[]) => team.orc(args, { cwd: path() })
const put = (file: string, text: string, options = {}) => writeFileSync(path(file), text, options)

/** A workspace whose agent is done. */
async function makeDone(name: string) {
  await orc(`workspace create ${name}`)
  put(`${name}/outbox/summary.md`, `What ${name} did.`)
  put(`${name}/outbox/result.txt`, `by ${name}`)
  put(`${name}/status.json`, '{"state":"completed"}')
}

const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], {
    cwd: path(),
    encoding: 'utf8',
  }).trim()

/** A repository with one commit of all files. */
function initRepository() {
  git('init', '-q')
  git('add', '.')
  git('commit', '-q', '--allow-empty', '-m', 'first')
}

/** Expects an error with these words. */
async function refuses(args: string, code: number, ...words: string[]) {
  const ran = await orc(args)
  expect(ran.code, args).toBe(code)
  for (const one of words) expect(ran.err).toContain(one)
}

describe('orc workspace create', () => {
  it('creates the folder of the protocol with instructions and read-only inputs (S4.1, S4.5)', async () => {
    put('names.txt', 'b\na\n')
    mkdirSync(path('data'))
    put('data/one.csv', '1')
    const ran = await orc([
      ...'workspace create agents/sorter names.txt data --template code --objective'.split(' '),
      'Sort the names',
    ])
    expect(ran).toMatchObject({ code: 0, out: `${path('agents/sorter')}\n`, err: '' })
    for (const part of ['SKILL.md', 'inbox/names.txt', 'inbox/data/one.csv', 'outbox', 'workspace']) {
      expect(existsSync(path('agents/sorter', part)), part).toBe(true)
    }
    const instructions = readFileSync(path('agents/sorter/inbox/instructions.md'), 'utf8')
    expect(instructions).toContain('## Objective\nSort the names')
    expect(instructions).toContain('- `names.txt`')
    expect(JSON.parse(readFileSync(path('agents/sorter/status.json'), 'utf8')).state).toBe('pending')
    expect(statSync(path('agents/sorter/inbox/names.txt')).mode & 0o777).toBe(0o444)
  })

  it('copies neither the state folder nor the workspace itself into the inbox', async () => {
    put('orc.yaml', 'agents: { a: {} }')
    mkdirSync(path('.orc'))
    put('.orc/operator.token', 'a secret')
    put('names.txt', 'b')
    const ran = await orc('workspace create sorter .')
    expect(ran.code).toBe(0)
    expect(ran.err).toContain('.orc is the state folder of the service')
    const [given] = readdirSync(path('sorter/inbox')).filter((name) => name !== 'instructions.md')
    expect(readdirSync(path('sorter/inbox', given!)).sort()).toEqual(['names.txt', 'orc.yaml'])
    await refuses('workspace create other .orc/operator.token', 1, 'cannot be an input')
  })

  it('creates nothing if the folder exists, an input is missing or the name is invalid', async () => {
    await orc('workspace create one')
    await refuses('workspace create one', 1, 'CONFLICT')
    expect(await orc('workspace create two none.txt')).toMatchObject({ code: 7 })
    expect(existsSync(path('two'))).toBe(false)
    expect(await orc('workspace create 2nd')).toMatchObject({ code: 2 })
    expect((await orc('workspace create two --template poem')).err).toContain('research, code, analysis')
  })
})

describe('orc workspace show', () => {
  it('shows progress and outputs of each (S4.2)', async () => {
    await makeDone('done')
    await orc('workspace create busy')
    const progress = { current_step: 'counting', steps_completed: 1, total_steps: 4 }
    put('busy/status.json', JSON.stringify({ state: 'running', progress }))
    const { out, code } = await orc('workspace show')
    expect(code).toBe(0)
    expect(out).toMatch(/busy +running +no outputs +██▌░░░░░░░ 1\/4 counting/)
    expect(out).toMatch(/done +completed +2 outputs, 21 bytes/)
    expect((await orc('workspace show --json')).json()).toMatchObject([
      { name: 'busy', state: 'running', progress },
      { name: 'done', state: 'completed', summary: 'What done did.', problems: [] },
    ])
    expect((await orc('workspace show done')).out).toContain('    What done did.')
  })

  it('says what is missing and what was left out', async () => {
    await orc('workspace create liar')
    put('liar/status.json', '{"state":"completed"}')
    symlinkSync('/etc/passwd', path('liar/outbox/link'))
    const { out } = await orc('workspace show liar')
    expect(out).toContain('outbox/summary.md is required but does not exist')
    expect(out).toContain('outbox/link is a symbolic link')
    expect(await orc('workspace show /nowhere')).toMatchObject({ code: 7 })
    mkdirSync(path('empty'))
    expect((await orc('workspace show empty')).err).toContain('empty contains no workspace')
  })
})

describe('orc workspace collect', () => {
  it('copies outputs side by side and leaves links out', async () => {
    await makeDone('one')
    await makeDone('two')
    symlinkSync('/etc/passwd', path('two/outbox/link'))
    const ran = await orc('workspace collect . --to results')
    expect(ran).toMatchObject({ code: 0, err: expect.stringContaining('left out: two/outbox/link') })
    expect(readFileSync(path('results/two/result.txt'), 'utf8')).toBe('by two')
    expect(existsSync(path('results/two/link'))).toBe(false)
    expect((await orc('workspace collect one --to results')).code).toBe(1)
  })

  it('copies into no workspace, whatever link leads there', async () => {
    await makeDone('one')
    await makeDone('two')
    symlinkSync('one/workspace', path('link'))
    for (const to of ['.', 'one', 'one/outbox/new', 'one/workspace', 'link']) {
      const hint = 'Choose a folder outside of the workspaces'
      await refuses(`workspace collect one --to ${to}`, 2, 'inside the workspace of one', hint)
    }
    expect((await orc('workspace collect . --to two/workspace')).code).toBe(2)
    expect(readdirSync(path('one')).sort().join(' ')).toBe('SKILL.md inbox outbox status.json workspace')
    expect(readdirSync(path('one/outbox')).sort()).toEqual(['result.txt', 'summary.md'])
  })

  it('copies into no workspace of another agent, but into one that contains everything', async () => {
    await makeDone('one')
    await makeDone('two')
    symlinkSync('two/outbox', path('link'))
    for (const to of ['two', 'two/workspace/new/er', 'link/new']) {
      const hint = 'Choose a folder outside of the workspaces with --to'
      await refuses(`workspace collect one --to ${to}`, 2, 'inside the workspace of two', hint)
    }
    expect(readdirSync(path('two/outbox')).sort()).toEqual(['result.txt', 'summary.md'])
    expect(readdirSync(path('two/workspace'))).toEqual([])
    await makeDone('two/workspace/helper')
    expect((await orc('workspace collect two/workspace/helper')).code).toBe(0)
    expect(existsSync(path('two/workspace/helper.outputs/helper/result.txt'))).toBe(true)
  })

  it('copies nothing if one of the target folders exists, and leaves it unchanged', async () => {
    await makeDone('one')
    await makeDone('two')
    mkdirSync(path('results/two'), { recursive: true })
    put('results/two/summary.md', 'mine')
    const hint = 'Nothing was copied. Choose another folder with --to.'
    await refuses('workspace collect . --to results', 1, 'results/two already exists', hint)
    expect(readdirSync(path('results'))).toEqual(['two'])
    expect(readdirSync(path('results/two'))).toEqual(['summary.md'])
    expect(readFileSync(path('results/two/summary.md'), 'utf8')).toBe('mine')
  })

  it('leaves nothing behind if an agent is still writing, and says to try again', async () => {
    await makeDone('one')
    await makeDone('two')
    truncateSync(path('two/outbox/result.txt'), 64 * 1024 * 1024)
    const writing = setInterval(() => put('two/outbox/result.txt', '.', { flag: 'r+' }), 1)
    const ran = await orc('workspace collect . --to results').finally(() => clearInterval(writing))
    expect(ran.code).toBe(1)
    expect(ran.err).toContain('outbox/result.txt was changed while it was being read')
    expect(ran.err).toContain('try again when it is done')
    expect(ran.err).not.toContain('--to')
    expect(existsSync(path('results'))).toBe(false)
    expect((await orc('workspace collect . --to results')).code).toBe(0)
    expect((await orc('workspace collect . --to results')).err).toContain('Choose another folder with --to')
    expect(existsSync(path('results/two/result.txt'))).toBe(true)
  })

  it('exits with 1 if a required output is missing (S4.7)', async () => {
    await orc('workspace create one')
    await refuses('workspace collect one', 1, 'missing:')
  })
})

describe('orc workspace dissolve', () => {
  it('reports, archives, keeps the outputs, and removes the folders', async () => {
    mkdirSync(path('agents'))
    await makeDone('agents/one')
    await makeDone('agents/two')
    const ran = await orc('workspace dissolve agents --archive --keep-outputs')
    expect(ran.code).toBe(0)
    expect(ran.out).toContain('| one | completed |')
    expect(existsSync(path('agents'))).toBe(false)
    expect(readFileSync(path('agents.report.md'), 'utf8')).toContain('> What agents/two did.')
    expect(readFileSync(path('agents.outputs/one/result.txt'), 'utf8')).toBe('by agents/one')
    const listed = execFileSync('tar', ['tzf', path('agents.tar.gz')], { encoding: 'utf8' })
    expect(listed.split('\n')).toEqual(expect.arrayContaining(['report.md', 'two/inbox/instructions.md']))
  })

  it('refuses while an agent runs, unless forced', async () => {
    await makeDone('one')
    put('one/status.json', '{"state":"running"}')
    await refuses('workspace dissolve one', 1, 'one is still running')
    expect(existsSync(path('one'))).toBe(true)
    expect((await orc('workspace dissolve one --force')).code).toBe(0)
    expect(existsSync(path('one'))).toBe(false)
  })

  it('leaves nothing behind if it fails, so that it can be repeated', async () => {
    mkdirSync(path('agents'))
    await makeDone('agents/one')
    await makeDone('agents/two')
    renameSync(path('agents/two/outbox'), path('outbox'))
    symlinkSync('../../outbox', path('agents/two/outbox'))
    const dissolve = 'workspace dissolve agents --archive --keep-outputs'
    await refuses(`${dissolve} --force`, 1, 'outbox is a symbolic link', 'Nothing was removed')
    expect(readdirSync(path()).sort()).toEqual(['agents', 'outbox'])
    unlinkSync(path('agents/two/outbox'))
    renameSync(path('outbox'), path('agents/two/outbox'))
    expect((await orc(dissolve)).code).toBe(0)
  })

  it('removes nothing if its report cannot be written', async () => {
    const name = 'x'.repeat(248)
    await makeDone('one')
    renameSync(path('one'), path(name))
    await refuses(`workspace dissolve ${name}`, 1, 'has a name that is too long', 'Nothing was removed')
    expect(readdirSync(path())).toEqual([name])
    expect(readFileSync(path(name, 'outbox/result.txt'), 'utf8')).toBe('by one')
  })

  it('refuses if the archive or the kept outputs would be incomplete', async () => {
    await makeDone('one')
    linkSync(path('one/outbox/result.txt'), path('kept-elsewhere'))
    symlinkSync('result.txt', path('one/outbox/link'))
    for (const option of ['--archive', '--keep-outputs']) {
      const links = ['link is a symbolic link', 'result.txt has a hard link outside of this folder']
      const why = ['would be incomplete', '--force', ...links.map((one) => `outbox/${one}`)]
      await refuses(`workspace dissolve one ${option}`, 1, ...why)
      expect(readdirSync(path()).sort()).toEqual(['kept-elsewhere', 'one'])
    }
    expect(existsSync(path('one/outbox/result.txt'))).toBe(true)
    const forced = await orc('workspace dissolve one --archive --force')
    expect(forced).toMatchObject({ code: 0, err: expect.stringContaining('left out: one/outbox/link') })
    expect(readdirSync(path()).sort()).toEqual(['kept-elsewhere', 'one.report.md', 'one.tar.gz'])
  })

  it('overwrites nothing', async () => {
    await makeDone('one')
    put('one.report.md', 'mine')
    expect((await orc('workspace dissolve one')).code).toBe(1)
    expect(readFileSync(path('one.report.md'), 'utf8')).toBe('mine')
    expect(existsSync(path('one'))).toBe(true)
  })

  describe('of a workspace in a repository', () => {
    beforeEach(async () => {
      for (const file of ['a.txt', 'b.txt', 'c.txt']) put(file, 'first\n')
      initRepository()
      await makeDone('coder')
      await addWorktree({ workspace: path('coder'), repository: path(), branch: 'orc/coder' })
    })

    it.each([
      ['moved', () => git('worktree', 'move', 'coder/worktree', 'coder/other')],
      ['added', () => git('worktree', 'add', '-q', '-b', 'mine', 'coder/other')],
    ])('refuses to remove a worktree that its agent %s', async (_, change) => {
      change()
      put('coder/other/new.txt', 'work')
      const why = 'other is a git worktree that the agent added or moved'
      await refuses('workspace dissolve coder', 1, why)
      expect(existsSync(path('coder/other/new.txt'))).toBe(true)
      expect((await orc('workspace dissolve coder --force')).code).toBe(0)
    })

    it('leaves the records of other worktrees alone', async () => {
      git('worktree', 'add', '-q', '-b', 'orc/other', 'other')
      put('.git/worktrees/other/gitdir', `${path('coder/workspace/.git')}\n`)
      expect((await orc('workspace dissolve coder --force')).code).toBe(0)
      expect(existsSync(path('.git/worktrees/other/HEAD'))).toBe(true)
      expect(git('branch', '--list', 'orc/*')).toContain('orc/other')
    })

    it.each([
      ['its settings cannot be read', () => put('.git/config', '[', { flag: 'a' })],
      [
        'a link is in the place of its records',
        () => {
          renameSync(path('.git/worktrees'), path('.git/w2'))
          symlinkSync('w2', path('.git/worktrees'))
        },
      ],
    ])('does not take a repository for none because %s', async (_, spoil) => {
      git('worktree', 'move', 'coder/worktree', 'coder/moved')
      put('coder/moved/new.txt', 'work')
      spoil()
      await refuses('workspace dissolve coder', 1, 'in a worktree that cannot be checked')
      expect(existsSync(path('coder/moved/new.txt'))).toBe(true)
      expect((await orc('workspace dissolve coder --force')).code).toBe(0)
    })

    it('removes no record of another folder that a link leads to', async () => {
      const found = await findWorktree(path('coder'))
      renameSync(path('.git/worktrees'), path('.git/w2'))
      mkdirSync(path('victim/worktree'), { recursive: true })
      put('victim/worktree/gitdir', `${path('coder/worktree/.git')}\n`)
      symlinkSync('../victim', path('.git/worktrees'))
      await releaseWorktree(found.worktree!)
      expect(existsSync(path('victim/worktree/gitdir'))).toBe(true)
    })

    it('sees files that a flag hides from git', async () => {
      git('-C', 'coder/worktree', 'update-index', '--skip-worktree', 'a.txt', 'c.txt')
      git('-C', 'coder/worktree', 'update-index', '--assume-unchanged', 'b.txt')
      put('coder/worktree/a.txt', 'other\n')
      unlinkSync(path('coder/worktree/c.txt'))
      unlinkSync(path('coder/worktree/b.txt'))
      put('coder/worktree/b.txt', 'other\n')
      const flag = '(hidden from git by a flag)'
      await refuses('workspace dissolve coder', 1, `files in no commit: a.txt ${flag}, b.txt ${flag}`)
      // Absent files, as in a sparse checkout, are not unsaved work.
      for (const file of ['a.txt', 'b.txt']) unlinkSync(path(`coder/worktree/${file}`))
      git('-C', 'coder/worktree', 'update-index', '--no-assume-unchanged', 'b.txt')
      git('-C', 'coder/worktree', 'checkout', '-q', 'b.txt')
      expect((await orc('workspace dissolve coder')).code).toBe(0)
    })
  })

  it('takes any folder called worktree for one, unless forced', async () => {
    await makeDone('plain')
    mkdirSync(path('plain/worktree'))
    await refuses('workspace dissolve plain', 1, '--force')
    expect((await orc('workspace show plain')).code).toBe(0)
    expect((await orc('workspace dissolve plain --force')).code).toBe(0)
  })

  it('refuses to delete uncommitted work, and keeps branches with commits', async () => {
    initRepository()
    await makeDone('coder')
    await addWorktree({ workspace: path('coder'), repository: path(), branch: 'orc/coder' })
    put('coder/worktree/new.txt', 'work')
    await refuses('workspace dissolve coder', 1, 'new.txt')
    git('-C', 'coder/worktree', 'add', '.')
    git('-C', 'coder/worktree', 'commit', '-q', '-m', 'work')
    expect(await orc('workspace dissolve coder')).toMatchObject({
      code: 0,
      err: expect.stringContaining('Kept the branch orc/coder'),
    })
    expect(git('branch', '--list', 'orc/coder')).toContain('orc/coder')
    expect(existsSync(path('coder'))).toBe(false)
  })

  it('names commits on no branch and ignored files, in text and in JSON', async () => {
    initRepository()
    for (const name of ['coder', 'other']) {
      await makeDone(name)
      await addWorktree({ workspace: path(name), repository: path(), branch: `orc/${name}` })
      put(`${name}/worktree/.gitignore`, '*.csv\n')
      put(`${name}/worktree/x.csv`, 'important')
      git('-C', `${name}/worktree`, 'add', '.')
      git('-C', `${name}/worktree`, 'commit', '-q', '-m', 'work')
    }
    git('-C', 'coder/worktree', 'checkout', '-q', '--detach')
    git('-C', 'coder/worktree', 'commit', '-q', '--allow-empty', '-m', 'loose')
    const refused = await orc('workspace dissolve coder')
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(/commits on no branch: [0-9a-f]{12} loose/)
    const forced = await orc('workspace dissolve coder --force')
    expect(forced.code).toBe(0)
    expect(forced.out).toMatch(/commits on no branch: [0-9a-f]{12} loose/)
    expect(existsSync(path('coder'))).toBe(false)
    const { out } = await orc('workspace dissolve other --json')
    expect(JSON.parse(out).unmerged).toMatchObject([{ agent: 'other', looseCommits: [], ignored: ['x.csv'] }])
  })
})
