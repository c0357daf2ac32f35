import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { isRunning } from '../../../src/base/process.ts'
import { adoptCommand } from '../../../src/runs/workers/command.ts'
import { HAS_MARKS, SESSION_MARK } from '../../../src/runtimes/processes.ts'

it('kills no process that got the pid of a command after a reboot', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-adopted-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  // A group whose first process has ended, as daemons are.
  const shell = spawn('/bin/sh', ['-c', 'sleep 60 >/dev/null 2>&1 & echo $!'], { detached: true })
  const [data] = (await once(shell.stdout, 'data')) as [Buffer]
  const daemon = Number(data.toString())
  onTestFinished(() => void process.kill(daemon, 'SIGKILL'))
  await once(shell, 'exit')
  const exitFile = join(folder, 'exit')
  writeFileSync(exitFile, `${shell.pid}\n0\n`)
  const adopted = adoptCommand({ mark: 'mark', exitFile, logFile: join(folder, 'log') }, [])
  expect(await adopted.ended).toEqual({ code: 0, signal: null, lost: false, why: '' })
  expect(isRunning(daemon)).toBe(true)
})

it.runIf(HAS_MARKS).each([
  ['kills processes that left the group of a command that failed', 1, true],
  ['keeps processes that left the group of a command that succeeded', 0, false],
])('%s', async (_, code, ends) => {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-adopted-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const mark = `adopted-${process.pid}-${code}`
  const daemon = spawn('sleep', ['60'], { detached: true, env: { ...process.env, [SESSION_MARK]: mark } })
  onTestFinished(() => void daemon.kill('SIGKILL'))
  await once(daemon, 'spawn')
  const exitFile = join(folder, 'exit')
  // No process has this pid.
  writeFileSync(exitFile, `999999999\n${code}\n`)
  const adopted = adoptCommand({ mark, exitFile, logFile: join(folder, 'log') }, [])
  expect(await adopted.ended).toMatchObject({ code, lost: false })
  if (ends) await expect.poll(() => daemon.signalCode).toBe('SIGTERM')
  else expect(isRunning(daemon.pid!)).toBe(true)
})
