/** Two agents in panes, a sender and a raw receiver, and the product between them. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Child, startChild } from './child.ts'
import { endWithBench } from './endings.ts'
import { asCommand, cleaned, type Sent } from './messages.ts'
import { followRecord, type RecordReader } from './record.ts'
import { openSpeaker } from './speaker.ts'
import { readTurn } from './tally.ts'

const execute = promisify(execFile)
const RECEIVER = join(import.meta.dirname, '../../tests/fakes/raw-receiver.ts')
const SENDER = join(import.meta.dirname, 'sender.ts')

export interface Scene {
  readonly child: Child
  readonly record: RecordReader
  readonly sent: readonly Sent[]
  /** The receiver's. */
  readonly pane: string
  readonly socket: string
  /** Has the sender print messages, all at once. Resolves with their marks and the time just before, in nanoseconds. */
  say(...contents: string[]): Promise<Said>
  /** Resolves with the latency of each in milliseconds once the receiver has submitted them all. */
  arrived(said: Said, timeoutMs?: number): Promise<number[]>
  /** The time just before the sender printed it, in nanoseconds. */
  saidAt(mark: string): bigint | undefined
  /** Whether the receiver has it already. */
  has(said: Said): boolean
  /** Sends a message like a person, with its own command. */
  tmux(...words: string[]): Promise<string>
  close(): Promise<void>
}

export interface Said {
  readonly marks: readonly string[]
  readonly at: bigint
}

export type Carrier = 'service.ts' | 'direct.ts' | 'poll.ts'

export interface SceneOptions {
  carrier: Carrier
  /** Replaces the raw receiver: its entry in orc.yaml, and the record of what it got. */
  receiver?: { agent: object; record: RecordReader }
  /** More agents for orc.yaml. */
  others?: Record<string, object>
  execArgv?: string[]
}

const PATTERNS = {
  idle: '^> $',
  submitted: '^got {id}$',
  busy: 'working\\.\\.\\.$',
  dialog: 'Allow this\\? \\[y/N\\] $',
}
const ARRIVES_MS = 30_000
let scenes = 0

export function anyAgent(command: readonly string[], more: object = {}) {
  return { program: 'any' as const, with: { command, patterns: PATTERNS, ...more } }
}

export async function openScene(options: SceneOptions): Promise<Scene> {
  const { carrier, others = {}, execArgv = [] } = options
  const folder = mkdtempSync(join(tmpdir(), 'orchub-delivery-'))
  const socket = `orchub-bench-${process.pid}-${++scenes}`
  const speaker = await openSpeaker(join(folder, 'speaker.sock'))
  const file = join(folder, 'received.jsonl')
  const record = options.receiver?.record ?? followRecord(file)
  const sent: Sent[] = []
  const tmux = async (...words: string[]) =>
    (await execute('tmux', ['-L', socket, ...words])).stdout.trimEnd()
  const agents = {
    Sender: anyAgent([process.execPath, SENDER, speaker.socket]),
    Receiver: options.receiver?.agent ?? anyAgent([process.execPath, RECEIVER, file]),
    ...others,
  }
  const limits = { rate: 'off', pair_rate: 'off', hops: 'off', ping_pong: 'off' }
  const order = { folder, socket, agents, config: { agents, limits, tmux: { socket } } }
  async function clear() {
    speaker.close()
    record.close()
    await tmux('kill-server').catch(() => {})
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  const child = await startChild(carrier, order, execArgv).catch(async (error: unknown) => {
    await clear()
    throw error
  })
  const close = endWithBench(async () => {
    await child.close()
    await clear()
  })
  await idle(child, ['Sender', 'Receiver']).catch(async (error: unknown) => {
    await close()
    throw error
  })

  /** When each message was submitted; reads on from the last position. */
  const arrivals = new Map<string, bigint>()
  const begun = new Map<string, bigint>()
  let read = 0
  function readOn() {
    for (; read < record.entries.length; read++) {
      const { text, ns } = record.entries[read]!
      if (text === undefined) continue
      for (const { title } of readTurn(text).frames)
        if (!arrivals.has(title)) arrivals.set(title, BigInt(ns!))
    }
  }

  const has = ({ marks }: Said) => {
    readOn()
    return marks.every((mark) => arrivals.has(mark))
  }

  return {
    child,
    record,
    sent,
    socket,
    tmux,
    has,
    saidAt: (mark) => begun.get(mark),
    pane: await child.ask<string>('pane', 'Receiver'),
    async say(...contents) {
      const marks = contents.map((content) => {
        const mark = `delivery ${sent.length + 1}`
        sent.push({ mark, content: cleaned(content) })
        return mark
      })
      const commands = contents.map((content, index) => asCommand(marks[index]!, 'Receiver', content))
      const at = await speaker.say(['So be it.', ...commands].join('\n'))
      for (const mark of marks) begun.set(mark, at)
      return { marks, at }
    },
    async arrived(said, timeoutMs = ARRIVES_MS) {
      await record.until(() => has(said), timeoutMs)
      return said.marks.map((mark) => Number(arrivals.get(mark)! - said.at) / 1e6)
    },
    close,
  }
}

export async function idle(child: Child, names: readonly string[], timeoutMs = 60_000): Promise<void> {
  const until = Date.now() + timeoutMs
  for (const name of names) {
    while ((await child.ask('state', name)) !== 'idle') {
      if (Date.now() > until)
        throw new Error(`${name} did not become idle; it shows:\n${await child.ask('screen', name)}`)
      await sleep(20)
    }
  }
}
