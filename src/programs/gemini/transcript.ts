import { createReadStream, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { SessionPort } from '../../runtimes/runtime.ts'
import { type FilePosition, type FollowerLog, followLines } from '../line-follower.ts'
import { messageIdsIn } from '../message-ids.ts'
import { readRecord, type TranscriptRecord } from './record.ts'

/** Of every model that the program offers. */
const CONTEXT_WINDOW = 1_048_576
/** A record is written again when its tools have run. */
const REMEMBERED = 500

export interface Transcript {
  readonly file: string
  /** Messages that stand in it without an answer to them yet. */
  readonly unread: readonly string[]
  position(): FilePosition | undefined
  /** Everything written up to now was heard, and what it asks for carried out. */
  settled(): Promise<void>
  close(): Promise<void>
}

export interface TranscriptOptions {
  readonly file: string
  readonly from: FilePosition | undefined
  /** At that position. */
  readonly unread: readonly string[]
  /** Milliseconds. Older answers are not this agent's word. */
  readonly since: number
  readonly port: SessionPort
  readonly log: FollowerLog
  onRecord(record: TranscriptRecord): void
  /** The turn was cancelled, with which the program forgets these messages. */
  onForgotten(ids: readonly string[]): void
  /** A good moment to keep the position. */
  onProgress(): void
}

/** Hears what the agent says in its transcript: its own text, whom it answered, how full its context is. */
export function followTranscript(options: TranscriptOptions): Transcript {
  const { file, port, log } = options
  const heard = new Set<string>()
  let unread = [...options.unread]

  function isNews(id: string): boolean {
    if (heard.has(id)) return false
    heard.add(id)
    if (heard.size > REMEMBERED) heard.delete(heard.values().next().value!)
    return true
  }

  async function hear(record: TranscriptRecord) {
    if (record.kind !== 'resumed' && !isNews(record.id)) return
    if (record.kind === 'prompt') {
      const ids = messageIdsIn(record.text)
      unread.push(...ids)
      if (ids.length > 0)
        port.arrived(ids, 'submitted', `the prompt is record ${record.id} of the transcript`)
    }
    if (record.kind === 'answer') await hearAnswer(record)
    if (record.kind === 'cancelled' && unread.length > 0) {
      options.onForgotten(unread)
      unread = []
    }
    options.onRecord(record)
  }

  async function hearAnswer({ id, at, text, tokens, model }: Extract<TranscriptRecord, { kind: 'answer' }>) {
    if (unread.length > 0) port.arrived(unread, 'read', `record ${id} of the transcript answers it`)
    unread = []
    if (at < options.since) return
    if (text.trim() !== '') await port.said({ text, channel: 'transcript', key: id })
    if (tokens === undefined) return
    const { input, output, cached, thoughts } = tokens
    port.used({
      model,
      contextTokens: input,
      contextWindow: CONTEXT_WINDOW,
      spent: { key: id, input: input - cached, output: output + thoughts, cacheRead: cached, cacheWrite: 0 },
    })
  }

  const follower = followLines({
    file,
    from: options.from,
    log,
    async onLine(line) {
      const record = readRecord(line)
      if (record !== undefined) await hear(record)
      options.onProgress()
    },
    onReset: (reason) => log.warn({ file, reason }, 'the transcript is read from its beginning again'),
  })

  return {
    file,
    get unread() {
      return unread
    },
    position: follower.position,
    settled: follower.settled,
    close: follower.close,
  }
}

/** The record by which a message was put before the model in one of these transcripts. */
export async function searchTranscripts(files: readonly string[], id: string): Promise<string | undefined> {
  for (const file of files) {
    // Written with the first prompt.
    if (!existsSync(file)) continue
    const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
    let found: string | undefined
    let isAnswered = false
    for await (const line of lines) {
      if (found === undefined && !line.includes(id)) continue
      const record = readRecord(line)
      if (record?.kind === 'prompt' && messageIdsIn(record.text).includes(id)) found ??= record.id
      if (record?.kind === 'answer') isAnswered = found !== undefined
      // With the turn it forgets the prompt.
      if (record?.kind === 'cancelled' && !isAnswered) found = undefined
    }
    if (found !== undefined) return found
  }
  return undefined
}
