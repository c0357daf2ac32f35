import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { collectOutbox, findShortcomings } from '../../src/workspaces/outbox.ts'
import { type StatusUpdate, updateStatus, watchStatus } from '../../src/workspaces/status.ts'
import { expectOk, makeWorkspace } from './harness.ts'

async function watching(options: { retryDelays?: number[]; from?: 'running' } = {}) {
  const workspace = await makeWorkspace()
  const updates: StatusUpdate[] = []
  let told: (() => void) | undefined
  const watch = watchStatus({
    workspace,
    onUpdate(item) {
      updates.push(item)
      told?.()
    },
    ...options,
  })
  onTestFinished(() => watch.close())
  /** Waits for an event, not for a time. */
  async function until(found: (updates: readonly StatusUpdate[]) => boolean) {
    while (!found(updates)) {
      await new Promise<void>((resolve) => {
        told = resolve
      })
    }
  }
  const file = join(workspace, 'status.json')
  if (options.from === undefined) watch.look()
  return { workspace, file, updates, watch, until, texts: () => updates.map(textOf) }
}

function textOf(update: StatusUpdate): string {
  if (update.kind === 'status') return update.status.state
  if (update.kind === 'refused') return update.message
  return `${update.kind} ${update.problem.code}`
}

describe('watching status.json', () => {
  it('reports each state, written in place or renamed into place', async () => {
    const { file, until, texts } = await watching()
    writeFileSync(file, '{"state": "running"}')
    await until((all) => all.length >= 1)
    writeFileSync(`${file}.tmp`, '{"state": "running", "progress": {"steps_completed": 1}}')
    renameSync(`${file}.tmp`, file)
    await until((all) => all.length >= 2)
    rmSync(file)
    writeFileSync(file, '\ufeff{"state": "completed"}\r\n')
    await until((all) => all.length >= 3)
    expect(texts()).toEqual(['running', 'running', 'completed'])
  })

  it('does not report the initial file of a new attempt', async () => {
    const workspace = await makeWorkspace()
    const updates: StatusUpdate[] = []
    const watch = watchStatus({ workspace, onUpdate: (item) => updates.push(item) })
    onTestFinished(() => watch.close())
    watch.look()
    expect(updates).toEqual([])
    writeFileSync(join(workspace, 'status.json'), '{"state": "running"}')
    watch.look()
    expect(updates.map(textOf)).toEqual(['running'])
  })

  it('fills in the states that a fast agent skipped', async () => {
    const { workspace, until, texts } = await watching()
    expectOk(updateStatus(workspace, { state: 'running' }))
    expectOk(updateStatus(workspace, { state: 'failed' }))
    await until((all) => all.length >= 1)
    expect(texts()).toEqual(['failed'])
  })

  it('waits silently for the rest of a file that is written in pieces', async () => {
    const { file, until, texts } = await watching()
    const text = `\ufeff${JSON.stringify({ state: 'completed', note: 'ä'.repeat(50) }, null, 2)}\r\n`
    writeFileSync(file, '')
    for (const byte of Buffer.from(text)) {
      appendFileSync(file, Buffer.of(byte))
      await setTimeout(1)
    }
    await until((all) => all.length >= 1)
    expect(texts()).toEqual(['completed'])
  })

  it('reads a file of ten megabytes that comes in pieces', async () => {
    const { file, until, texts } = await watching()
    writeFileSync(file, '{"state": "running", "log": "')
    for (let piece = 0; piece < 150; piece++) appendFileSync(file, 'x'.repeat(65_536))
    appendFileSync(file, '"}')
    await until((all) => all.length >= 1)
    expect(texts()).toEqual(['running'])
  })

  it('reports an unreadable file once, and continues when it is fixed', async () => {
    const { file, until, texts } = await watching({ retryDelays: [5, 5, 5] })
    writeFileSync(file, '{"state": "runn')
    await until((all) => all.length >= 1)
    appendFileSync(file, 'x')
    await setTimeout(50)
    writeFileSync(file, '{"state": "dancing"}')
    await until((all) => all.length >= 2)
    rmSync(file)
    await until((all) => all.length >= 3)
    writeFileSync(file, '{"state": "running"}')
    await until((all) => all.length >= 4)
    expect(texts()).toEqual(['unreadable torn', 'unreadable invalid', 'unreadable missing', 'running'])
  })

  it('reports a file that is over the limit', async () => {
    const { file, until, texts } = await watching({ retryDelays: [5] })
    writeFileSync(file, `{"state": "completed", "log": "${'x'.repeat(11_000_000)}"}`)
    await until((all) => all.length >= 1)
    expect(texts()).toEqual(['unreadable too_large'])
  })

  it('refuses an invalid next state, and keeps the current one (S4.3)', async () => {
    const { file, watch, until, texts } = await watching()
    writeFileSync(file, '{"state": "completed"}')
    await until((all) => all.length >= 1)
    writeFileSync(file, '{"state": "running"}')
    await until((all) => all.length >= 2)
    expect(watch.state()).toBe('completed')
    expect(texts()).toEqual(['completed', 'status.json went from completed to running, which is not allowed'])
  })

  it('continues from the state before a restart', async () => {
    const { until, texts } = await watching({ from: 'running' })
    await until((all) => all.length >= 1)
    expect(texts()).toEqual(['status.json went from running to pending, which is not allowed'])
  })

  it('reports that the folder is gone, and stops', async () => {
    const { workspace, until, texts, watch } = await watching()
    rmSync(workspace, { recursive: true })
    await until((all) => all.some(({ kind }) => kind === 'lost'))
    watch.look()
    expect(texts().at(-1)).toBe('lost missing')
  })

  it('reads on request, and not after close', async () => {
    const { file, watch, texts } = await watching()
    writeFileSync(file, '{"state": "running"}')
    watch.look()
    expect(texts()).toEqual(['running'])
    watch.close()
    writeFileSync(file, '{"state": "completed"}')
    watch.look()
    await setTimeout(20)
    expect(texts()).toHaveLength(1)
  })

  it('needs nothing of an agent but files: a shell script is one (S4.1 to S4.7)', async () => {
    const { workspace, until, texts } = await watching()
    const script = `
      set -eu
      put() { printf '{"state": "%s"}' "$1" > status.json.tmp; mv status.json.tmp status.json; }
      put running
      tr a-z A-Z < SKILL.md > outbox/loud.txt
      echo 'Wrote the skill in capitals.' > outbox/summary.md
      put completed`
    execFileSync('/bin/sh', ['-c', script], { cwd: workspace })
    await until((all) => all.some((item) => item.kind === 'status' && item.status.state === 'completed'))
    expect(texts().at(-1)).toMatch(/completed$/)
    const outbox = expectOk(await collectOutbox(workspace))
    expect(findShortcomings(outbox, { summaryOver: 20 })).toEqual([])
  })

  it('sees the end of an agent that writes without pause', async () => {
    const { workspace, until, texts } = await watching()
    const script = `
      const { writeFileSync } = require('node:fs')
      for (let step = 0; step < 1000; step++) {
        writeFileSync('status.json', JSON.stringify({ state: 'running', progress: { steps_completed: step } }))
      }
      writeFileSync('status.json', JSON.stringify({ state: 'completed' }))`
    const agent = spawn(process.execPath, ['-e', script], { cwd: workspace })
    await once(agent, 'exit')
    await until((all) => all.some((item) => item.kind === 'status' && item.status.state === 'completed'))
    expect(texts().filter((text) => /refused|unreadable/.test(text))).toEqual([])
  })
})
