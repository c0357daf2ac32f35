/** Processes that an attempt leaves outside of its process group, and the attempt after it. */
import { existsSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { HAS_MARKS, readProcesses } from '../../src/runtimes/processes.ts'
import { MADE, openRunTeam, type RunTeam, statesOf } from './harness.ts'

let team: RunTeam
afterEach(() => team.close())

/**
 * The first attempt leaves a process in a session of its own that takes its time to end; the next one says whether that is
 * still there.
 */
const script = (endsWithin: number) => `#!/bin/sh
if test -e workspace/left; then
  grep -qs 'State:.[RSDT]' /proc/$(cat workspace/left)/status && echo overlap > outbox/overlap
  ${MADE} x > outbox/x
  exit 0
fi
setsid sh -c 'trap "sleep ${endsWithin}; exit" TERM; echo $$ > workspace/new; mv workspace/new workspace/left; while :; do sleep 0.1; done' </dev/null >/dev/null 2>&1 &
while ! test -e workspace/left; do sleep 0.01; done
eval "$1"
`

async function start(agents: Record<string, { ending: string; more: string }>, endsWithin = 1) {
  team = await openRunTeam()
  const path = team.write('agent.sh', script(endsWithin), 0o755)
  const lines = Object.entries(agents).map(
    ([name, { ending, more }]) => `  ${name}: { command: "${path} '${ending}'", ${more} }`,
  )
  const id = await team.start(`agents:\n${lines.join('\n')}\n`)
  const isLeft = (name: string) => existsSync(team.pathIn(id, name, 'workspace', 'left'))
  await team.until(async () => Object.keys(agents).every(isLeft))
  return id
}

const hasOverlapped = (id: string, name: string) => existsSync(team.pathIn(id, name, 'outbox', 'overlap'))

const isAlive = async (process: number) =>
  (await readProcesses()).some(({ pid, isZombie }) => pid === process && !isZombie)

describe.runIf(HAS_MARKS)('a process that an attempt left in another session', () => {
  it('cannot write into the work of the next attempt', async () => {
    team = await openRunTeam()
    const id = await team.start(`
agents:
  a:
    retries: 1
    command: |
      if ! test -e workspace/tried; then touch workspace/tried
        (setsid sh -c 'while ! test -e workspace/good; do sleep 0.02; done; echo STALE > outbox/data.txt' </dev/null >/dev/null 2>&1 &); exit 1; fi
      echo GOOD > outbox/data.txt; touch workspace/good; ${MADE}; sleep 1
`)
    expect(statesOf(await team.ended(id))).toEqual({ a: 'completed' })
    expect(team.file(id, '_outputs', 'a', 'data.txt')).toBe('GOOD\n')
  })

  it('is killed before the next attempt starts, however the previous one ended', async () => {
    const id = await start({
      failed: { ending: 'exit 1', more: 'retries: 1' },
      killed: { ending: 'kill -9 $$', more: 'retries: 1' },
      returned: { ending: 'exit 0', more: 'retries: 1' },
      late: { ending: 'sleep 60', more: 'retries: 1, timeout: 30s' },
    })
    await team.until(async () => (await team.node(id, 'late')).attempts[0]?.outcome === 'failed', 1000)
    const { nodes } = (await team.ended(id)).run
    for (const name of ['failed', 'killed', 'returned', 'late']) {
      expect(nodes.get(name), name).toMatchObject({ state: 'completed', attempt: 2 })
      expect(hasOverlapped(id, name), name).toBe(false)
    }
  })

  it('is killed as soon as the attempt fails', async () => {
    const id = await start({ a: { ending: 'exit 1', more: 'retries: 0, on_error: escalate' } })
    const left = Number(team.file(id, 'a', 'workspace', 'left'))
    await team.becomes(id, 'a', 'asking')
    expect(await isAlive(left)).toBe(false)
  })

  it('is killed before a resumed run starts the agent again', async () => {
    const id = await start({ a: { ending: 'exit 0', more: 'retries: 0' } })
    await team.ended(id)
    await team.resume(id)
    expect(statesOf(await team.ended(id))).toEqual({ a: 'completed' })
    expect(hasOverlapped(id, 'a')).toBe(false)
  })

  it('does not block a cancellation, and the attempt that waited for its end never starts', async () => {
    const id = await start({ a: { ending: 'exit 0', more: 'retries: 1' } }, 2)
    const left = Number(team.file(id, 'a', 'workspace', 'left'))
    await team.until(async () => (await team.node(id, 'a')).attempt === 2, 50)
    await team.runs.cancel(id, 'operator', 'enough')
    expect((await team.ended(id)).run.head.outcome).toBe('cancelled')
    await team.until(async () => !(await isAlive(left)))
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(existsSync(team.pathIn(id, '_logs', 'a.2.log'))).toBe(false)
  })
})
