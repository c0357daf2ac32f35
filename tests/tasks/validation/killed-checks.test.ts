import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { readProcesses } from '../../../src/runtimes/processes.ts'
import { createDaemon } from '../../fakes/daemon.ts'

/** The first run hangs, with a daemon that left its group; the second passes. */
const TEAM = `agents:
  Worker: {}
tasks:
  checks:
    twice:
      command: echo run >> ran; if test -e began; then exit 0; fi; touch began; (setsid sleep 65 &); sleep 65
`

it('runs a check again after kill -9 of the service, counts it once, and leaves nothing of the first run (C22)', async () => {
  const daemon = await createDaemon(TEAM)
  onTestFinished(() => daemon.close())
  await daemon.start()
  const say = async (fields: Record<string, unknown>) =>
    (await daemon.call('POST', '/api/v1/commands', daemon.operatorToken(), fields)).body
  await say({ type: 'delegate', to: 'Worker', task: 'Do it', checks: ['twice'] })
  await say({ type: 'report', from: 'Worker', status: 'completed', result: 'Done' })
  await vi.waitFor(() => expect(existsSync(join(daemon.folder, 'began'))).toBe(true), 10_000)
  await daemon.kill()
  expect((await sleepers()).length).toBeGreaterThan(0)

  await daemon.start()
  const shown = () => daemon.call('GET', '/api/v1/tasks/task_1', daemon.operatorToken())
  await vi.waitFor(async () => expect((await shown()).body).toMatchObject({ state: 'completed' }), 15_000)
  const { evidence } = (await shown()).body as { evidence: { step: string; outcome: string }[] }
  expect(evidence.filter(({ step }) => step === 'checks')).toMatchObject([{ outcome: 'passed', claim: 1 }])
  expect(readFileSync(join(daemon.folder, 'ran'), 'utf8')).toBe('run\nrun\n')
  expect(await sleepers()).toEqual([])

  async function sleepers() {
    const { createHash } = await import('node:crypto')
    const state = join(daemon.folder, '.orc')
    const prefix = `check-${createHash('sha256').update(state).digest('hex').slice(0, 12)}-`
    return (await readProcesses()).filter(({ mark, isZombie }) => !isZombie && mark?.startsWith(prefix))
  }
}, 60_000)
