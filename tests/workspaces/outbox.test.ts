import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '../../src/workspaces/limits.ts'
import { collectOutbox, findShortcomings, keepOutbox, writeOutputs } from '../../src/workspaces/outbox.ts'
import { readStatus } from '../../src/workspaces/status.ts'
import { readAttempts } from '../../src/workspaces/survey.ts'
import { keepAttempt } from '../../src/workspaces/workspaces.ts'
import { codesOf, expectOk, makePlace, makeWorkspace, problemsOf, write } from './harness.ts'

async function filled(files: Record<string, string>) {
  const workspace = await makeWorkspace()
  write(join(workspace, 'outbox'), files)
  return workspace
}

const collect = async (workspace: string) => expectOk(await collectOutbox(workspace))
const missing = async (files: Record<string, string>, required = {}) =>
  findShortcomings(await collect(await filled(files)), required).map(({ message }) => message)

describe('collecting an outbox', () => {
  it('separates deliverables from reports, and ignores workspace/ (S4.7 to S4.11)', async () => {
    const workspace = await filled({
      'report.md': 'r',
      'data/a.csv': '1',
      'summary.md': '\ufeffWhat was done.',
      'changelog.md': '',
      'issues.md': '',
      'metadata.json': '{}',
      'error_report.md': '## Error Type\nX',
      'partial/half.md': 'h',
    })
    write(workspace, { 'workspace/notes.txt': 'private' })
    const outbox = await collect(workspace)
    const paths = (outputs: readonly { path: string }[]) => outputs.map(({ path }) => path)
    expect(paths(outbox.deliverables)).toEqual(['data/a.csv', 'report.md'])
    expect(paths(outbox.partial)).toEqual(['partial/half.md'])
    expect(outbox.outputs).toHaveLength(8)
    expect(outbox.summary).toBe('What was done.')
    expect(outbox.errorReport?.type).toBe('X')
  })

  it('says why an error report is not read, also for earlier attempts', async () => {
    const workspace = await filled({ 'error_report.md': 'x'.repeat(1024 * 1024 + 1) })
    const why = 'error_report.md is 1048577 bytes, over the limit of 1 MiB'
    const { errorReport, errorReportProblem } = await collect(workspace)
    expect(errorReport).toBe(undefined)
    expect(errorReportProblem?.message).toBe(`outbox/${why}`)
    expectOk(await keepAttempt(workspace, 1))
    expect(expectOk(await readAttempts(workspace))).toMatchObject([
      { number: 1, errorReportProblem: { message: `attempts/1/outbox/${why}` } },
    ])
  })

  it('hashes the content on request', async () => {
    const workspace = await filled({ 'a/b': 'abc' })
    const { outputs } = expectOk(await collectOutbox(workspace, { content: true }))
    expect(outputs).toEqual([
      { path: 'a/b', size: 3, sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' },
    ])
  })

  it('refuses a summary with a second name, with and without hashing', async () => {
    const workspace = await filled({ 'report.md': 'What was done.' })
    linkSync(join(workspace, 'outbox/report.md'), join(workspace, 'outbox/summary.md'))
    for (const content of [true, false]) {
      expect(expectOk(await collectOutbox(workspace, { content })).summary).toBeUndefined()
    }
  })

  it.each([true, false])(
    'says that a summary is too large, with the limit (content: %s)',
    async (content) => {
      const large = await filled({ 'summary.md': 'x'.repeat(1024 * 1024 + 1), 'a.txt': '' })
      const outbox = expectOk(await collectOutbox(large, { content }))
      expect(findShortcomings(outbox)).toMatchObject([
        { code: 'too_large', message: 'outbox/summary.md is 1048577 bytes, over the limit of 1 MiB' },
      ])
      expect(await missing({ 'summary.md': 'x'.repeat(1024 * 1024), 'a.txt': '' })).toEqual([])
    },
  )

  it('names the link on the path of a missing output', async () => {
    const workspace = await filled({ 'summary.md': 's', 'data/a.txt': '' })
    symlinkSync('/etc', join(workspace, 'outbox/a'))
    symlinkSync('/etc', join(workspace, 'outbox/data/v'))
    const outputs = ['outbox/data/v/*', 'none.md']
    const short = findShortcomings(await collect(workspace), { outputs })
    expect(short.map(({ message }) => message)).toEqual([
      'outbox has nothing that matches outbox/data/v/*; outbox/data/v is a symbolic link, which is not followed',
      'outbox has nothing that matches none.md',
    ])
  })

  it('refuses an outbox over the size limit before reading it, and one that grows over it', async () => {
    const workspace = await filled({ a: 'x'.repeat(60), b: 'x'.repeat(70) })
    const small = { ...DEFAULT_LIMITS, referencedBytes: 100 }
    const refused = await collectOutbox(workspace, { limits: small, content: true })
    expect(problemsOf(refused).map(({ message }) => message)).toEqual([
      'outbox has 130 bytes of files, of which outbox/b has 70 bytes; the limit is 100 bytes',
    ])
    expect(codesOf(await collectOutbox(workspace, { limits: small, sizeCounts: true }))).toEqual([
      'too_large',
    ])
    // Without reading, the files are still listed.
    expect(expectOk(await collectOutbox(workspace, { limits: small })).outputs).toHaveLength(2)

    const growing = await filled({ a: '1', b: '2' })
    let reads = 0
    const limitsThatGrow = {
      ...small,
      // Read for the second time once the sizes were checked.
      get referencedBytes() {
        if (++reads === 2) truncateSync(join(growing, 'outbox/b'), 1000)
        return 100
      },
    }
    const grown = await collectOutbox(growing, { limits: limitsThatGrow, content: true })
    expect(problemsOf(grown)[0]!.message).toBe(
      'outbox/b has grown to 1000 bytes since it was seen, which is over the limit',
    )
  })

  it('copies under a hidden name until the copy is complete', async () => {
    const workspace = await filled({ a: '1', b: '2', 'deep/c': '3' })
    const place = makePlace()
    const seen: string[][] = []
    const look = () => void seen.push(readdirSync(place).map((name) => name.replace(/^\..*/, 'hidden')))
    const to = { parent: place, name: 'kept' }
    expectOk(await keepOutbox(workspace, to, { copied: look }))
    expect(seen).toEqual([['hidden'], ['hidden'], ['hidden']])
    expect(readdirSync(join(place, 'kept')).sort()).toEqual(['a', 'b', 'deep'])
    // Anything in its place is replaced.
    for (const plant of [
      () => write(place, { 'kept/planted': 'of an agent' }),
      () => symlinkSync('/etc', join(place, 'kept')),
      () => write(place, { kept: 'a file' }),
    ]) {
      rmSync(join(place, 'kept'), { recursive: true })
      plant()
      expectOk(await keepOutbox(workspace, to, {}))
      expect(readdirSync(place)).toEqual(['kept'])
      expect(readdirSync(join(place, 'kept')).sort()).toEqual(['a', 'b', 'deep'])
    }
  })

  it('accepts a summary and one deliverable (C22)', async () => {
    expect(await missing({ 'summary.md': 'ok', 'a.txt': '' })).toEqual([])
    expect(await missing({ 'summary.md': 'x'.repeat(21), 'a.txt': '' }, { summaryOver: 20 })).toEqual([])
  })

  it('says what is missing (C22)', async () => {
    const noDeliverable = 'outbox holds no deliverable: at least one file besides the summary is required'
    expect(await missing({})).toEqual(['outbox/summary.md is required but does not exist', noDeliverable])
    expect(await missing({ 'summary.md': ' \n', 'partial/a': '', 'issues.md': '' })).toEqual([
      'outbox/summary.md is empty',
      noDeliverable,
    ])
    expect(await missing({ 'summary.md': 'x'.repeat(20), a: '' }, { summaryOver: 20 })).toEqual([
      'outbox/summary.md has 20 characters, and more than 20 are required',
    ])
    const outputs = ['outbox/report.md', 'outbox/data/*.csv', 'outbox/a', '../x']
    expect(await missing({ 'summary.md': 'x', a: '' }, { outputs: outputs.slice(0, 3) })).toEqual([
      'outbox has nothing that matches outbox/report.md',
      'outbox has nothing that matches outbox/data/*.csv',
    ])
    expect((await missing({ 'summary.md': 'x', a: '' }, { outputs }))[0]).toMatch('The pattern ../x')
  })

  it('does not count links, pipes and the like as deliverable or summary', async () => {
    const workspace = await filled({})
    const outside = makePlace()
    write(outside, { secret: 'SECRET' })
    symlinkSync(join(outside, 'secret'), join(workspace, 'outbox/summary.md'))
    linkSync(join(outside, 'secret'), join(workspace, 'outbox/report.md'))
    const outbox = await collect(workspace)
    expect(outbox.outputs).toEqual([])
    expect(JSON.stringify(outbox)).not.toContain('SECRET')
    expect(findShortcomings(outbox).map(({ message }) => message)[0]).toBe(
      'outbox/summary.md is required but does not exist: outbox/summary.md is a symbolic link, which is not followed',
    )
  })

  it('refuses an outbox over the limit or gone', async () => {
    const workspace = await filled({ a: '', b: '', c: '' })
    expect(codesOf(await collectOutbox(workspace, { limits: { ...DEFAULT_LIMITS, files: 2 } }))).toEqual([
      'too_many_files',
    ])
    rmSync(join(workspace, 'outbox'), { recursive: true })
    expect(codesOf(await collectOutbox(workspace))).toEqual(['missing'])
  })
})

describe('writing files of a model', () => {
  it.each(['.', 'outbox/', '../x', '/etc/x'])('refuses the path %s', async (path) => {
    const workspace = await makeWorkspace()
    expect(codesOf(await writeOutputs(workspace, [{ path, content: 'x' }]))).toEqual(['bad_path'])
  })
})

describe('keeping an attempt (S4.12)', () => {
  it('moves the outbox and the status away, and starts fresh', async () => {
    const workspace = await filled({
      'error_report.md': '## Error Type\nBroken\n## Description\nAll of it.',
      'partial/x': 'half',
    })
    write(workspace, { 'workspace/cache': 'kept' })
    writeFileSync(
      join(workspace, 'status.json'),
      '{"state": "failed", "error": {"type": "E", "message": "m"}}',
    )
    symlinkSync('/etc/passwd', join(workspace, 'outbox/link'))
    expectOk(await keepAttempt(workspace, 1))
    expect(readdirSync(join(workspace, 'outbox'))).toEqual([])
    expect(readFileSync(join(workspace, 'attempts/1/outbox/partial/x'), 'utf8')).toBe('half')
    expect(readFileSync(join(workspace, 'workspace/cache'), 'utf8')).toBe('kept')
    expect(readStatus(workspace)).toMatchObject({ ok: true, value: { status: { state: 'pending' } } })

    write(join(workspace, 'outbox'), { second: '' })
    writeFileSync(join(workspace, 'status.json'), 'torn')
    expectOk(await keepAttempt(workspace, 2))
    expect(expectOk(await readAttempts(workspace))).toMatchObject([
      { number: 1, status: { state: 'failed' }, errorReport: { type: 'Broken', description: 'All of it.' } },
      { number: 2, status: undefined, errorReport: undefined },
    ])
  })

  it('gives the run’s reason for an attempt that never said how it ended', async () => {
    const workspace = await filled({ first: '' })
    expectOk(await keepAttempt(workspace, 1, 'it exited with 1'))
    writeFileSync(join(workspace, 'status.json'), '{"state": "running", "started": "then"}')
    expectOk(await keepAttempt(workspace, 2, 'it was not done within 5 s'))
    writeFileSync(join(workspace, 'status.json'), 'torn')
    expectOk(await keepAttempt(workspace, 3, 'it is torn'))
    writeFileSync(join(workspace, 'status.json'), '{"state": "failed", "error": "its own words"}')
    expectOk(await keepAttempt(workspace, 4, 'its own words'))
    writeFileSync(join(workspace, 'status.json'), '{"state": "completed"}')
    expectOk(await keepAttempt(workspace, 5, 'it has no summary.md'))
    expect(expectOk(await readAttempts(workspace)).map(({ status }) => status)).toMatchObject([
      { state: 'failed', error: { message: 'it exited with 1' } },
      { state: 'failed', started: 'then', error: { message: 'it was not done within 5 s' } },
      { state: 'failed', error: { message: 'it is torn' } },
      { state: 'failed', error: { message: 'its own words' } },
      { state: 'completed', error: { message: 'it has no summary.md' } },
    ])
  })

  it('is idempotent, and continues after a crash', async () => {
    const workspace = await filled({ first: '' })
    expectOk(await keepAttempt(workspace, 1))
    expectOk(await keepAttempt(workspace, 1))
    expect(existsSync(join(workspace, 'attempts/1/outbox/first'))).toBe(true)
    rmSync(join(workspace, 'outbox'), { recursive: true })
    rmSync(join(workspace, 'status.json'))
    expectOk(await keepAttempt(workspace, 1))
    expect(readdirSync(join(workspace, 'outbox'))).toEqual([])
    expect(readStatus(workspace).ok).toBe(true)
  })

  it('does not write through a link in place of attempts/', async () => {
    const workspace = await filled({ first: '' })
    const outside = makePlace()
    symlinkSync(outside, join(workspace, 'attempts'))
    expect(codesOf(await keepAttempt(workspace, 1))).toEqual(['symbolic_link'])
    expect(codesOf(await readAttempts(workspace))).toEqual(['symbolic_link'])
    expect(readdirSync(outside)).toEqual([])
  })

  it('returns nothing without earlier attempts', async () => {
    const workspace = await makeWorkspace()
    expect(expectOk(await readAttempts(workspace))).toEqual([])
    mkdirSync(join(workspace, 'attempts'))
    write(workspace, { 'attempts/x': '', 'attempts/7': '' })
    expect(expectOk(await readAttempts(workspace))).toEqual([
      { number: 7, status: undefined, errorReport: undefined },
    ])
  })
})
