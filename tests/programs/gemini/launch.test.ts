import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGemini } from '../../../src/programs/gemini/program.ts'

const program = createGemini({ log: { warn() {} } })

describe('the launch of Gemini', () => {
  let root: string
  let user: string
  let mirror: string

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'orc-gemini-'))
    user = join(root, 'home', '.gemini')
    mirror = join(root, 'agent', 'gemini-home', '.gemini')
    await mkdir(join(user, 'extensions', 'theirs'), { recursive: true })
    await mkdir(join(user, 'tmp', 'project'), { recursive: true })
    await writeFile(join(user, 'settings.json'), '{}')
    await writeFile(join(root, 'gemini'), '#!/bin/sh\n')
    await chmod(join(root, 'gemini'), 0o755)
  })
  afterEach(() => rm(root, { recursive: true }))

  const launch = (more: { settings?: object; resume?: unknown; prompt?: string } = {}) =>
    program.launch({
      ...{ name: 'dev', cwd: root, folder: join(root, 'agent'), nonce: 'n', resume: more.resume },
      ...{ url: 'http://127.0.0.1:7420', token: 'orc_secret', prompt: more.prompt ?? 'You are dev.' },
      settings: { env: { PATH: root, HOME: join(root, 'home') }, ...more.settings },
    })

  const json = async (...path: string[]) => JSON.parse(await readFile(join(mirror, ...path), 'utf8'))

  it('adds our extension beside those of the user, in a home of links', async () => {
    const { env } = await launch()
    expect(env.GEMINI_CLI_HOME).toBe(join(root, 'agent', 'gemini-home'))
    expect(await readlink(join(mirror, 'settings.json'))).toBe(join(user, 'settings.json'))
    expect(await readlink(join(mirror, 'extensions', 'theirs'))).toBe(join(user, 'extensions', 'theirs'))
    expect(await json('extensions', 'orchub', 'gemini-extension.json')).toMatchObject({
      contextFileName: 'role.md',
      mcpServers: {
        orc: { httpUrl: 'http://127.0.0.1:7420/mcp', headers: { Authorization: 'Bearer $ORC_TOKEN' } },
      },
    })
    const { hooks } = await json('extensions', 'orchub', 'hooks', 'hooks.json')
    expect(hooks.AfterAgent[0].hooks[0]).toMatchObject({ type: 'command', command: '"$ORC_BIN" hook' })
  })

  it('leaves the folder of the user unchanged, and keeps conversations of the agent out of it', async () => {
    const before = await readdir(user, { recursive: true })
    await launch()
    expect(await readdir(user, { recursive: true })).toEqual(before)
    expect(await readdir(mirror)).not.toContain('tmp')
  })

  it('follows changes by the user, and keeps files that the program wrote', async () => {
    await launch()
    await rm(join(mirror, 'settings.json'))
    await writeFile(join(mirror, 'settings.json'), '{"its":"own"}')
    await rm(join(user, 'extensions', 'theirs'), { recursive: true })
    await writeFile(join(user, 'oauth_creds.json'), '{}')
    await launch()
    expect(await json('settings.json')).toEqual({ its: 'own' })
    expect(await readdir(join(mirror, 'extensions'))).toEqual(['orchub'])
    expect(await readlink(join(mirror, 'oauth_creds.json'))).toBe(join(user, 'oauth_creds.json'))
  })

  it('lets the agent use the tools of the service without a dialog', async () => {
    await launch()
    expect(await readFile(join(mirror, 'policies', 'orchub.toml'), 'utf8')).toContain('mcpName = "orc"')
  })

  it('escapes names in the role that would be read as files', async () => {
    await launch({ prompt: '@lead leads. Write to @lead, not to a@b.' })
    const role = await readFile(join(mirror, 'extensions', 'orchub', 'role.md'), 'utf8')
    expect(role).toBe('@\u2060lead leads. Write to @\u2060lead, not to a@b.')
  })

  it('writes the token nowhere', async () => {
    const launched = await launch()
    const files = await readdir(join(root, 'agent'), { recursive: true, withFileTypes: true })
    const texts = files
      .filter((file) => file.isFile())
      .map((file) => readFile(join(file.parentPath, file.name), 'utf8'))
    expect(JSON.stringify([launched, await Promise.all(texts)])).not.toContain('orc_secret')
  })

  it('resumes a conversation with a prompt, and starts a new one otherwise', async () => {
    const first = await launch({ settings: { model: 'gemini-x', args: ['--yolo'] } })
    const { sessionId, since } = first.savedState as { sessionId: string; since: number }
    // A clock that is set back makes none of its words older than itself (C4).
    expect(since).toBe(0)
    expect(first.argv).toEqual([
      join(root, 'gemini'),
      ...['--session-id', sessionId, '--model', 'gemini-x', '--yolo'],
    ])
    const transcript = join(root, 'session.jsonl')
    expect((await launch({ resume: { ...(first.savedState as object), transcript } })).argv).toContain(
      '--session-id',
    )
    await writeFile(transcript, '')
    const resumed = await launch({
      resume: { ...(first.savedState as object), transcript, isPrompted: true },
    })
    expect(resumed.argv).toEqual([join(root, 'gemini'), '--resume', sessionId])
  })

  it('reports that a conversation no longer exists', async () => {
    const { savedState } = await launch()
    const resume = { ...(savedState as object), transcript: join(root, 'gone.jsonl'), isPrompted: true }
    await expect(launch({ resume })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      hint: expect.stringContaining('gone.jsonl'),
    })
  })

  it('says how to install a missing program', async () => {
    await expect(launch({ settings: { command: 'gemini-not-here' } })).rejects.toMatchObject({
      code: 'PROGRAM_MISSING',
      hint: expect.stringContaining('npm install --global @google/gemini-cli'),
    })
  })
})

describe('the settings of Gemini', () => {
  it.each([
    [{ modle: 'x' }, []],
    [{ args: ['-y', '-e', 'none'] }, ['args', 1]],
    [{ args: ['--extensions=none'] }, ['args', 0]],
  ])('are refused with their path: %j', (settings, path) => {
    expect(program.check(settings)).toMatchObject([{ path, hint: expect.any(String) }])
  })

  it('may be omitted', () => {
    expect(program.check(undefined)).toEqual([])
  })
})
