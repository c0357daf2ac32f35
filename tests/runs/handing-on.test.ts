/** Only validated outputs are handed on, even if the outbox changes in the meantime (C22). */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import { MADE, openRunTeam, type RunTeam } from './harness.ts'

let team: RunTeam
afterEach(() => team.close())

/** `last` waits for what `maker` made, and for `gate`, which waits for the test. */
async function runTo(making: string): Promise<string> {
  team = await openRunTeam()
  const id = await team.start(`
concurrency: 2
agents:
  maker: { command: "${MADE} 1 > outbox/out.txt; ${making}" }
  gate: { command: "while [ ! -e ${team.plans}/open ]; do sleep 0.02; done; ${MADE} 1 > outbox/x", outputs: [x] }
  last:
    command: "cp -r inbox/maker outbox/taken; ${MADE} 1 > outbox/y"
    retries: 0
    depends_on: [maker, { agent: gate, outputs: [x] }]
`)
  await team.becomes(id, 'maker', 'completed')
  return id
}

it('hands files on with their modes, and read-only', async () => {
  const id = await runTo("mkdir outbox/bin; printf '#!/bin/sh' > outbox/bin/tool; chmod 744 outbox/bin/tool")
  team.write('open', '')
  const { run } = await team.ended(id)
  expect(run.nodes.get('last')).toMatchObject({ state: 'completed' })
  for (const place of [team.pathIn(id, 'last', 'inbox', 'maker'), team.pathIn(id, '_outputs', 'maker')]) {
    expect(readFileSync(`${place}/out.txt`, 'utf8')).toBe('1\n')
    expect(statSync(`${place}/bin/tool`).mode & 0o111).not.toBe(0)
    expect(statSync(`${place}/out.txt`).mode & 0o111).toBe(0)
  }
  expect(statSync(team.pathIn(id, 'last', 'inbox', 'maker', 'out.txt')).mode & 0o222).toBe(0)
  expect(statSync(team.pathIn(id, '_outputs', 'maker', 'bin', 'tool')).mode & 0o777).toBe(0o744)
})

it.each([
  ['changed', 'out.txt', 'maker/outbox/out.txt was changed after it was validated'],
  ['added', 'more.txt', 'maker/outbox/more.txt was added after maker was validated'],
])('refuses an output that was %s after the validation', async (_, file, expected) => {
  const id = await runTo('true')
  writeFileSync(team.pathIn(id, 'maker', 'outbox', file), 'other\n')
  team.write('open', '')
  const { run } = await team.ended(id)
  const { state, reason } = run.nodes.get('last')!
  expect({ state, reason }).toMatchObject({ state: 'failed', reason: expect.stringContaining(expected) })
})

it('refuses an output that was changed while the service was down', async () => {
  const id = await runTo('true')
  team = await team.reopened()
  writeFileSync(team.pathIn(id, 'maker', 'outbox', 'out.txt'), 'changed\n')
  team.write('open', '')
  const { run } = await team.ended(id)
  expect(run.nodes.get('last')!.reason).toContain('was changed after it was validated')
})

it('stores the hashes of inputs, and not their content', async () => {
  team = await openRunTeam()
  team.write('secret.txt', 'a secret of the person')
  await team.run(`
agents:
  one: { command: "${MADE} 1 > outbox/out.txt", inputs: [{ path: secret.txt, to: inbox/secret.txt }] }
`)
  const [row] = await team.store.all<{ inbox: string }>('SELECT inbox FROM run_agents')
  const { inputs } = JSON.parse(row!.inbox)
  expect(inputs.map((input: object) => Object.keys(input).sort())).toEqual([
    ['path', 'sha256', 'size'],
    ['path', 'sha256', 'size'],
  ])
})
