/** Kill -9 of the real service in the middle of a run, again and again: nothing is lost, and nothing finished runs again. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFailed, onTestFinished } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { createDaemon } from '../fakes/daemon.ts'

const ROWS = 6
const WIDTH = 4

function planOf(folder: string): string {
  const agents = Array.from({ length: ROWS * WIDTH }, (_, index) => {
    const needs =
      index < WIDTH ? [] : [`n${index - WIDTH}`, `n${index - WIDTH + (index % WIDTH === 0 ? 1 : -1)}`]
    const work = `echo n${index} >> ${folder}/began.log; sleep 0.2; echo n${index} >> ${folder}/ended.log`
    const made = 'echo It is done. > outbox/summary.md; echo x > outbox/x.txt'
    return `  n${index}: { command: "${work}; ${made}", retries: 0, depends_on: [${needs.join(', ')}] }`
  })
  return `concurrency: 4\nagents:\n${agents.join('\n')}\n`
}

const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])

it('goes on after kill -9 at any point, and runs nothing twice that had ended', {
  timeout: 120_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-runs-crash-'))
  mkdirSync(folder, { recursive: true })
  const daemon = await createDaemon('agents: { Master: {} }')
  onTestFinished(async () => {
    await daemon.close()
    rmSync(folder, { recursive: true, force: true })
  })
  await daemon.start()
  const client = () => createClient({ url: daemon.url, token: daemon.operatorToken() })
  const { run_id } = await client().startRun({ plan: planOf(folder), folder })
  // At other points each time; where it fails, the pauses are told.
  const pauses = Array.from({ length: 6 }, () => Math.floor(Math.random() * 500))
  onTestFailed(() => console.error(`killed after ${pauses.join(', ')} ms`))
  for (const pause of pauses) {
    await new Promise((resolve) => setTimeout(resolve, pause))
    await daemon.kill()
    await daemon.start()
  }
  let outcome = ''
  for await (const event of client().runEvents(run_id)) if (event.type === 'end') outcome = event.outcome
  expect(outcome).toBe('completed')
  const ended = linesOf(join(folder, 'ended.log'))
  expect(new Set(ended).size).toBe(ROWS * WIDTH)
  expect(ended.length).toBe(ROWS * WIDTH)
  expect(linesOf(join(folder, 'began.log')).length).toBe(ROWS * WIDTH)
})
