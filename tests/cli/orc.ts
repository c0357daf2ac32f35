import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { type Orchub, type OrchubOptions, startOrchub } from '../../src/main.ts'
import { programFile } from '../fakes/program.ts'

const ROOT = join(import.meta.dirname, '..', '..')
export const ENTRY = programFile()
export const CACHE = join(ROOT, '.cache', 'tests')

export interface Ran {
  code: number | null
  out: string
  err: string
  /** Parses standard output as JSON, one value per line. */
  json(): unknown[]
}

export interface RunOptions {
  env?: Record<string, string>
  cwd?: string
  /** Standard input; empty by default. */
  input?: string | Buffer
}

/** Passes nothing of the machine's environment but PATH. */
function environment(folder: string, more: Record<string, string> = {}): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: folder, NODE_COMPILE_CACHE: CACHE, ...more }
}

/** The real program while it runs. */
export function startOrc(folder: string, args: readonly string[], { env, cwd = folder }: RunOptions = {}) {
  const child = spawn(process.execPath, [ENTRY, ...args], { cwd, env: environment(folder, env) })
  let out = ''
  let err = ''
  child.stdout.on('data', (data) => (out += data))
  child.stderr.on('data', (data) => (err += data))
  const ended = new Promise<Ran>((resolve) => {
    child.on('close', (code) => resolve({ code, out, err, json: () => parseLines(out) }))
  })
  return {
    child,
    ended,
    out: () => out,
    err: () => err,
    /** Waits until the output matches. */
    async shows(wanted: string | RegExp): Promise<void> {
      const deadline = Date.now() + 20_000
      const has = () => (typeof wanted === 'string' ? out.includes(wanted) : wanted.test(out))
      while (!has()) {
        if (child.exitCode !== null || Date.now() > deadline)
          throw new Error(`never showed ${wanted}:\n${out}\n${err}`)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
  }
}

/** Runs the real program to its end. */
export async function runOrc(
  folder: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ran> {
  const { child, ended } = startOrc(folder, args, options)
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  return await ended
}

/** Runs a shell line in which `orc` is the real program, for pipes and redirections. */
export async function runShell(folder: string, line: string, env: Record<string, string> = {}): Promise<Ran> {
  const script = `orc() { "$ORC_NODE" "$ORC_ENTRY" "$@"; }; ${line}`
  const child = spawn('bash', ['-c', script], {
    cwd: folder,
    env: environment(folder, { ...env, ORC_NODE: process.execPath, ORC_ENTRY: ENTRY }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (data) => (out += data))
  child.stderr.on('data', (data) => (err += data))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, out, err, json: () => parseLines(out) }
}

function parseLines(text: string): unknown[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

export const TEAM = `agents:
  Master: { permissions: { spawn_agent: ask } }
  Worker: { parent: Master }
  Spy: {}
rules:
  forbid:
    - { from: Spy, to: Master, reason: spies do not write to masters }
  ask:
    - { from: Worker, to: Spy, reason: a person wants to know }
limits: { rate: off }
`

/** A folder with an orc.yaml, and optionally its service. */
export function createTeamFolder(yaml = TEAM) {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-cli-'))
  const configFile = join(folder, 'orc.yaml')
  writeFileSync(configFile, yaml)
  let running: Orchub | undefined

  return {
    folder,
    configFile,
    state: join(folder, '.orc'),
    async start(options: Partial<OrchubOptions> = {}): Promise<Orchub> {
      const loaded = readConfig(configFile, {})
      if (!loaded.ok) throw new Error(`the test's own orc.yaml: ${JSON.stringify(loaded.error)}`)
      const port = loaded.value.config.service.unixSocket === undefined ? { port: 0 } : {}
      running = await startOrchub({ config: loaded.value.config, ...port, ...options })
      return running
    },
    async stop() {
      await running?.close()
      running = undefined
    },
    orc: (args: string | readonly string[], options: RunOptions = {}) =>
      runOrc(folder, typeof args === 'string' ? args.split(' ') : args, options),
    /** Expects the command to fail with this exit code and these words. */
    async fails(args: string | readonly string[], code: number, words: string, options: RunOptions = {}) {
      const ran = await runOrc(folder, typeof args === 'string' ? args.split(' ') : args, options)
      expect({ code: ran.code, err: ran.err }).toEqual({ code, err: expect.stringContaining(words) })
    },
    shell: (line: string, env: Record<string, string> = {}) => runShell(folder, line, env),
    begin: (args: string, options: RunOptions = {}) => startOrc(folder, args.split(' '), options),
    /** All messages to an agent, oldest first. */
    async mailbox(agent: string) {
      const { out } = await runOrc(folder, ['query-mailbox', '--agent', agent, '--filter', 'all', '--json'])
      return JSON.parse(out).details.messages as Record<'id' | 'title' | 'content' | 'delivery', string>[]
    },
    async token(agent: string): Promise<string> {
      return (await running!.engine.tokens.mint(agent)).token
    },
    async close() {
      await running?.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type TeamFolder = ReturnType<typeof createTeamFolder>

/** One team for all tests of a file. */
export function sharedTeam(yaml?: string): TeamFolder {
  const team = createTeamFolder(yaml)
  afterAll(() => team.close())
  return team
}

/** The same with its service. */
export function servedTeam(yaml?: string, options?: Partial<OrchubOptions>): TeamFolder {
  const team = sharedTeam(yaml)
  beforeAll(() => team.start(options))
  return team
}
