import type { SessionPort } from '../../runtimes/runtime.ts'
import { type FilePosition, type FollowerLog, followLines } from '../line-follower.ts'
import { linesOf } from '../line-splitter.ts'
import { mayHoldMessages, messageIdsIn } from '../message-ids.ts'
import { createOpenUtterances } from '../open-utterances.ts'
import { type GeminiRecord, readRecord } from './record.ts'

/** Window of every model that the program offers. */
const CONTEXT_WINDOW = 1_048_576
/** A record is written again after its tools have run. */
const REMEMBERED = 500

export interface GeminiTranscript {
  readonly file: string
  /** Messages in it without an answer yet. */
  readonly unread: readonly string[]
  position(): FilePosition | undefined
  /** Everything written so far was processed. */
  settled(): Promise<void>
  close(): Promise<void>
}

interface GeminiTranscriptOptions {
  readonly file: string
  readonly from: FilePosition | undefined
  /** At that position. */
  readonly unread: readonly string[]
  /** Milliseconds. Older answers are not this agent's. */
  readonly since: number
  readonly port: SessionPort
  readonly log: FollowerLog
  onRecord(record: GeminiRecord): void
  /** The turn was cancelled, so the program forgets these messages. */
  onForgotten(ids: readonly string[]): void
  /** A good moment to save the position. */
  onProgress(): void
}

/** Reads the agent's transcript: its own text, which prompts it answered, its context size. */
export function followTranscript(options: GeminiTranscriptOptions): GeminiTranscript {
  const { file, port, log } = options
  const heard = new Set<string>()
  let unread = [...options.unread]
  /** Records before that may be old. */
  let isCaughtUp = false
  let isClosed = false

  function isNews(id: string): boolean {
    if (heard.has(id)) return false
    heard.add(id)
    if (heard.size > REMEMBERED) heard.delete(heard.values().next().value!)
    return true
  }

  async function hear(record: GeminiRecord) {
    if (record.kind !== 'resumed' && !isNews(record.id)) return
    if (record.kind === 'prompt') {
      const ids = messageIdsIn(record.text)
      unread.push(...ids)
      if (ids.length > 0)
        port.onEvidence(ids, 'submitted', `the prompt is record ${record.id} of the transcript`)
    }
    if (record.kind === 'answer') hearAnswer(record)
    if (record.kind === 'cancelled' && unread.length > 0) await forget()
    options.onRecord(record)
  }

  /** Read again after a restart, it may be old: what was delivered again since is further on. */
  async function forget() {
    const standing = isCaughtUp ? new Map<string, string>() : await searchForThem()
    // The next reader reads it again: the saved position stays before it.
    if (isClosed) throw new Error('closed while the transcript was searched')
    const forgotten = unread.filter((id) => !standing.has(id))
    unread = []
    if (forgotten.length > 0) options.onForgotten(forgotten)
  }

  function searchForThem(): Promise<ReadonlyMap<string, string>> {
    return searchTranscripts([file], unread).catch((error: unknown) => {
      log.warn({ file, err: error }, 'cannot search the transcript for messages that were delivered again')
      return new Map<string, string>()
    })
  }

  function hearAnswer({ id, at, text, tokens, model }: Extract<GeminiRecord, { kind: 'answer' }>) {
    if (unread.length > 0) port.onEvidence(unread, 'read', `record ${id} of the transcript answers it`)
    unread = []
    if (at < options.since) return
    if (text.trim() !== '') utterances.say({ text, channel: 'transcript', key: id })
    if (tokens === undefined) return
    const { input, output, cached, thoughts } = tokens
    port.onUsage({
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
    onReset: (reason) => log.warn({ file, reason }, 'reading the transcript from its beginning again'),
  })
  void follower.settled().then(() => {
    isCaughtUp = true
  })
  const utterances = createOpenUtterances({
    ...{ said: port.onText, log, onAnswered: options.onProgress },
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

/** The records that showed messages to the model in these transcripts: one pass for all of them. */
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
  /** If a turn is cancelled before its answer, the program forgets its prompt. */
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
