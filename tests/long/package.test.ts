import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const project = join(import.meta.dirname, '../..')
const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))

/** Uses the machine's node and npm like a user, not those of this clone. */
const PATH = process.env
  .PATH!.split(delimiter)
  .filter((folder) => !folder.endsWith('node_modules/.bin'))
  .join(delimiter)

const execute = promisify(execFile)
const run = (cwd: string, command: string, ...args: string[]) =>
  execute(command, args, { cwd, env: { ...process.env, PATH } })

/** Makes a Node that is too old for the program (this one with another version) and returns its folder. */
function makeOldNode(folder: string): string {
  const place = join(folder, 'old-node')
  mkdirSync(place)
  const versions = "{ value: { ...process.versions, node: '20.0.0' } }"
  writeFileSync(join(place, 'old.mjs'), `Object.defineProperty(process, 'versions', ${versions})\n`)
  const script = `#!/bin/sh\nexec '${process.execPath}' --import '${join(place, 'old.mjs')}' "$@"\n`
  writeFileSync(join(place, 'node'), script, { mode: 0o755 })
  return place
}

describe('the packed tarball, installed into an empty folder', () => {
  let folder: string
  let packed: string[]

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'orchub-package-'))
    const packs = await run(project, 'npm', 'pack', '--json', '--pack-destination', folder)
    // The JSON follows the output of the build.
    const [pack] = JSON.parse(packs.stdout.slice(packs.stdout.search(/^[[{]/m)))
    packed = pack.files.map((file: { path: string }) => file.path)
    await run(folder, 'npm', 'init', '--yes')
    await run(folder, 'npm', 'install', '--prefer-offline', '--no-audit', join(folder, pack.filename))
  }, 600_000)

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('contains the program and its documentation, and no development files', () => {
    expect(packed).toEqual(
      expect.arrayContaining([
        'bin/orc.js',
        'dist/cli/main.js',
        'dist/client/client.d.ts',
        'dist/index.d.ts',
        'orc.schema.json',
        'plan.schema.json',
        'README.md',
        'CHANGELOG.md',
        'LICENSE',
      ]),
    )
    expect(packed.filter((path) => /^(src|tests|scripts|bench|node_modules)\//.test(path))).toEqual([])
  })

  it('answers npx orc --help and --version, even with an old Node', async () => {
    expect((await run(folder, 'npx', 'orc', '--help')).stdout).toContain('send-message')
    expect((await run(folder, 'npx', 'orc', '--version')).stdout.trim()).toBe(version)
  })

  it('runs with Node 24, and prints the same help', async () => {
    const orc = (...args: string[]) =>
      run(folder, process.execPath, 'node_modules/orchub/bin/orc.js', ...args)
    expect((await orc('scan', '--help')).stdout).toContain('scan')
    const { stdout } = await orc('--help')
    expect(stdout).toBe((await run(folder, 'npx', 'orc', '--help')).stdout)
  })

  it('says which Node it needs if that is too old, and uses the npm package node if installed', async () => {
    const env = { ...process.env, PATH: `${makeOldNode(folder)}${delimiter}${PATH}` }
    const scan = () =>
      execute(join(folder, 'node_modules/.bin/orc'), ['scan', '--help'], { cwd: folder, env })
    await expect(scan()).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('orc needs Node 24'),
    })

    mkdirSync(join(folder, 'node_modules/node/bin'), { recursive: true })
    symlinkSync(process.execPath, join(folder, 'node_modules/node/bin/node'))
    writeFileSync(
      join(folder, 'node_modules/node/package.json'),
      JSON.stringify({ name: 'node', version: process.versions.node }),
    )
    expect((await scan()).stdout).toContain('scan')
  })

  it('loads and type-checks as orchub and orchub/client, the latter without the types of Node', async () => {
    for (const name of ['orchub', 'orchub/client']) {
      await run(folder, process.execPath, '--input-type=module', '--eval', `await import('${name}')`)
    }
    writeFileSync(
      join(folder, 'consumer.ts'),
      "import * as client from 'orchub/client'\nexport const names: string[] = Object.keys(client)\n",
    )
    const flags = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--lib',
      'es2024,dom',
    ]
    const tsc = join(project, 'node_modules/typescript/bin/tsc')
    await run(folder, process.execPath, tsc, ...flags, '--types', '', 'consumer.ts')
  })
})
