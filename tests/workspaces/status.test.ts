import { linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  mayFollow,
  mergeStatus,
  parseStatus,
  readStatus,
  statesBetween,
  updateStatus,
  WORKSPACE_STATES,
} from '../../src/workspaces/status.ts'
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

  it('goes from pending to running to completed or failed, and no other way (S4.3)', () => {
    const ways = WORKSPACE_STATES.flatMap((from) =>
      WORKSPACE_STATES.filter((to) => from !== to && mayFollow(from, to)).map((to) => `${from} ${to}`),
    )
    expect(ways).toEqual(['pending running', 'running completed', 'running failed'])
  })

  it('may have passed through a state between two reads', () => {
    expect(statesBetween('pending', 'completed')).toEqual(['running', 'completed'])
    expect(statesBetween('pending', 'failed')).toEqual(['running', 'failed'])
    expect(statesBetween('running', 'running')).toEqual([])
    expect(statesBetween('running', 'pending')).toBeUndefined()
    expect(statesBetween('completed', 'failed')).toBeUndefined()
    expect(statesBetween('failed', 'running')).toBeUndefined()
  })

  it('keeps every field that a change does not name (C23)', () => {
    const json = fc.dictionary(fc.string(), fc.jsonValue())
    fc.assert(
      fc.property(json, json, (raw, progress) => {
        const before = { ...raw, progress }
        const {
          state,
          progress: after,
          ...rest
        } = mergeStatus(before, {
          state: 'running',
          progress: { current_step: 'x' },
        }) as Record<string, unknown>
        const { progress: _, state: __, ...others } = before as Record<string, unknown>
        expect(state).toBe('running')
        expect(after).toEqual({ ...progress, current_step: 'x' })
        expect(rest).toEqual(others)
      }),
    )
  })
})

describe('the file of a status', () => {
  const write = (workspace: string, text: string) => writeFileSync(join(workspace, 'status.json'), text)
  const read = (workspace: string) => JSON.parse(readFileSync(join(workspace, 'status.json'), 'utf8'))
  const problemIn = (workspace: string) => {
    const reading = readStatus(workspace)
    return reading.ok ? 'fine' : reading.error.code
  }

  it('is replaced atomically, with its other fields kept (C23)', async () => {
    const workspace = await makeWorkspace()
    write(workspace, '{"state": "running", "mine": {"a": 1}, "progress": {"current_step": "a", "note": "n"}}')
    expectOk(updateStatus(workspace, { state: 'completed', progress: { current_step: 'b' } }))
    expect(read(workspace)).toEqual({
      state: 'completed',
      mine: { a: 1 },
      progress: { current_step: 'b', note: 'n' },
    })
  })

  it('is not changed to an invalid next state, or if it cannot be read', async () => {
    const workspace = await makeWorkspace()
    expect(codesOf(updateStatus(workspace, { state: 'completed' }))).toEqual(['invalid'])
    expectOk(updateStatus(workspace, { state: 'running' }))
    expect(codesOf(updateStatus(workspace, { state: 'pending' }))).toEqual(['invalid'])
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
