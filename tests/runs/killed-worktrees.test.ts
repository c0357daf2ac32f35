import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { isAlive, readProcesses } from '../../src/runtimes/processes.ts'
import { createDaemon } from '../fakes/daemon.ts'

const PLAN = `agents:
  coder: { command: "cat worktree/one.txt > outbox/one; echo It is done. > outbox/summary.md", worktree: true, retries: 0 }
`

/** Makes filling a worktree slow, and reports that it has begun, until the service is killed. */
function makeRepository(): string {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-killed-'))
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', ...args], { cwd: folder })
  git('init', '-q', '-b', 'main')
  for (const name of ['one', 'two']) writeFileSync(join(folder, `${name}.txt`), `${name}\n`)
  writeFileSync(join(folder, '.gitattributes'), '*.txt filter=slow\n')
  git('add', '.')
  git('commit', '-q', '-m', 'first')
  const slow = `touch ${folder}/began; test -e ${folder}/killed || sleep 60; cat`
  git('config', 'filter.slow.smudge', slow)
  return folder
}

it('makes a worktree again whose git outlived a killed service (C23)', async () => {
  const daemon = await createDaemon('agents: { Master: {} }')
  const folder = makeRepository()
  onTestFinished(async () => {
    await daemon.close()
    rmSync(folder, { recursive: true, force: true })
  })
  await daemon.start()
  const client = () => createClient({ url: daemon.url, token: daemon.operatorToken() })
  const { run_id } = await client().startRun({ plan: PLAN, folder })
  await vi.waitFor(() => expect(existsSync(join(folder, 'began'))).toBe(true), 20_000)
  await daemon.kill()
  writeFileSync(join(folder, 'killed'), '')
  // The process would go on to fill or remove the folder, although it belongs to another by then.
  const left = (await readProcesses()).filter(({ mark }) => mark?.endsWith(`/${run_id}/coder/worktree`))
  expect(left.length).toBeGreaterThan(0)

  await daemon.start()
  let outcome = ''
  for await (const event of client().runEvents(run_id)) if (event.type === 'end') outcome = event.outcome
  expect(outcome).toBe('completed')
  expect(left.filter(isAlive)).toEqual([])
  const place = join(folder, 'runs', run_id, 'coder')
  expect(readFileSync(join(place, 'outbox', 'one'), 'utf8')).toBe('one\n')
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: join(place, 'worktree'), encoding: 'utf8' }).trim()
  expect(git('branch', '--show-current')).toBe(`orc/${run_id}/coder`)
  expect(git('status', '--porcelain')).toBe('')
}, 60_000)
