/** Parts of runs on real folders, in situations that a whole run seldom reaches. */
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { AppError } from '../../src/base/errors.ts'
import { createAttempts } from '../../src/runs/attempts.ts'
import type { Driver } from '../../src/runs/driver.ts'
import { createRun } from '../../src/runs/run.ts'
import { createRunMessages } from '../../src/runs/run-messages.ts'
import { createReportWriter } from '../../src/runs/write-report.ts'
import { definePlan } from './define-plan.ts'
import { openRunTeam } from './harness.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const clock = {
  now: () => 0,
  after(ms: number, work: () => void) {
    const timer = setTimeout(work, ms / 100)
    return () => clearTimeout(timer)
  },
}

/** A run of one agent, in its own folder. */
function stage(files: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-run-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const notes: string[] = []
  const driver = (run: object) =>
    ({
      id: 'run_1',
      runFolder: folder,
      record: () => ({}),
      note: (_: unknown, text: string) => notes.push(text),
      setWaitingForDisk() {},
      run,
    }) as unknown as Driver
  return { folder, notes, driver }
}

/** Starts an attempt that an earlier service started and never stored. Returns what its worker finds. */
async function beginAnew(meanwhile: (nodes: Map<string, object>) => void = () => {}) {
  const { folder, driver } = stage({
    'one/outbox/half.txt': 'half',
    'one/status.json': '{"state":"running"}',
  })
  const agent = {
    runner: { kind: 'command', command: 'true' },
    instructions: { objective: '' },
    timeoutMs: 1,
  }
  const seen: unknown[] = []
  const worker = {
    find: async () => undefined,
    start() {
      seen.push(existsSync(join(folder, 'one/outbox/half.txt')))
      seen.push(JSON.parse(readFileSync(join(folder, 'one/status.json'), 'utf8')).state)
      return { stop() {}, freeze() {}, close: async () => {} }
    },
  }
  const options = { clock, log, workers: { command: worker }, inform() {} }
  const attempts = createAttempts(options as unknown as Parameters<typeof createAttempts>[0])
  const key = 'run_1/one/start/1'
  const effect = { type: 'start_attempt' as const, key, node: 'one', attempt: 1, before: null }
  const nodes = new Map([['one', { name: 'one', state: 'running', attempt: 1, attempts: [] }]])
  const run = { head: { id: 'run_1' }, graph: { agents: new Map([['one', agent]]) }, nodes }
  const started = attempts.start(driver(run), effect as never, false)
  meanwhile(nodes)
  await started
  await attempts.close('leave')
  return seen
}

it('starts an attempt again that an earlier service started and never stored, without its leftovers', async () => {
  expect(await beginAnew()).toEqual([false, 'pending'])
})

it('does not start an attempt that was cancelled while it was prepared', async () => {
  const seen = await beginAnew((nodes) => nodes.set('one', { ...nodes.get('one'), state: 'cancelled' }))
  expect(seen).toEqual([])
})

it('notes gathered outputs that differ from the validated ones', async () => {
  const { folder, notes, driver } = stage({
    'one/outbox/same.txt': 'same',
    'one/outbox/changed.txt': 'after',
    'one/outbox/new.txt': 'new',
  })
  const output = (name: string, text: string) => ({
    path: `outbox/${name}`,
    bytes: text.length,
    sha256: hash('sha256', text),
  })
  const outputs = [output('same.txt', 'same'), output('changed.txt', 'before'), output('gone.txt', '')]
  const run = createRun({ id: 'run_1', plan: definePlan({ agents: { one: { command: 'true' } } }), now: 0 })
  const result = { attempt: 1, inputsHash: '', outputsHash: 'validated', outputs, summary: '' }
  run.nodes.set('one', { ...run.nodes.get('one')!, state: 'completed', result })
  const text = '_outputs/one differs from the validated outputs: changed.txt, gone.txt, new.txt'
  const written = createReportWriter(clock)(driver(run), 0, new AbortController().signal)
  expect(await written).toEqual({ one: text })
  expect(notes).toEqual([text])
  expect(readFileSync(join(folder, '_outputs/one/same.txt'), 'utf8')).toBe('same')
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain(text)
  expect(existsSync(join(folder, 'report.md'))).toBe(true)
})

it('retries the message of an agent while the store fails', async () => {
  const { folder, driver } = stage()
  let tries = 0
  const store = {
    async write() {
      tries++
      if (tries < 3) throw new AppError('STORE_FULL', 'No space left')
    },
  }
  const options = { store, clock, log, mailboxes: {}, cut: (text: string) => text, nameOf: () => undefined }
  const mail = createRunMessages(options as unknown as Parameters<typeof createRunMessages>[0])
  mail.follow(driver({ graph: { plan: { messages: true }, agents: new Map() } }))
  const message = { from: 'a', to: 'b', timestamp: 'now', type: 'update', content: 'x' }
  writeFileSync(join(folder, 'messages', 'a_to_b_001.json'), JSON.stringify(message))
  await expect.poll(() => tries).toBe(3)
  await mail.close()
  expect(tries).toBe(3)
})

it('rewrites SKILL.md if the plan has changed', async () => {
  const team = await openRunTeam()
  onTestFinished(() => team.close())
  const plan = (what: string) =>
    `agents: { one: { instructions: "${what}", command: "echo Did what was asked. > outbox/summary.md; echo x > outbox/x" } }`
  const id = await team.start(plan('Count the words.'))
  await team.ended(id)
  expect(team.file(id, 'one', 'SKILL.md')).toContain('Count the words.')
  await team.resume(id, plan('Count the letters.'))
  await team.ended(id)
  expect(team.file(id, 'one', 'SKILL.md')).toContain('Count the letters.')
  expect(team.file(id, 'one', 'SKILL.md')).not.toContain('Count the words.')
})
