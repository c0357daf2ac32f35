import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DEFAULT_LIMITS } from '../../../src/workspaces/limits.ts'
import { ProblemError } from '../../../src/workspaces/problem.ts'
import {
  type Directory,
  openDirectory,
  openFile,
  openFolder,
} from '../../../src/workspaces/safe-fs/directory.ts'
import { createFile, replaceFile } from '../../../src/workspaces/safe-fs/files.ts'
import { removeFolder } from '../../../src/workspaces/safe-fs/remove-tree.ts'
import { openFound, selectFiles } from '../../../src/workspaces/safe-fs/select-files.ts'
import { makePlace, write } from '../harness.ts'

function codeOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof ProblemError) return error.problem.code
    throw error
  }
  return 'none'
}

describe.each([
  ['through the open folder', process.platform === 'linux'],
  ['by path, where the system has no other way', false],
])('a folder that is held open, %s', (_, throughDescriptor) => {
  function open(path: string): Directory {
    const directory = openDirectory(path, { throughDescriptor })
    onTestFinished(() => directory.close())
    return directory
  }

  it('opens a file only if it is still the one that was found', async () => {
    const place = makePlace()
    write(place, { 'out/a': 'good', 'out/b/c': 'good', secret: 'SECRET', 'secrets/c': 'SECRET' })
    const out = open(join(place, 'out'))
    const options = { limits: DEFAULT_LIMITS, hardLinks: 'inside' as const }
    const { files } = await selectFiles(out, options)
    const [a, c] = files
    expect(openFound(out, a!).stat.size).toBe(4n)

    rmSync(join(place, 'out/a'))
    symlinkSync('../secret', join(place, 'out/a'))
    expect(codeOf(() => openFound(out, a!))).toBe('symbolic_link')
    rmSync(join(place, 'out/a'))
    writeFileSync(join(place, 'out/x'), 'held, so that its number is not given again')
    writeFileSync(join(place, 'out/a'), 'SECRET')
    expect(codeOf(() => openFound(out, { ...a!, stat: files[1]!.stat }))).toBe('changed')

    renameSync(join(place, 'out/b'), join(place, 'out/was-b'))
    symlinkSync('../secrets', join(place, 'out/b'))
    expect(codeOf(() => openFound(out, c!))).toBe('symbolic_link')
  })

  it('notices that the folder itself is exchanged', () => {
    const place = makePlace()
    write(place, { 'out/b/c': 'good', 'secrets/c': 'SECRET' })
    const out = open(join(place, 'out'))
    const opened = openFolder(out, 'b')
    if (!opened.ok) throw new Error(opened.error.message)
    const b = opened.value
    renameSync(join(place, 'out/b'), join(place, 'out/was-b'))
    symlinkSync('../secrets', join(place, 'out/b'))
    const file = openFile(b, 'c')
    // The open folder is still the right one, wherever it is now; by path the change shows.
    if (throughDescriptor) expect(file.ok && readFileSync(file.value.fd, 'utf8')).toBe('good')
    else expect(file.ok ? 'opened' : file.error.code).toBe('changed')
    if (throughDescriptor) replaceFile(b, 'new', 'text', 0o644)
    else expect(codeOf(() => createFile(b, 'new', 0o644))).toBe('changed')
    expect(existsSync(join(place, 'out/was-b/new'))).toBe(throughDescriptor)
    const outside = join(place, 'secrets/new')
    expect(existsSync(outside) ? statSync(outside).size : 0).toBe(0)
    b.close()
  })

  it('replaces a link instead of writing where it leads', () => {
    const place = makePlace()
    write(place, { secret: 'SECRET', 'out/x': '' })
    rmSync(join(place, 'out/x'))
    symlinkSync('../secret', join(place, 'out/x'))
    replaceFile(open(join(place, 'out')), 'x', 'new', 0o644)
    expect(readFileSync(join(place, 'secret'), 'utf8')).toBe('SECRET')
    expect(readFileSync(join(place, 'out/x'), 'utf8')).toBe('new')
  })

  it.each(['..', '.', '', 'a/b', 'a\0b'])('has no entry %j', (name) => {
    expect(() => open(makePlace()).at(name)).toThrow('is not the name of an entry')
  })
})

describe('removing a folder', () => {
  it('removes read-only, deep and badly named entries, and nothing that links lead to', async () => {
    const place = makePlace()
    write(place, { 'secrets/key': 'SECRET', 'gone/closed/file': 'x', 'gone/a/b/c/d': 'x' })
    symlinkSync('../secrets', join(place, 'gone/link'))
    symlinkSync('../../../secrets', join(place, 'gone/a/b/link'))
    mkdirSync(Buffer.concat([Buffer.from(`${place}/gone/`), Buffer.from([0xff, 0x0a])]))
    writeFileSync(Buffer.concat([Buffer.from(`${place}/gone/`), Buffer.from([0xff, 0x0a, 0x2f, 0xfe])]), 'x')
    // Deeper than any path can say.
    let deep = join(place, 'gone/deep')
    mkdirSync(deep)
    const start = process.cwd()
    onTestFinished(() => process.chdir(start))
    process.chdir(deep)
    for (let level = 0; level < 800; level++) {
      mkdirSync('level')
      process.chdir('level')
    }
    process.chdir(start)
    deep = join(place, 'gone/closed')
    chmodSync(deep, 0o500)
    chmodSync(join(place, 'gone/a'), 0o000)
    await removeFolder(join(place, 'gone'))
    expect(existsSync(join(place, 'gone'))).toBe(false)
    expect(readFileSync(join(place, 'secrets/key'), 'utf8')).toBe('SECRET')
  })

  it('removes a link and not the folder that it leads to', async () => {
    const place = makePlace()
    write(place, { 'secrets/key': 'SECRET' })
    symlinkSync('secrets', join(place, 'link'))
    await removeFolder(join(place, 'link'))
    expect(existsSync(join(place, 'link'))).toBe(false)
    expect(existsSync(join(place, 'secrets/key'))).toBe(true)
  })

  it('succeeds if there is nothing to remove', async () => {
    await removeFolder(join(makePlace(), 'nothing', 'here'))
    await removeFolder(join(makePlace(), 'nothing'))
  })
})
