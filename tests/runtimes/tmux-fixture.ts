/** A tmux server of a test's own, with agents that are raw receivers. */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createAnyProgram } from '../../src/programs/any/program.ts'
import type { AgentStart, Runtime } from '../../src/runtimes/runtime.ts'
import { createTmuxRuntime, type TmuxOptions } from '../../src/runtimes/tmux/runtime.ts'
import { attachPerson, type Person } from '../fakes/person-at-terminal.ts'
import { QUIET_LOG } from '../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../fakes/real-clock.ts'
import type { RuntimeFixture } from './conformance.ts'

const RECEIVER = resolve(import.meta.dirname, '../fakes/raw-receiver.ts')

/**
 * tmux (seen with 3.3a) drops what it has not read of a process when it hears of its end, on a busy machine one time in
 * 200: so the words come first, and the end once tmux has answered how the terminal is, which it does after reading them.
 */
const ENDS_WHEN_SHOWN = [
  'stty -icanon -echo',
  "printf 'cannot resume that\\n\\033[5n'",
  'dd bs=1 count=4 >/dev/null 2>&1',
  'exit 3',
].join('; ')

export interface Received {
  text?: string
  answered?: string
}

export interface TmuxFixture extends RuntimeFixture {
  readonly socket: string
  readonly folder: string
  reopen(): Promise<Runtime>
  /** Settings of the receiver; `over` replaces some. */
  settings(name?: string, over?: Record<string, unknown>): Record<string, unknown>
  received(name?: string): Received[]
  /** Runs a tmux command, as a person could. */
  tmux(...words: string[]): string
  panes(): string[]
  /** Attaches a person's terminal to the agents' window. */
  attach(window?: number): Promise<Person>
}

let fixtures = 0

export async function openTmuxFixture(over: Partial<TmuxOptions> = {}): Promise<TmuxFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'orc tmux #{x}%H-'))
  const socket = `orc-test-${process.pid}-${++fixtures}`
  const runtimes: Runtime[] = []
  const people: Person[] = []
  const open = () => {
    const runtime = createTmuxRuntime({
      socket,
      programs: [createAnyProgram()],
      clock: REAL_CLOCK,
      log: QUIET_LOG,
      bin: '/nowhere/orc',
      ...over,
    })
    runtimes.push(runtime)
    return runtime
  }
  const record = (name: string) => join(folder, `${name}.jsonl`)
  const tmux = (...words: string[]) =>
    execFileSync('tmux', ['-u', '-L', socket, ...words], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trimEnd()

  const settings = (name = 'alice', more: Record<string, unknown> = {}) => ({
    command: [process.execPath, RECEIVER, record(name)],
    patterns: {
      idle: '^> $',
      submitted: '^got {id}$',
      busy: 'working\\.\\.\\.$',
      dialog: 'Allow this\\? \\[y/N\\] $',
    },
    evidence_ms: 3000,
    patience_ms: 5000,
    ...more,
  })

  return {
    socket,
    folder,
    runtime: open(),
    settings,
    agent(more: Partial<AgentStart> = {}) {
      const name = more.name ?? 'alice'
      const cwd = join(folder, 'work')
      mkdirSync(cwd, { recursive: true })
      return {
        ...{ name, program: 'any', prompt: 'You are a test.', nonce: 'n0nce', savedState: undefined, cwd },
        folder: join(folder, 'agents', name),
        settings: settings(name),
        credentials: async () => ({ url: 'http://127.0.0.1:1', token: 'secret-token' }),
        ...more,
      }
    },
    wrong: { settings: { command: 'x', patterns: { idle: '(' } }, path: ['patterns', 'idle'] },
    missing: { ...settings(), command: 'no-such-agent-anywhere' },
    endsAtOnce: {
      settings: { ...settings(), command: ['sh', '-c', ENDS_WHEN_SHOWN] },
      lastWords: 'cannot resume that',
    },
    async reopen() {
      return open()
    },
    leftovers: async () => processesIn(join(folder, 'work')),
    received(name = 'alice') {
      if (!existsSync(record(name))) return []
      const lines = readFileSync(record(name), 'utf8').trim().split('\n')
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Received)
    },
    tmux,
    panes: () => tmux('list-panes', '-s', '-t', '=orchub:', '-F', '#{pane_id}').split('\n'),
    async attach(agent = 0) {
      const window = tmux('list-windows', '-t', '=orchub:', '-F', '#{window_id}').split('\n')[1 + agent]
      const person = await attachPerson(socket, `=orchub:${window}`)
      people.push(person)
      return person
    },
    async close() {
      for (const person of people) person.leave()
      await Promise.all(runtimes.map((runtime) => runtime.close?.()))
      try {
        tmux('kill-server')
      } catch {
        // The server ended with its last agent.
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Processes whose working folder is below that one. */
function processesIn(folder: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) && readlinkSync(`/proc/${name}/cwd`).startsWith(folder) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}
