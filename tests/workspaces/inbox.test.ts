import { hash } from 'node:crypto'
import {
  chmodSync,
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '../../src/workspaces/limits.ts'
import { checkInbox, prepareInbox } from '../../src/workspaces/workspaces.ts'
import {
  codesOf,
  expectOk,
  handOver,
  instructions,
  makePlace,
  makeWorkspace,
  problemsOf,
  write,
} from './harness.ts'

const task = 'a task'

describe('preparing an inbox', () => {
  it('holds the instructions, the inputs and the outputs of dependencies (S4.6, S4.13)', async () => {
    const place = makePlace()
    const [from, to] = [await makeWorkspace('collector', place), await makeWorkspace('writer', place)]
    write(place, { 'brief.md': 'brief', 'tables/a.csv': '1', 'tables/b/c.csv': '2' })
    write(join(from, 'outbox'), { 'data.json': '{}' })
    const { manifest, leftOut } = expectOk(
      await prepareInbox({
        workspace: to,
        task,
        instructions,
        inputs: [
          { path: join(place, 'brief.md'), to: 'inbox/brief.md', description: 'What is wanted' },
          { path: join(place, 'brief.md'), to: 'inbox/copies/' },
          { path: join(place, 'tables'), to: 'inbox/tables' },
        ],
        dependencies: [
          { workspace: from, agent: 'collector', outputs: ['outbox/data.json'], copyTo: 'inbox/source/' },
        ],
        dependenciesFile: '{"depends_on": []}',
        outputs: ['outbox/report.md'],
      }),
    )
    expect(leftOut).toEqual([])
    expect(manifest.inputs.map(({ path }) => path)).toEqual([
      'brief.md',
      'copies/brief.md',
      'dependencies.json',
      'instructions.md',
      'source/data.json',
      'tables/a.csv',
      'tables/b/c.csv',
    ])
    const text = readFileSync(join(to, 'inbox/instructions.md'), 'utf8')
    expect(text).toContain('- `brief.md` - What is wanted\n')
    expect(text).toContain('- `source/` - Outputs of collector\n')
    expect(text).toContain('- Place `outbox/report.md`\n- Include summary in `outbox/summary.md`\n')
    expect(readFileSync(join(place, 'brief.md'), 'utf8')).toBe('brief')
  })

  it('takes a corrected output of a dependency, and refuses one that was changed after its validation', async () => {
    const place = makePlace()
    const [from, to] = [await makeWorkspace('collector', place), await makeWorkspace('writer', place)]
    write(join(from, 'outbox'), { 'data.json': 'broken' })
    write(place, { 'fixed/source/data.json': 'mended' })
    const validated = [{ path: 'data.json', sha256: hash('sha256', 'broken') }]
    const dependency = { workspace: from, agent: 'collector', outputs: ['outbox/data.json'] }
    const wanted = {
      ...{ workspace: to, task, instructions },
      dependencies: [{ ...dependency, copyTo: 'inbox/source/', validated }],
    }
    const corrections = { path: join(place, 'fixed'), within: place }
    expectOk(await prepareInbox({ ...wanted, corrections }))
    expect(readFileSync(join(to, 'inbox/source/data.json'), 'utf8')).toBe('mended')
    write(join(from, 'outbox'), { 'data.json': 'changed' })
    expect(codesOf(await prepareInbox(wanted))).toEqual(['invalid'])
  })

  it('makes everything read-only, and keeps executable files executable (S4.6)', async () => {
    const to = await makeWorkspace()
    const place = makePlace()
    write(place, { 'run.sh': '#!/bin/sh', 'data/x': '' })
    chmodSync(join(place, 'run.sh'), 0o4755)
    const inputs = [
      { path: join(place, 'run.sh'), to: 'inbox/run.sh' },
      { path: join(place, 'data'), to: 'inbox/data' },
    ]
    expectOk(await prepareInbox({ workspace: to, task, instructions, inputs }))
    const modeOf = (path: string) => (statSync(join(to, path)).mode & 0o7777).toString(8)
    expect(
      ['inbox', 'inbox/data', 'inbox/data/x', 'inbox/run.sh', 'inbox/instructions.md'].map(modeOf),
    ).toEqual(['555', '555', '444', '555', '444'])
  })

  it('follows a link that the user named, but none inside the folder', async () => {
    const to = await makeWorkspace()
    const place = makePlace()
    write(place, { 'real/a': 'a', secret: 'SECRET' })
    symlinkSync('real', join(place, 'named'))
    symlinkSync('../secret', join(place, 'real/link'))
    const inputs = [{ path: join(place, 'named'), to: 'inbox/named' }]
    const { leftOut } = expectOk(await prepareInbox({ workspace: to, task, instructions, inputs }))
    expect(readdirSync(join(to, 'inbox/named'))).toEqual(['a'])
    expect(leftOut.map(({ code }) => code)).toEqual(['symbolic_link'])
  })

  it('accepts a hard-linked file of the user', async () => {
    const to = await makeWorkspace()
    const place = makePlace()
    write(place, { a: 'a' })
    linkSync(join(place, 'a'), join(place, 'b'))
    const inputs = [{ path: join(place, 'a'), to: 'inbox/a' }]
    expectOk(await prepareInbox({ workspace: to, task, instructions, inputs }))
  })

  it('refuses two inputs for one place, including files of the protocol', async () => {
    const place = makePlace()
    write(place, { a: 'a', 'b/instructions.md': 'mine' })
    const refusal = async (...to: [string, string][]) => {
      const inputs = to.map(([path, place_]) => ({ path: join(place, path), to: place_ }))
      return problemsOf(await prepareInbox({ workspace: await makeWorkspace(), task, instructions, inputs }))
    }
    expect(await refusal(['a', 'inbox/x'], ['a', 'x'])).toMatchObject([{ code: 'exists', path: 'inbox/x' }])
    expect(await refusal(['b', 'inbox'])).toMatchObject([{ code: 'exists', path: 'inbox/instructions.md' }])
    expect(await refusal(['a', 'inbox/references.json'])).toMatchObject([{ code: 'exists' }])
    expect(await refusal(['a', 'inbox/x'], ['a', 'inbox/x/y'])).toMatchObject([
      { code: 'not_a_folder', path: 'inbox/x' },
    ])
    expect(await refusal(['missing', 'inbox/x'])).toMatchObject([{ code: 'missing' }])
  })

  it('is refused if it exceeds the limit', async () => {
    const place = makePlace()
    write(place, { a: 'a' })
    const inputs = ['x', 'y'].map((to) => ({ path: join(place, 'a'), to }))
    const few = { ...DEFAULT_LIMITS, files: 2 }
    const workspace = await makeWorkspace()
    expect(codesOf(await prepareInbox({ workspace, task, instructions, limits: few, inputs }))).toEqual([
      'too_many_files',
    ])
  })

  it('can be aborted, and leaves nothing behind', async () => {
    const place = makePlace()
    write(place, { a: 'a' })
    const inputs = [{ path: place, to: 'inbox/a' }]
    const signal = AbortSignal.abort(new Error('called off'))
    const workspace = await makeWorkspace()
    await expect(prepareInbox({ workspace, task, instructions, inputs, signal })).rejects.toThrow(
      'called off',
    )
    expect(readdirSync(workspace).sort()).toEqual(['SKILL.md', 'outbox', 'status.json', 'workspace'])
  })
})

describe('the hash of the inputs', () => {
  const hashOf = async (files: Record<string, string>, given: object = {}) => {
    const place = makePlace()
    const [from, to] = [await makeWorkspace('maker', place), await makeWorkspace('user', place)]
    write(join(from, 'outbox'), files)
    return expectOk(await handOver(from, to, ['outbox/**'], given)).manifest.hash
  }

  it('is the same for the same content, wherever the folders are, copied or by reference', async () => {
    const hash = await hashOf({ a: '1', 'b/c': '22' })
    expect(await hashOf({ 'b/c': '22', a: '1' })).toBe(hash)
    expect(await hashOf({ 'b/c': '22', a: '1' }, { inlineBytes: 1 })).toBe(hash)
  })

  it('changes with every byte, name and file', async () => {
    const trees = [
      { a: '1', b: '2' },
      { a: '1', b: '3' },
      { a: '1', c: '2' },
      { a: '1' },
      { a: '12', b: '' },
      { a: '2', b: '1' },
    ]
    const hashes = await Promise.all(trees.map((tree) => hashOf(tree as Record<string, string>)))
    expect(new Set(hashes).size).toBe(trees.length)
  })
})

describe('the check of the inbox after the run (C21)', () => {
  const prepare = async () => {
    const place = makePlace()
    const [from, to] = [await makeWorkspace('maker', place), await makeWorkspace('user', place)]
    write(join(from, 'outbox'), { a: '1', 'b/c': '2', large: '12345678' })
    const { manifest } = expectOk(await handOver(from, to, ['outbox/**'], { inlineBytes: 4 }))
    return { from, to, manifest, inbox: join(to, 'inbox/from') }
  }
  const check = async (to: string, manifest: Parameters<typeof checkInbox>[1]) =>
    expectOk(await checkInbox(to, manifest))

  it('finds nothing if nothing changed', async () => {
    const { to, manifest } = await prepare()
    expect(await check(to, manifest)).toEqual([])
  })

  it('finds files that were added, removed, changed and exchanged for a link', async () => {
    const { from, to, manifest, inbox } = await prepare()
    for (const folder of [inbox, join(inbox, 'b'), join(to, 'inbox')]) chmodSync(folder, 0o755)
    rmSync(join(inbox, 'a'))
    rmSync(join(inbox, 'b/c'))
    symlinkSync('/etc/passwd', join(inbox, 'b/c'))
    writeFileSync(join(inbox, 'new'), '')
    rmSync(join(to, 'inbox/references.json'))
    writeFileSync(join(to, 'inbox/references.json'), '{}')
    writeFileSync(join(from, 'outbox/large'), '87654321')
    expect(await check(to, manifest)).toEqual([
      { path: 'from/b/c', change: 'changed' },
      { path: 'from/new', change: 'added' },
      { path: 'references.json', change: 'changed' },
      { path: 'from/a', change: 'removed' },
      { path: join(from, 'outbox/large'), change: 'changed' },
    ])
  })

  it('fails if the inbox is gone', async () => {
    const { to, manifest } = await prepare()
    rmSync(join(to, 'inbox'), { recursive: true })
    expect(codesOf(await checkInbox(to, manifest))).toEqual(['missing'])
  })
})
