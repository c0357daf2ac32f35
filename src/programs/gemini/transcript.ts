import { z } from 'zod'
import type { SessionPort } from '../../runtimes/runtime.ts'
import { createAgentOutput } from '../agent-output.ts'
import { type FilePosition, type FollowerLog, followLines } from '../line-follower.ts'
import { linesOf, parseJsonLine } from '../line-splitter.ts'
import { mayHoldMessages, messageIdsIn } from '../message-evidence.ts'
import { createSeenIds } from '../seen-ids.ts'

const TextPart = z.object({ text: z.string().optional(), functionResponse: z.unknown().optional() })

const GeminiTokens = z.object({
  /** Including cached tokens. */
  input: z.number(),
  output: z.number(),
  cached: z.number().default(0),
  thoughts: z.number().default(0),
})
type GeminiTokens = z.output<typeof GeminiTokens>

const Line = z.object({
  id: z.string(),
  timestamp: z.iso.datetime(),
  type: z.enum(['user', 'gemini', 'info', 'warning', 'error']),
  content: z.union([z.string(), z.array(TextPart)]),
  tokens: GeminiTokens.nullish(),
  model: z.string().optional(),
})

export type GeminiRecord =
  | { readonly kind: 'prompt'; readonly id: string; readonly text: string }
  | {
      readonly kind: 'answer'
      readonly id: string
      readonly at: number
      readonly text: string
      readonly tokens: GeminiTokens | undefined
      readonly model: string
    }
  /** Gemini aborted an answer that repeats itself; if that recurs at once, a dialog opens. */
  | { readonly kind: 'loop'; readonly id: string }
  | { readonly kind: 'cancelled' | 'halted' | 'retried'; readonly id: string }
  /** The conversation was loaded again. */
  | { readonly kind: 'resumed' }

const LOOP = /^System: Potential loop detected\./

/** Messages that Gemini writes for events without a hook. */
const REMARKS = [
  /** A turn was interrupted, or its dialog was denied. */
  ['cancelled', /^Request cancelled\.?$/],
  /** The dialog about a loop was answered. */
  ['halted', /^A potential loop was detected\..*halted\.$/],
  ['retried', /^Loop detection has been disabled/],
] as const

/**
 * Reads a line of a transcript; undefined if irrelevant. After an interruption the program writes the whole
 * conversation again under new ids: those answers are lists of parts, and only the model's own are text.
 */
export function readRecord(line: string): GeminiRecord | undefined {
  if (line.startsWith('{"$set":{"sessionId"')) return { kind: 'resumed' }
  // Skip patches of the whole conversation; new messages have their own lines.
  if (line.startsWith('{"$')) return undefined
  const record = Line.safeParse(parseJsonLine(line)).data
  if (record === undefined) return undefined
  const { id, type, content } = record
  if (type === 'info') {
    const remark = REMARKS.find(([, words]) => words.test(textOf(content)))
    return remark && { kind: remark[0], id }
  }
  if (type === 'user') {
    const isToolResult =
      typeof content !== 'string' && content.some((part) => part.functionResponse !== undefined)
    if (isToolResult) return undefined
    const text = textOf(content)
    return LOOP.test(text) ? { kind: 'loop', id } : { kind: 'prompt', id, text }
  }
  if (type !== 'gemini' || typeof content !== 'string') return undefined
  return {
    ...{ kind: 'answer', id, at: Date.parse(record.timestamp), text: content },
    ...{ tokens: record.tokens ?? undefined, model: record.model ?? '' },
  }
}

function textOf(content: string | z.output<typeof TextPart>[]): string {
  return typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join('')
}

/** Window of every model that the program offers. */
const CONTEXT_WINDOW = 1_048_576
/** A record is written again after its tools have run. */
const REMEMBERED = 500

interface GeminiTranscriptOptions {
  readonly file: string
  readonly from: FilePosition | undefined
  /** Messages without an answer before `from`. */
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

export type GeminiTranscript = ReturnType<typeof followTranscript>

/** Reads the agent's transcript: its own text, which prompts it answered, its context size. */
export function followTranscript(options: GeminiTranscriptOptions) {
  const { file, port, log } = options
  const isNew = createSeenIds(REMEMBERED)
  let unread = [...options.unread]
  /** False while records from before the restart are read again. */
  let isCaughtUp = false
  let isClosed = false

  async function handle(record: GeminiRecord) {
    if (record.kind !== 'resumed' && !isNew(record.id)) return
    if (record.kind === 'prompt') {
      const ids = messageIdsIn(record.text)
      unread.push(...ids)
      if (ids.length > 0)
        port.onEvidence(ids, 'submitted', `the prompt is record ${record.id} of the transcript`)
    }
    if (record.kind === 'answer') handleAnswer(record)
    if (record.kind === 'cancelled' && unread.length > 0) await forget()
    options.onRecord(record)
  }

  /** After a restart, an old cancellation may be read again: messages delivered again since then are further on in the file. */
  async function forget() {
    const standing = isCaughtUp ? new Map<string, string>() : await searchForUnread()
    // The next reader reads it again: the saved position stays before it.
    if (isClosed) throw new Error('closed while the transcript was searched')
    const forgotten = unread.filter((id) => !standing.has(id))
    unread = []
    if (forgotten.length > 0) options.onForgotten(forgotten)
  }

  function searchForUnread(): Promise<ReadonlyMap<string, string>> {
    return searchTranscript(file, new Set(unread)).catch((error: unknown) => {
      log.warn({ file, err: error }, 'cannot search the transcript for messages that were delivered again')
      return new Map<string, string>()
    })
  }

  function handleAnswer({ id, at, text, tokens, model }: Extract<GeminiRecord, { kind: 'answer' }>) {
    if (unread.length > 0) port.onEvidence(unread, 'read', `record ${id} of the transcript answers it`)
    unread = []
    if (at < options.since) return
    if (text.trim() !== '') agentOutput.say({ text, channel: 'transcript', key: id }, follower.position())
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
      if (record !== undefined) await handle(record)
      options.onProgress()
    },
    onReset: (reason) => log.warn({ file, reason }, 'reading the transcript from its beginning again'),
  })
  void follower.settled().then(() => {
    isCaughtUp = true
  })
  const agentOutput = createAgentOutput<FilePosition | undefined>({
    ...{ onText: port.onText, onProcessed: options.onProgress, log },
  })

  return {
    file,
    /** Messages in it without an answer yet. */
    get unread() {
      return unread
    },
    position: () => agentOutput.oldestOpen ?? follower.position(),
    /** Everything written so far was processed. */
    settled: follower.settled,
    close(): Promise<void> {
      isClosed = true
      agentOutput.close()
      return follower.close()
    },
  }
}

/** The records that showed messages to the model in a transcript: one pass for all of them. */
export async function searchTranscript(file: string, ids: ReadonlySet<string>): Promise<Map<string, string>> {
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
