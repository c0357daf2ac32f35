import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTeamFolder, type TeamFolder } from '../../orc.ts'

let team: TeamFolder

beforeEach(() => {
  team = createTeamFolder()
})
afterEach(() => team.close())

describe('orc service serve', () => {
  it('prints its address, is found by other commands, and stops cleanly', async () => {
    const { child, shows, ended } = team.begin('serve --port 0 --json')
    await shows('\n')
    const ran = await team.orc('send-message --from Master --to Worker hi')
    expect(ran.code).toBe(0)
    child.kill('SIGTERM')
    const served = await ended
    expect(served.code).toBe(0)
    expect(served.json()).toMatchObject([
      { url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), pid: child.pid },
    ])
    expect((await team.orc('status')).code).toBe(5)
    expect((await team.orc('audit verify')).out).toContain('1 messages')
  })

  it('reloads rules without a restart, and reports mistakes in them', async () => {
    const { child, shows, ended } = team.begin('serve --port 0')
    await shows('Ctrl-C')
    writeFileSync(team.configFile, 'agents: { Master: {}, Worker: {} }\nrules: { preset: isolated }\n')
    const isBlocked = async () => (await team.orc('send-message --from Master --to Worker hi')).code === 3
    await expect.poll(isBlocked, { timeout: 15_000 }).toBe(true)
    writeFileSync(team.configFile, 'agents: { Master: {}, Worker: {} }\nrules: { preset: chaos }\n')
    const status = async () => (await team.orc('status')).out
    await expect.poll(status, { timeout: 15_000 }).toMatch(/has mistakes[\s\S]*orc\.yaml:2/)
    expect(await isBlocked()).toBe(true)
    child.kill('SIGINT')
    expect((await ended).code).toBe(0)
  })

  it('keeps running when its output has no reader', async () => {
    const { child, ended } = team.begin('serve --port 0')
    child.stdout.destroy()
    child.stderr.destroy()
    const sent = async () => (await team.orc('send-message --from Master --to Worker hi')).code
    await expect.poll(sent, { timeout: 20_000 }).toBe(0)
    expect(await sent()).toBe(0)
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
  })

  it('refuses a second service on the same state, and says which process holds it', async () => {
    await team.start()
    const ran = await team.orc('serve --port 0')
    expect(ran).toMatchObject({ code: 1, err: expect.stringMatching(/STORE_LOCKED/) })
    expect(ran.err).toContain(`process ${process.pid}`)
  })

  it('reports an invalid port', async () => {
    await team.fails('serve --port many', 2, '"many" is not a valid port')
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const ran = await team.orc(`serve --port ${port}`)
    server.close()
    expect(ran).toMatchObject({ code: 1, err: expect.stringContaining('EADDRINUSE') })
  })

  it('says what to do without an orc.yaml', async () => {
    await team.fails('serve --config missing.yaml', 7, 'agents: { Master: {}, Worker: { parent: Master } }')
  })
})

describe('orc service doctor', () => {
  const states = (out: string) =>
    Object.fromEntries(
      [...out.matchAll(/^(ok|warn|fail) +(\w+)/gm)].map(([, state, check]) => [check, state]),
    )

  it('finds no problem before the first start, and changes nothing', async () => {
    const ran = await team.orc('doctor')
    expect(ran.code).toBe(0)
    expect(states(ran.out)).toMatchObject({
      node: 'ok',
      config: 'ok',
      state: 'ok',
      token: 'ok',
      service: 'warn',
      store: 'ok',
      disk: 'ok',
    })
    expect(ran.out).toContain('hint: Start it: orc up')
    expect((await team.orc('doctor --json')).json()).toMatchObject([{ ok: true, checks: expect.any(Array) }])
    expect(() => mkdirSync(team.state)).not.toThrow()
  })

  it('asks the running service', async () => {
    await team.start()
    const ran = await team.orc('doctor')
    expect(states(ran.out)).toMatchObject({ service: 'ok', store: 'ok', token: 'ok' })
    chmodSync(join(team.state, 'operator.token'), 0o644)
    chmodSync(team.state, 0o755)
    const open = await team.orc('doctor')
    expect(open.code).toBe(1)
    expect(states(open.out)).toMatchObject({ token: 'fail', state: 'warn' })
    expect(open.out).toContain('chmod 600')
  })

  it('finds a changed entry in the store, and says what to do', async () => {
    await team.start()
    await team.orc('send-message --from Master --to Worker hi')
    await team.stop()
    const database = new DatabaseSync(join(team.state, 'orc.db'))
    database.exec("UPDATE audit SET text = 'nothing happened' WHERE type = 'message.accepted'")
    database.close()
    const ran = await team.orc('doctor')
    expect(ran.code).toBe(1)
    expect(ran.out).toMatch(/fail {2}store.*does not match its hash\n.*hint: /)
  })

  it('finds a broken configuration', async () => {
    writeFileSync(team.configFile, 'agents: [')
    const ran = await team.orc('doctor')
    expect(ran.code).toBe(1)
    expect(states(ran.out)).toMatchObject({ config: 'fail', store: 'fail' })
  })
})
