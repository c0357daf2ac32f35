import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineCommand, defineConfig, type Orchub, startOrchub } from '../../src/index.ts'

/** All it takes to add a command (S0.16, S1.23). */
const raiseFlag = defineCommand({
  type: 'raise_flag',
  summary: 'Raise a flag',
  fields: z.object({ colour: z.string(), height: z.coerce.number().default(1) }),
  body: 'colour',
  example: 'orc raise-flag --height 2 red',
})
const commands = [
  {
    definition: raiseFlag,
    handler: {
      handle: (_: unknown, { colour, height }: Record<string, unknown>) => ({
        status: 'ok' as const,
        result: `${colour} at ${height}`,
      }),
    },
  },
]

describe('a command that an application adds', () => {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-added-'))
  let orchub: Orchub
  let token: string
  beforeAll(async () => {
    const config = defineConfig({ agents: { Worker: {} } }, { env: { ORC_HOME: folder } })
    orchub = await startOrchub({ config, port: 0, commands })
    token = (await orchub.engine.tokens.mint('Worker')).token
  })
  afterAll(async () => {
    await orchub.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function post(type: string, body: string): Promise<unknown> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': type }
    return await (await fetch(`${orchub.url}/api/v1/commands`, { method: 'POST', headers, body })).json()
  }
  const done = { status: 'ok', result: 'red at 2' }

  it.each([
    ['XML modern', '<orc-command name="raise_flag" height="2">red</orc-command>'],
    ['XML legacy', '<orc-command type="raise_flag"><height>2</height><colour>red</colour></orc-command>'],
    ['JSON', '{"orc_command": {"type": "raise_flag", "colour": "red", "height": 2}}'],
  ])('works in %s at once (S0.17)', async (_, text) => {
    expect(await post('text/plain', `Up it goes.\n${text}\nDone.`)).toEqual([done])
  })

  it('works over HTTP at once', async () => {
    expect(await post('application/json', '{"type": "RAISE_FLAG", "Colour": "red", "height": 2}')).toEqual(
      done,
    )
    expect(await post('application/json', '{"type": "raise_flag"}')).toMatchObject({
      code: 'INVALID_COMMAND',
    })
  })

  it('works in the shell at once', async () => {
    const main = join(import.meta.dirname, '../../src/cli/main.ts')
    const env = { ...process.env, ORC_HOME: folder, ORC_TOKEN: token }
    const words = [main, 'raise-flag', '--height', '2', 'red', '--json']
    const { stdout } = await promisify(execFile)(process.execPath, words, { env })
    expect(JSON.parse(stdout)).toEqual(done)
  })

  it('is in the prompt and in the OpenAPI document', async () => {
    expect(orchub.engine.prompt('Worker')).toContain(
      'raise_flag: Raise a flag. Parameters: colour (the body)',
    )
    const headers = { authorization: `Bearer ${token}` }
    const document = await (await fetch(`${orchub.url}/openapi.json`, { headers })).text()
    expect(document).toContain('raise_flag')
  })
})
