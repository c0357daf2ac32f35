import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { endEverything, listByPs } from '../../src/runtimes/processes.ts'
import { isRunning } from './acp/harness.ts'

function run(script: string, env: Record<string, string> = {}): ChildProcess {
  const child = spawn('sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH!, ...env },
  })
  onTestFinished(() => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // It has ended, as it should.
    }
  })
  return child
}

/** The number it prints first. */
async function printedBy(child: ChildProcess): Promise<number> {
  const [text] = await once(child.stdout!, 'data')
  return Number(String(text).trim())
}

describe('ending everything of an agent (C15)', () => {
  it('ends what bears the mark, and no one else', async () => {
    const mark = randomUUID()
    const mine = run('sleep 300', { ORC_SESSION: mark })
    const others = run('sleep 300', { ORC_SESSION: `${mark}-not` })
    await sleep(50)
    expect(await endEverything(mark, undefined, 1000)).toEqual([])
    expect(isRunning(mine.pid!)).toBe(false)
    expect(isRunning(others.pid!)).toBe(true)
  })

  it('ends a child that left the group and dropped the mark, by descent', async () => {
    const child = run('setsid env -i sleep 300 & echo $!; wait')
    const grandchild = await printedBy(child)
    expect(await endEverything(randomUUID(), child.pid, 1000)).toEqual([])
    expect([child.pid!, grandchild].map(isRunning)).toEqual([false, false])
  })

  it('ends the rest of a group whose leader is gone', async () => {
    const child = run('sleep 300 & echo $!')
    const left = await printedBy(child)
    if (child.exitCode === null) await once(child, 'exit')
    expect(isRunning(left)).toBe(true)
    await endEverything(randomUUID(), child.pid, 1000)
    expect(isRunning(left)).toBe(false)
  })

  it('asks first, so that a program can put its things in order', async () => {
    const child = run("trap 'exit 5' TERM; echo 1; sleep 300 & wait")
    await printedBy(child)
    const exit = once(child, 'exit')
    await endEverything(randomUUID(), child.pid, 5000)
    expect(await exit).toEqual([5, null])
  })

  it('kills what does not listen, stopped or not', async () => {
    const deaf = run("trap '' TERM; echo 1; while :; do sleep 1; done")
    await printedBy(deaf)
    process.kill(deaf.pid!, 'SIGSTOP')
    expect(await endEverything(randomUUID(), deaf.pid, 100)).toEqual([])
    expect(isRunning(deaf.pid!)).toBe(false)
  })

  it('is quick when there is nothing to end', async () => {
    const before = performance.now()
    expect(await endEverything(randomUUID(), undefined, 5000)).toEqual([])
    expect(performance.now() - before).toBeLessThan(3000)
  })

  it('knows groups and descent where there is no /proc', async () => {
    const child = run('sleep 300')
    await sleep(50)
    const entry = (await listByPs()).find(({ pid }) => pid === child.pid)
    expect(entry).toMatchObject({ parent: process.pid, group: child.pid, isMarked: false })
  })
})
