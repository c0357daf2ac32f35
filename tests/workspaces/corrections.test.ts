/** Corrections by several fixers: `_fixed/` in the folder of a run. */
import type * as FileSystem from 'node:fs'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { collectCorrections } from '../../src/workspaces/corrections.ts'

/** Told of each entry before it is removed. */
const disk = vi.hoisted(() => ({ removes: () => {} }))

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>()
  const unlinkSync = (path: FileSystem.PathLike) => {
    disk.removes()
    original.unlinkSync(path)
  }
  return { ...original, unlinkSync }
})

let place: string
beforeEach(() => {
  disk.removes = () => {}
  place = mkdtempSync(join(tmpdir(), 'orchub-corrections-'))
  onTestFinished(() => rmSync(place, { recursive: true, force: true }))
})

function put(path: string, text: string) {
  mkdirSync(dirname(join(place, path)), { recursive: true })
  writeFileSync(join(place, path), text)
}

/** The outbox of a fixer, and what of it is taken. */
async function take(fix: number, files: Record<string, string>, isCorrected = fix > 1) {
  const workspace = join(place, '_fixes', `b.${fix}`)
  mkdirSync(join(workspace, 'outbox'), { recursive: true })
  for (const [path, text] of Object.entries(files)) put(`_fixes/b.${fix}/outbox/${path}`, text)
  const { signal } = new AbortController()
  return await collectCorrections({
    runFolder: place,
    name: '_fixed',
    agent: 'b',
    workspace,
    isCorrected,
    signal,
  })
}

const fixed = (file: string) => readFileSync(join(place, '_fixed/b', file), 'utf8')

it('keeps the last correction of each file, and earlier corrections of other files', async () => {
  expect(await take(1, { 'inputs/one': '1', 'inputs/deep/two': '1', 'report.md': 'mine' })).toMatchObject({
    ok: true,
  })
  const second = await take(2, {
    'inputs/deep/two': '2',
    'inputs/three': '2',
    'inputs/instructions.md': 'mine',
  })
  expect(second).toEqual({ ok: true, value: expect.arrayContaining(['deep/two', 'three']) })
  expect([fixed('one'), fixed('deep/two'), fixed('three')]).toEqual(['1', '2', '2'])
  expect(readdirSync(join(place, '_fixed/b')).sort()).toEqual(['deep', 'one', 'three'])
  expect(readdirSync(join(place, '_fixed'))).toEqual(['b'])
})

it('drops leftover files that no fixer reported', async () => {
  put('_fixed/b/planted', 'x')
  await take(1, { 'inputs/one': '1' }, false)
  expect(readdirSync(join(place, '_fixed/b'))).toEqual(['one'])
})

it('removes old corrections only when the new ones are in place', async () => {
  await take(1, { 'inputs/one': '1' })
  const seen: string[] = []
  disk.removes = () => void seen.push(fixed('one'))
  await take(2, { 'inputs/one': '2' })
  expect(seen).toEqual(['2'])
})

it('changes nothing and leaves nothing behind if a correction is refused', async () => {
  await take(1, { 'inputs/one': '1' })
  expect(await take(2, { 'summary.md': 'nothing' })).toMatchObject({
    ok: false,
    error: [{ code: 'missing' }],
  })
  mkdirSync(join(place, '_fixes/b.5/outbox/inputs'), { recursive: true })
  symlinkSync('/etc/passwd', join(place, '_fixes/b.5/outbox/inputs/one'))
  const why = 'one is a symbolic link, which is not followed'
  expect(await take(5, {})).toMatchObject({
    error: [{ message: `the fixer put no usable file into outbox/inputs/; outbox/inputs/${why}` }],
  })
  expect(await take(3, { 'inputs/instructions.md': 'mine' })).toMatchObject({ ok: false })
  put('_fixes/b.4/outbox/inputs', 'a file')
  expect(await take(4, {})).toMatchObject({ ok: false, error: [{ code: 'not_a_folder' }] })
  expect(fixed('one')).toBe('1')
  expect(readdirSync(join(place, '_fixed'))).toEqual(['b'])
  expect(existsSync(join(place, '_fixed/b/instructions.md'))).toBe(false)
})
