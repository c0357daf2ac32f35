import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const CHILD = join(import.meta.dirname, 'full-disk.child.ts')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orchub-full-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Mounts a small disk in the child's own namespace; it disappears with the child. */
function mountSmallDisk(): string[] | undefined {
  const mount = `mount -t tmpfs -o size=2m none '${folder}'`
  for (const namespace of [['--mount'], ['--user', '--map-root-user', '--mount']]) {
    const command = ['unshare', ...namespace, 'sh', '-c']
    if (spawnSync(command[0]!, [...command.slice(1), mount]).status !== 0) continue
    return [...command, `${mount} && exec "$@"`, 'sh']
  }
  return undefined
}

interface Report {
  accepted: number[]
  code: string
  hint: string
  again: string
  whileFull: string[]
  afterwards: number | string
  audit: { ok: boolean; count: number }
  problems: string[]
}

function fill(command: readonly string[]): Report {
  const [program, ...args] = [...command, process.execPath, CHILD, folder]
  const child = spawnSync(program!, args, { encoding: 'utf8' })
  expect(child.stderr).toBe('')
  return JSON.parse(child.stdout) as Report
}

describe('a full disk', () => {
  it('stops writes but not reads, loses no accepted message, and recovers when there is space', () => {
    const disk = mountSmallDisk()
    // Without the right to mount, a limit on the file size makes writes fail too.
    const report = fill(disk ?? ['sh', '-c', 'ulimit -f 1500 && exec "$@"', 'sh'])
    const code = disk === undefined ? 'STORE_UNAVAILABLE' : 'STORE_FULL'
    expect(report).toMatchObject({ code, again: code, hint: expect.any(String), problems: [] })
    expect(report.accepted.length).toBeGreaterThan(10)
    expect(report.whileFull).toEqual(report.accepted.map((key) => `msg_${key}`))
    const later = disk === undefined ? [] : [expect.any(Number)]
    if (disk !== undefined) expect([report.afterwards]).toEqual(later)
    expect(report.audit).toMatchObject({ ok: true, count: report.accepted.length + later.length })
  })
})
