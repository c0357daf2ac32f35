import type { SessionPort } from '../../runtimes/runtime.ts'
import { type FilePosition, type FollowerLog, followLines } from '../line-follower.ts'
import { mayHoldMessages, messageIdsIn } from '../message-ids.ts'
import { createOpenUtterances } from '../open-utterances.ts'
import { linesOf } from '../record-lines.ts'
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
  /** Everything written up to now was heard. */
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
  /** What is read until then may be long ago. */
  let isCaughtUp = false
  let isClosed = false

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
    if (record.kind === 'answer') hearAnswer(record)
    if (record.kind === 'cancelled' && unread.length > 0) await forget()
    options.onRecord(record)
  }

  /** Read again after a restart, it may be long ago: what was given again since then stands further on. */
  async function forget() {
    const standing = isCaughtUp ? new Map<string, string>() : await searchForThem()
    // It is read again by whoever comes next: the place is not kept behind it.
    if (isClosed) throw new Error('closed while the transcript was searched')
    const forgotten = unread.filter((id) => !standing.has(id))
    unread = []
    if (forgotten.length > 0) options.onForgotten(forgotten)
  }

  function searchForThem(): Promise<ReadonlyMap<string, string>> {
    return searchTranscripts([file], unread).catch((error: unknown) => {
      log.warn({ file, err: error }, 'the transcript cannot be searched for what was given again')
      return new Map<string, string>()
    })
  }

  function hearAnswer({ id, at, text, tokens, model }: Extract<TranscriptRecord, { kind: 'answer' }>) {
    if (unread.length > 0) port.arrived(unread, 'read', `record ${id} of the transcript answers it`)
    unread = []
    if (at < options.since) return
    if (text.trim() !== '') utterances.say({ text, channel: 'transcript', key: id })
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
  void follower.settled().then(() => {
    isCaughtUp = true
  })
  const utterances = createOpenUtterances({
    ...{ said: port.said, log, onAnswered: options.onProgress },
    place: () => follower.position(),
  })

  return {
    file,
    get unread() {
      return unread
    },
    position: () => utterances.position() ?? follower.position(),
    settled: follower.settled,
    close() {
      isClosed = true
      return follower.close()
    },
  }
}

/** The records by which messages were put before the model in these transcripts: one pass for all of them. */
export async function searchTranscripts(
  files: readonly string[],
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const missing = new Set(ids)
  const found = new Map<string, string>()
  for (const file of files) {
    if (missing.size === 0) break
    for (const [id, record] of await searchTranscript(file, missing)) {
      missing.delete(id)
      found.set(id, record)
    }
  }
  return found
}

async function searchTranscript(file: string, ids: ReadonlySet<string>): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  /** With a turn that is cancelled before its answer, the program forgets its prompt. */
  let unanswered: string[] = []
  for await (const line of linesOf(file)) {
    if (found.size === 0 && !mayHoldMessages(line)) continue
    const record = readRecord(line)
    if (record?.kind === 'prompt') {
      const met = messageIdsIn(record.text).filter((id) => ids.has(id) && !found.has(id))
      for (const id of met) found.set(id, record.id)
      unanswered.push(...met)
    }
    if (record?.kind === 'cancelled') for (const id of unanswered) found.delete(id)
    if (record?.kind === 'cancelled' || record?.kind === 'answer') unanswered = []
  }
  return found
}
