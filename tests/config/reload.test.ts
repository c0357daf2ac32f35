import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Orchub, readTeam, startOrchub } from '../../src/main.ts'

const TEAM = 'agents: { Master: {}, Worker: { parent: Master } }\n'

let folder: string
let file: string
let orchub: Orchub

async function start(): Promise<Orchub> {
  const loaded = readTeam(file)
  if (!loaded.ok) throw new Error('the configuration is wrong')
  return await startOrchub({ config: loaded.value.config, port: 0, watch: true })
}
const send = () =>
  orchub.engine.handle(
    { kind: 'agent', agent: 'Master' },
    { type: 'send_message', fields: { to: 'Worker', content: 'x' } },
  )

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'orchub-main-'))
  file = join(folder, 'orc.yaml')
  writeFileSync(file, TEAM)
  orchub = await start()
})
afterEach(async () => {
  await orchub.close()
  rmSync(folder, { recursive: true, force: true })
})

describe('the configuration of a running service', () => {
  it('reloads when the file changes', async () => {
    expect(await send()).toMatchObject({ status: 'delivered' })
    writeFileSync(file, `${TEAM}rules: { preset: isolated }\n`)
    await vi.waitFor(async () => expect(await send()).toMatchObject({ status: 'blocked' }), 5000)
  })

  it('reloads when an editor replaces the file', async () => {
    writeFileSync(`${file}.swp`, `${TEAM}rules: { preset: isolated }\n`)
    renameSync(`${file}.swp`, file)
    await vi.waitFor(async () => expect(await send()).toMatchObject({ status: 'blocked' }), 5000)
  })

  it('stays in force while the file has mistakes, reports them with line numbers, and recovers', async () => {
    writeFileSync(file, `${TEAM}rules:\n  preset: ring\n`)
    await vi.waitFor(() => expect(orchub.configStatus().problem).toContain('orc.yaml:3'), 5000)
    expect(await send()).toMatchObject({ status: 'delivered' })
    writeFileSync(file, '\0\0{{{{ : nonsense')
    await vi.waitFor(() => expect(orchub.configStatus().problem).not.toContain('orc.yaml:3'), 5000)
    expect(await send()).toMatchObject({ status: 'delivered' })
    writeFileSync(file, `${TEAM}rules: { preset: isolated }\n`)
    await vi.waitFor(() => expect(orchub.configStatus().problem).toBeUndefined(), 5000)
    expect(await send()).toMatchObject({ status: 'blocked' })
  })

  it('includes problems that runtimes find, with line numbers', () => {
    writeFileSync(
      file,
      'agents:\n  Master:\n    runtime: scripted\n    with:\n      script:\n        - say: 5\n',
    )
    expect(readTeam(file)).toMatchObject({ ok: false, error: [{ line: 6 }, { line: 6 }] })
  })
})

describe('the state folder', () => {
  it('is readable by its owner only and contains token, address and witness', async () => {
    await send()
    const at = (name: string) => join(folder, '.orc', name)
    expect(statSync(join(folder, '.orc')).mode & 0o777).toBe(0o700)
    for (const name of ['operator.token', 'orc.db']) expect(statSync(at(name)).mode & 0o777).toBe(0o600)
    expect(JSON.parse(readFileSync(at('service.json'), 'utf8'))).toEqual({
      url: orchub.url,
      pid: process.pid,
      commands: expect.objectContaining({ send_message: expect.anything() }),
    })
    await orchub.close()
    const { seq } = JSON.parse(readFileSync(at('audit.witness'), 'utf8')) as { seq: number }
    expect(seq).toBeGreaterThan(0)
    expect(() => readFileSync(at('service.json'))).toThrow('ENOENT')
  })

  it('keeps the operator token and all messages across restarts', async () => {
    const token = orchub.operatorToken
    await send()
    await orchub.close()
    orchub = await start()
    expect(orchub.operatorToken).toBe(token)
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${orchub.url}/api/v1/mailbox?agent=Worker&filter=all`, { headers })
    expect(await answer.json()).toMatchObject({ messages: [{ content: 'x' }] })
  })

  it('gets a new operator token after the old one is revoked', async () => {
    const token = orchub.operatorToken
    expect(await orchub.engine.tokens.revoke('operator')).toBe(1)
    await orchub.close()
    orchub = await start()
    expect(orchub.operatorToken).not.toBe(token)
    expect(orchub.engine.tokens.authenticate(orchub.operatorToken)).toMatchObject({ kind: 'operator' })
    expect(orchub.engine.tokens.authenticate(token)).toBeUndefined()
  })

  it('admits one daemon and tells a second one who holds it', async () => {
    const { config } = orchub.engine.team()
    await expect(startOrchub({ config, port: 0 })).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining(`process ${process.pid}`),
    })
  })
})
