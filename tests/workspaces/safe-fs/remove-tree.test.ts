import type * as FileSystem from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { dissolve } from '../../../src/workspaces/dissolve.ts'
import { removeFolder } from '../../../src/workspaces/safe-fs/remove-tree.ts'
import { expectOk, makePlace, makeWorkspace, problemsOf, write } from '../harness.ts'

/** Decides which calls fail, independently of the user who runs the tests. */
const disk = vi.hoisted(() => ({ refuses: (_call: string, _path: string, _to?: string): boolean => false }))

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>()
  const pathOf = (path: FileSystem.PathLike | undefined) => {
    const text = String(path)
    if (/^\/proc\/self\/fd\/\d+$/.test(text)) return original.readlinkSync(text)
    return text.startsWith('/proc/') ? join(original.realpathSync(dirname(text)), basename(text)) : text
  }
  const watched = ['unlinkSync', 'rmdirSync', 'renameSync', 'chmodSync'] as const
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

/** All entries below a folder, with the modes of folders. */
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

describe('a removal that fails', () => {
  function makeTree() {
    const place = makePlace()
    write(place, { 'gone/a/b/c/stuck': 'x', 'gone/a/b/d/e/file': 'x', 'gone/f/file': 'x' })
    for (const folder of ['gone/a/b', 'gone/a/b/c', 'gone']) fs.chmodSync(join(place, folder), 0o555)
    return place
  }

  it('says what could not be removed, and can be repeated', async () => {
    const place = makeTree()
    disk.refuses = (call, path) => call === 'unlinkSync' && basename(path) === 'stuck'
    const stuck = join(place, 'gone/a/b/c/stuck')
    await expect(removeFolder(join(place, 'gone'))).rejects.toThrow(`${stuck} cannot be removed (EPERM)`)
    expect(fs.readdirSync(place)).toEqual(['gone'])
    disk.refuses = () => false
    await removeFolder(join(place, 'gone'))
    expect(fs.readdirSync(place)).toEqual([])
  })

  it('deletes nothing in a folder that cannot be moved, such as a mount point', async () => {
    const place = makeTree()
    disk.refuses = (call, path) => call === 'renameSync' && basename(path) === 'c'
    const mounted = join(place, 'gone/a/b/c')
    await expect(removeFolder(join(place, 'gone'))).rejects.toThrow(`${mounted} cannot be removed (EPERM)`)
    expect(treeOf(place).filter((path) => path.endsWith('/stuck'))).toHaveLength(1)
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
      archive: join(place, 'x.tar.gz'),
      keepOutputsIn: join(place, 'outputs'),
    }
    return { place, wanted: { title: 'x', agents, ...kept } }
  }

  it('keeps the record and names what is left if a file cannot be deleted', async () => {
    const { place, wanted } = await makeTeam()
    disk.refuses = (call, path) => call === 'unlinkSync' && /\/writer\/.*\/file$/.test(path)
    const problems = problemsOf(await dissolve(wanted))
    expect(problems.map(({ code }) => code)).toEqual(['half_removed'])
    expect(problems[0]!.message).toContain(`${join(place, 'writer')} is only partly removed: `)
    expect(fs.readdirSync(place).sort()).toEqual(['outputs', 'writer', 'x.report.md', 'x.tar.gz'])
    expect(fs.readFileSync(wanted.reportFile, 'utf8')).toContain('| finder |')
  })

  it('completes a removal that has begun when it is interrupted', async () => {
    const { place, wanted } = await makeTeam()
    const ending = new AbortController()
    disk.refuses = (call) => {
      if (call === 'unlinkSync') ending.abort()
      return false
    }
    expectOk(await dissolve({ ...wanted, signal: ending.signal }))
    expect(fs.readdirSync(place).sort()).toEqual(['outputs', 'x.report.md', 'x.tar.gz'])
  })

  it('writes nothing if it is interrupted before the removal', async () => {
    const { place, wanted } = await makeTeam()
    const before = treeOf(place)
    const problems = problemsOf(await dissolve({ ...wanted, signal: AbortSignal.abort() }))
    expect(problems.map(({ code }) => code)).toEqual(['called_off'])
    expect(treeOf(place)).toEqual(before)
  })

  it('removes a folder of another owner if that owner allows it', async () => {
    const { place, wanted } = await makeTeam()
    disk.refuses = (call, path) => call === 'chmodSync' && path.endsWith('/deep')
    expectOk(await dissolve(wanted))
    expect(fs.existsSync(join(place, 'writer'))).toBe(false)
  })

  it('writes the report before it deletes the first file', async () => {
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
