import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { endProcesses, findProcesses, processStartedAt, readProcesses } from '../../src/runtimes/processes.ts'
import { isRunning } from './acp/harness.ts'

function run(script: string, env: Record<string, string> = {}): ChildProcess {
  const child = spawn('sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH!, ...env },
  })
  onTestFinished(() => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // The process has ended, as expected.
    }
  })
  return child
}

/** The first number it prints. */
async function printedBy(child: ChildProcess): Promise<number> {
  const [text] = await once(child.stdout!, 'data')
  return Number(String(text).trim())
}

async function ledBy({ pid }: ChildProcess, more: { startedAt?: string; ownsGroupAfterExit?: boolean } = {}) {
  const startedAt = (await processStartedAt(pid!)) ?? 'gone'
  return { mark: randomUUID(), leader: { pid: pid!, startedAt, ...more } }
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('ending all processes of an agent (C15)', () => {
  it.runIf(existsSync('/proc/self/environ'))('ends the processes with the mark, and no others', async () => {
    const mark = randomUUID()
    const mine = run('echo 1; sleep 300', { ORC_SESSION: mark })
    const others = run('echo 1; sleep 300', { ORC_SESSION: `${mark}-not` })
    await Promise.all([mine, others].map(printedBy))
    await endProcesses({ mark })
    expect(isRunning(mine.pid!)).toBe(false)
    expect(isRunning(others.pid!)).toBe(true)
  })

  it('ends a child that left the group and dropped the mark, by descent', async () => {
    const child = run('setsid env -i sleep 300 & echo $!; wait')
    const grandchild = await printedBy(child)
    await endProcesses(await ledBy(child))
    expect([child.pid!, grandchild].map(isRunning)).toEqual([false, false])
  })

  it('ends such a child even if its parent is gone by the time it is killed', async () => {
    const child = run(`setsid env -i sh -c "trap '' TERM; while :; do sleep 1; done" & echo $!; wait`)
    const grandchild = await printedBy(child)
    await sleep(100)
    await endProcesses(await ledBy(child), 300)
    expect([child.pid!, grandchild].map(isRunning)).toEqual([false, false])
  })

  it('ends the rest of a group whose leader ended just now', async () => {
    const child = run('sleep 300 & echo $!')
    const left = await printedBy(child)
    if (child.exitCode === null) await once(child, 'exit')
    await endProcesses(await ledBy(child))
    expect(isRunning(left)).toBe(true)
    await endProcesses(await ledBy(child, { ownsGroupAfterExit: true }))
    expect(isRunning(left)).toBe(false)
  })

  it('does not touch a process that has the pid of an earlier one', async () => {
    const child = run('sleep 300 & echo $!; wait')
    const inGroup = await printedBy(child)
    await endProcesses(await ledBy(child, { startedAt: 'long ago', ownsGroupAfterExit: true }))
    expect([child.pid!, inGroup].map(isRunning)).toEqual([true, true])
  })

  it('sends SIGTERM first, so that a program can clean up', async () => {
    const child = run("trap 'exit 5' TERM; echo 1; sleep 300 & wait")
    await printedBy(child)
    const exit = once(child, 'exit')
    await endProcesses(await ledBy(child), 5000)
    expect(await exit).toEqual([5, null])
  })

  it('kills a process that ignores SIGTERM, stopped or not', async () => {
    const deaf = run("trap '' TERM; echo 1; while :; do sleep 1; done")
    await printedBy(deaf)
    process.kill(deaf.pid!, 'SIGSTOP')
    await endProcesses(await ledBy(deaf), 100)
    expect(isRunning(deaf.pid!)).toBe(false)
  })

  it('continues a stopped process, so that it can end by itself', async () => {
    const child = run("trap 'exit 5' TERM; echo 1; while :; do sleep 0.05; done")
    await printedBy(child)
    process.kill(child.pid!, 'SIGSTOP')
    const exit = once(child, 'exit')
    await endProcesses(await ledBy(child), 5000)
    expect(await exit).toEqual([5, null])
  })

  it('ends processes started while others end', async () => {
    const child = run("trap 'sleep 300 & echo $!; exit' TERM; echo 1; while :; do sleep 0.05; done")
    await printedBy(child)
    const started = printedBy(child)
    await endProcesses(await ledBy(child), 2000)
    expect(isRunning(await started)).toBe(false)
  })

  it('names the processes that did not end', async () => {
    const child = run('echo 1; exec sleep 300')
    await printedBy(child)
    const agent = await ledBy(child)
    const kill = vi.spyOn(process, 'kill').mockImplementation(() => {
      throw new Error('it is not ours to signal')
    })
    vi.spyOn(performance, 'now').mockImplementation(hurried(performance.now()))
    await expect(endProcesses(agent, 10)).rejects.toMatchObject({
      code: 'RUNTIME_FAILED',
      hint: expect.stringContaining(`ps -p ${child.pid}`),
      data: { pids: [child.pid] },
    })
    expect(kill).toHaveBeenCalledWith(child.pid, 'SIGKILL')
  })

  it('is done at once when there is nothing to end', { timeout: 10_000 }, async () => {
    await expect(endProcesses({ mark: randomUUID() }, 60_000)).resolves.toBeUndefined()
  })
})

/** A clock that advances by a second with every reading. */
function hurried(from: number) {
  let looks = 0
  return () => from + 1000 * looks++
}

describe('the table of processes', () => {
  it('is read once for all callers in the same tick, and again for the next', async () => {
    const [one, other] = [readProcesses(), readProcesses()]
    expect(one).toBe(other)
    await one
    expect(readProcesses()).not.toBe(one)
  })

  it('contains a process that existed when it was requested', async () => {
    const child = run('echo 1; sleep 300')
    await printedBy(child)
    expect(await findProcesses(await ledBy(child))).toContainEqual(
      expect.objectContaining({ pid: child.pid, group: child.pid, parent: process.pid }),
    )
  })

  it('is available without /proc, except for the marks', async () => {
    const child = run('echo 1; sleep 300', { ORC_SESSION: 'x' })
    await printedBy(child)
    vi.doMock('node:fs', async (original) => ({ ...(await original<object>()), existsSync: () => false }))
    vi.resetModules()
    onTestFinished(() => void vi.doUnmock('node:fs'))
    const { readProcesses: readByPs } = await import('../../src/runtimes/processes.ts')
    const found = (await readByPs()).find(({ pid }) => pid === child.pid)
    expect(found).toMatchObject({ parent: process.pid, group: child.pid, isZombie: false })
    expect(found!.startedAt).toMatch(/\d{4}$/)
    expect(found).not.toHaveProperty('mark')
  })

  it('distinguishes processes by their start time', async () => {
    expect(await processStartedAt(process.pid)).toMatch(/\d+/)
    expect(await processStartedAt(2 ** 22 + 1)).toBeUndefined()
  })
})
