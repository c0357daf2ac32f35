import type * as FileSystem from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { dissolve } from '../../src/workspaces/dissolve.ts'
import { removeFolder } from '../../src/workspaces/folder.ts'
import { DEFAULT_LIMITS } from '../../src/workspaces/limits.ts'
import { expectOk, makePlace, makeWorkspace, problemsOf, write } from './place.ts'

/** What the disk refuses, whoever runs the tests. */
const disk = vi.hoisted(() => ({ refuses: (_call: string, _path: string, _to?: string): boolean => false }))

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>()
  const pathOf = (path: FileSystem.PathLike | undefined) => {
    const text = String(path)
    if (/^\/proc\/self\/fd\/\d+$/.test(text)) return original.readlinkSync(text)
    return text.startsWith('/proc/') ? join(original.realpathSync(dirname(text)), basename(text)) : text
  }
  const watched = ['unlinkSync', 'rmdirSync', 'renameSync', 'chmodSync', 'accessSync'] as const
  const wrap =
    (name: (typeof watched)[number]) =>
    (path: FileSystem.PathLike, ...more: never[]) => {
      const to = name === 'renameSync' ? pathOf(more[0]) : undefined
      if (disk.refuses(name, pathOf(path), to)) throw Object.assign(new Error('EPERM'), { code: 'EPERM' })
      return (original[name] as (...args: unknown[]) => unknown)(path, ...more)
    }
  return { ...original, ...Object.fromEntries(watched.map((name) => [name, wrap(name)])) }
})

const fs = await vi.importActual<typeof FileSystem>('node:fs')

beforeEach(() => {
  disk.refuses = () => false
})

/** All that is below a folder, with the modes of folders. */
function treeOf(folder: string): string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      const mode = entry.isDirectory() ? ` ${(fs.statSync(path).mode & 0o777).toString(8)}` : ''
      return `${path.slice(folder.length + 1)}${mode}`
    })
    .sort()
}

describe('a removal that fails half way', () => {
  function makeTree() {
    const place = makePlace()
    write(place, { 'gone/a/b/c/stuck': 'x', 'gone/a/b/d/e/file': 'x', 'gone/f/file': 'x' })
    for (const folder of ['gone/a/b', 'gone/a/b/c', 'gone']) fs.chmodSync(join(place, folder), 0o555)
    return place
  }

  it('has put back what is left, as it was, and says what could not be removed', async () => {
    const place = makeTree()
    disk.refuses = (call, path) => call === 'unlinkSync' && basename(path) === 'stuck'
    const stuck = join(place, 'gone/a/b/c/stuck')
    await expect(removeFolder(join(place, 'gone'))).rejects.toThrow(`${stuck} cannot be removed (EPERM)`)
    expect(fs.readdirSync(place)).toEqual(['gone'])
    expect(treeOf(place).filter((path) => !/^gone\/(?:f|a\/b\/d)/.test(path))).toEqual([
      'gone 555',
      'gone/a 755',
      'gone/a/b 555',
      'gone/a/b/c 555',
      'gone/a/b/c/stuck',
    ])
    disk.refuses = () => false
    await removeFolder(join(place, 'gone'))
    expect(fs.readdirSync(place)).toEqual([])
  })

  it('says where each part is that cannot be put back', async () => {
    const place = makeTree()
    disk.refuses = (call, path, to) =>
      (call === 'unlinkSync' && basename(path) === 'stuck') ||
      (call === 'renameSync' && to?.endsWith('/c') === true)
    const failure: Error = await removeFolder(join(place, 'gone')).then(
      () => expect.unreachable(),
      (error) => error,
    )
    const [, from, to] = /; (\S+) is now (\S+)$/.exec(failure.message)!
    expect(from).toBe(join(place, 'gone/a/b/c'))
    expect(fs.readdirSync(to!)).toEqual(['stuck'])
    expect(fs.readdirSync(place)).toEqual(['gone'])
  })
})

describe('dissolving what cannot be removed', () => {
  async function makeTeam() {
    const place = makePlace()
    const agents = []
    for (const name of ['finder', 'writer']) {
      const workspace = await makeWorkspace(name, place)
      write(workspace, { 'outbox/summary.md': 'Done.', 'workspace/deep/er/file': 'x' })
      agents.push({ name, workspace, isRunning: false })
    }
    const kept = {
      reportFile: join(place, 'x.report.md'),
      archive: join(place, 'new/x.tar.gz'),
      keepOutputsIn: join(place, 'outputs'),
    }
    return { place, wanted: { title: 'x', agents, limits: DEFAULT_LIMITS, ...kept } }
  }

  it.each(['a folder that nobody may change', 'a file that nobody may change'])(
    'is refused because of %s, before anything is done',
    async (what) => {
      const { place, wanted } = await makeTeam()
      const inside = what.startsWith('a file') ? 'deep/er/file' : 'deep/er'
      const stuck = join(place, 'writer/workspace', inside)
      const calls = new Set<string>()
      disk.refuses = (call, path) => {
        calls.add(call)
        return call === 'accessSync' && path === stuck
      }
      const before = treeOf(place)
      const refused = await dissolve(wanted)
      expect(problemsOf(refused).map(({ message }) => message)).toEqual([
        `${stuck} cannot be removed (EPERM)`,
      ])
      expect(treeOf(place)).toEqual(before)
      // Nothing was moved or changed, and no report put in its place.
      expect([...calls]).toEqual(['accessSync'])
    },
  )

  it('leaves nothing behind where not even the first file goes', async () => {
    const { place, wanted } = await makeTeam()
    disk.refuses = (call, path) => call === 'unlinkSync' && path.startsWith(join(place, 'finder/'))
    const before = treeOf(place)
    expect(problemsOf(await dissolve(wanted)).map(({ code }) => code)).toEqual(['irremovable'])
    expect(treeOf(place)).toEqual(before)
    disk.refuses = () => false
    expectOk(await dissolve(wanted))
    expect(fs.readdirSync(place).sort()).toEqual(['new', 'outputs', 'x.report.md'])
  })

  it('keeps the record once something is gone, and says so', async () => {
    const { place, wanted } = await makeTeam()
    disk.refuses = (call, path) => call === 'unlinkSync' && /\/writer\/.*\/file$/.test(path)
    const problems = problemsOf(await dissolve(wanted))
    expect(problems.map(({ code }) => code)).toEqual(['irremovable', 'half_removed'])
    expect(problems[1]!.message).toContain(wanted.reportFile)
    expect(fs.readdirSync(place).sort()).toEqual(['new', 'outputs', 'writer', 'x.report.md'])
    expect(fs.existsSync(join(place, 'writer/workspace/deep/er/file'))).toBe(true)
    expect(fs.readFileSync(wanted.reportFile, 'utf8')).toContain('| finder |')
  })

  it('can be gone on with after it was called off, or failed', async () => {
    const { place, wanted } = await makeTeam()
    const ending = new AbortController()
    disk.refuses = (call) => {
      if (call === 'unlinkSync') ending.abort()
      return false
    }
    const problems = problemsOf(await dissolve({ ...wanted, signal: ending.signal }))
    expect(problems.map(({ code }) => code)).toEqual(['called_off', 'half_removed'])
    const parts = ['SKILL.md', 'inbox', 'outbox', 'status.json', 'workspace']
    expect(fs.readdirSync(join(place, 'finder')).sort()).toEqual(parts)
    disk.refuses = () => false
    for (const file of ['x.report.md', 'new', 'outputs']) fs.rmSync(join(place, file), { recursive: true })
    expectOk(await dissolve(wanted))
    expect(fs.readdirSync(place).sort()).toEqual(['new', 'outputs', 'x.report.md'])
  })

  it('has made nothing where it was called off before', async () => {
    const { place, wanted } = await makeTeam()
    const before = treeOf(place)
    const problems = problemsOf(await dissolve({ ...wanted, signal: AbortSignal.abort() }))
    expect(problems.map(({ code }) => code)).toEqual(['called_off'])
    expect(treeOf(place)).toEqual(before)
  })

  it('leaves the mode of a folder of another owner alone, and removes it where that may be', async () => {
    const { place, wanted } = await makeTeam()
    disk.refuses = (call, path) => call === 'chmodSync' && path.endsWith('/deep')
    expectOk(await dissolve(wanted))
    expect(fs.existsSync(join(place, 'writer'))).toBe(false)
  })

  it('has written the report before the first file goes', async () => {
    const { wanted } = await makeTeam()
    let isWritten: boolean | undefined
    disk.refuses = (call) => {
      if (call === 'unlinkSync') isWritten ??= fs.existsSync(wanted.reportFile)
      return false
    }
    expectOk(await dissolve(wanted))
    expect(isWritten).toBe(true)
  })
})
