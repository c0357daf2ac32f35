import { linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseStatus, readStatus, updateStatus } from '../../src/workspaces/status.ts'
import { codesOf, expectOk, makeWorkspace } from './harness.ts'

const SEED = `{
  "state": "completed",
  "started": "2024-01-15T10:30:00Z",
  "completed": "2024-01-15T11:45:00Z",
  "error": null,
  "progress": { "current_step": "analyzing_data", "steps_completed": 3, "total_steps": 5 },
  "metrics": { "files_processed": 12, "outputs_generated": 4 }
}`

function statusOf(text: string) {
  const parsed = parseStatus(text)
  if (!parsed.ok) throw new Error(parsed.error.message)
  return parsed.value.status
}

const codeOf = (text: string) => {
  const parsed = parseStatus(text)
  return parsed.ok ? 'fine' : parsed.error.code
}

describe('status.json', () => {
  it('is read in the specified format (S4.2, S4.11)', () => {
    expect(statusOf(SEED)).toEqual({
      state: 'completed',
      started: '2024-01-15T10:30:00Z',
      completed: '2024-01-15T11:45:00Z',
      progress: { current_step: 'analyzing_data', steps_completed: 3, total_steps: 5 },
      metrics: { files_processed: 12, outputs_generated: 4 },
    })
    const failure = `{"state": "failed", "error": {"type": "ValidationError", "message": "Input file format invalid",
      "details": "Expected CSV, got JSON", "recoverable": true}}`
    expect(statusOf(failure).error).toEqual({
      type: 'ValidationError',
      message: 'Input file format invalid',
      details: 'Expected CSV, got JSON',
      recoverable: true,
    })
  })

  it('may have a byte order mark and any line ends', () => {
    expect(statusOf(`\ufeff${SEED.replaceAll('\n', '\r\n')}\r\n`).state).toBe('completed')
  })

  it('counts by its state, even if other fields are invalid', () => {
    const odd =
      '{"state": "failed", "error": "boom", "progress": 3, "metrics": [], "started": {}, "completed": 17}'
    expect(statusOf(odd)).toEqual({ state: 'failed', error: { message: 'boom' }, completed: '17' })
    expect(
      statusOf('{"state": "failed", "error": {"details": {"a": [1]}, "recoverable": "yes"}}').error,
    ).toEqual({
      details: '{"a":[1]}',
    })
    expect(statusOf(`{"state": "failed", "error": "${'x'.repeat(20_000)}"}`).error!.message).toHaveLength(
      10_001,
    )
  })

  it.each([
    ['', 'torn'],
    [SEED.slice(0, -1), 'torn'],
    [`${SEED}}`, 'torn'],
    ['{"state": "done"}', 'invalid'],
    ['{"state": "Completed"}', 'invalid'],
    ['{}', 'invalid'],
    ['[]', 'invalid'],
    ['null', 'invalid'],
    ['"running"', 'invalid'],
  ])('is refused as %j', (text, code) => {
    expect(codeOf(text)).toBe(code)
  })

  it('is never valid if a part of it is missing', () => {
    for (let end = 0; end < SEED.length; end++) expect(codeOf(SEED.slice(0, end))).toBe('torn')
  })
})

describe('the file of a status', () => {
  const write = (workspace: string, text: string) => writeFileSync(join(workspace, 'status.json'), text)
  const read = (workspace: string) => JSON.parse(readFileSync(join(workspace, 'status.json'), 'utf8'))
  const problemIn = (workspace: string) => {
    const reading = readStatus(workspace)
    return reading.ok ? 'fine' : reading.error.code
  }

  it('keeps every field that a change does not name (C23)', async () => {
    const workspace = await makeWorkspace()
    const fields = fc.dictionary(fc.string(), fc.string())
    fc.assert(
      fc.property(fields, (others) => {
        write(workspace, JSON.stringify({ ...others, state: 'running' }))
        expectOk(updateStatus(workspace, { state: 'completed', completed: 'now' }))
        expect(read(workspace)).toEqual({ ...others, state: 'completed', completed: 'now' })
      }),
    )
  })

  it('goes from pending to running to completed or failed, and no other way (S4.3)', async () => {
    const workspace = await makeWorkspace()
    const states = ['pending', 'running', 'completed', 'failed'] as const
    const ways = states.flatMap((from) => states.filter((to) => from !== to).map((to) => [from, to] as const))
    const allowed = ways.filter(([from, to]) => {
      write(workspace, `{"state": "${from}"}`)
      const { ok } = updateStatus(workspace, { state: to })
      expect(read(workspace).state).toBe(ok ? to : from)
      return ok
    })
    expect(allowed).toEqual([
      ['pending', 'running'],
      ['running', 'completed'],
      ['running', 'failed'],
    ])
  })

  it('is not changed if it cannot be read', async () => {
    const workspace = await makeWorkspace()
    write(workspace, '{"state": "run')
    expect(codesOf(updateStatus(workspace, { state: 'completed' }))).toEqual(['torn'])
    expect(readFileSync(join(workspace, 'status.json'), 'utf8')).toBe('{"state": "run')
  })

  it('is reported as JSON that is not an object, or as incomplete', async () => {
    const workspace = await makeWorkspace()
    for (const text of ['null', '\ufeff [1]\n', '"running"', '17', '[{"state": "running"}]']) {
      write(workspace, text)
      expect(readStatus(workspace)).toMatchObject({
        error: { code: 'invalid', message: 'status.json is JSON, but not an object' },
      })
    }
    for (const text of ['', ' \n', '[1', 'nul', '{"state": "running"', '\ufeff{"a": [1]']) {
      write(workspace, text)
      expect(readStatus(workspace)).toMatchObject({
        error: { code: 'torn', message: 'status.json is not complete JSON' },
      })
    }
  })

  it('is not read if it is a link, a folder, a hard link, too large or missing', async () => {
    const workspace = await makeWorkspace()
    const file = join(workspace, 'status.json')
    truncateSync(file, 10 * 1024 * 1024 + 1)
    expect(problemIn(workspace)).toBe('too_large')
    rmSync(file)
    expect(problemIn(workspace)).toBe('missing')
    const outside = join(workspace, '..', 'outside.json')
    writeFileSync(outside, SEED)
    symlinkSync(outside, file)
    expect(problemIn(workspace)).toBe('symbolic_link')
    rmSync(file)
    linkSync(outside, file)
    expect(problemIn(workspace)).toBe('hard_link')
    rmSync(file)
    mkdirSync(file)
    expect(problemIn(workspace)).toBe('not_a_file')
    rmSync(workspace, { recursive: true })
    expect(problemIn(workspace)).toBe('missing')
  })

  it('is read up to its limit', async () => {
    const workspace = await makeWorkspace()
    write(workspace, `{"state": "running", "log": "${'x'.repeat(10_000_000)}"}`)
    expect(problemIn(workspace)).toBe('fine')
  })
})
