import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createRunMarks, findRunProcesses } from '../../src/runs/process-marks.ts'
import { HAS_MARKS, SESSION_MARK } from '../../src/runtimes/processes.ts'

function makeFolders() {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-marks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [state, link, other] = ['state', 'link', 'other'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  mkdirSync(state)
  mkdirSync(other)
  symlinkSync('state', link)
  return { state, link, other }
}

it('are the same for every path of a state folder, and differ between state folders', () => {
  const { state, link, other } = makeFolders()
  const markOf = (folder: string) => createRunMarks(folder).of('run_1', 'a', 'attempt 1')
  expect(markOf(link)).toBe(markOf(state))
  expect(markOf(`${state}/../link`)).toBe(markOf(state))
  expect(markOf(other)).not.toBe(markOf(state))
  // A folder that does not exist yet has a mark as well.
  expect(markOf(join(other, 'none'))).toMatch(/^run-[0-9a-f]{12}\/run_1\/a\/attempt\/1$/)
})

it.runIf(HAS_MARKS)('find what a run left through a link to its state folder', async () => {
  const { state, link, other } = makeFolders()
  const mark = createRunMarks(state).of('run_1', 'a', 'attempt 1')
  const left = spawn('sleep', ['60'], { env: { PATH: process.env.PATH, [SESSION_MARK]: mark } })
  onTestFinished(() => void left.kill('SIGKILL'))
  await once(left, 'spawn')
  await expect.poll(() => findRunProcesses(link, 'run_1')).toEqual(new Map([['a', [left.pid]]]))
  expect(await findRunProcesses(link, 'run_2')).toEqual(new Map())
  expect(await findRunProcesses(other, 'run_1')).toEqual(new Map())
})
