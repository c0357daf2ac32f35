/**
 * Follows one transcript. A prompt is open until a response, a failure or an interrupt follows it, or until another
 * prompt with the same parent replaces it (withdrawn). `unread` holds the messages of open prompts and `heldPosition` the
 * place before the first of them, so that a restart reads a prompt together with its response.
 */

import { z } from 'zod'
import type { SessionPort } from '../../runtimes/runtime.ts'
import { createAgentOutput } from '../agent-output.ts'
import { beginningOf, type FilePosition, type FollowerLog, followLines } from '../line-follower.ts'
import { linesOf, parseJsonLine } from '../line-splitter.ts'
import { mayHoldMessages, messageIdsIn } from '../message-evidence.ts'
import { type ClaudeRecord, readRecord } from './record.ts'

export type Prompt = Extract<ClaudeRecord, { kind: 'prompt' }>
type ClaudeAnswer = Extract<ClaudeRecord, { kind: 'answer' }>

interface ClaudeTranscriptOptions {
  readonly file: string
  readonly from: FilePosition | undefined
  /** Milliseconds. Older answers are not this agent's. */
  readonly since: number
  readonly port: SessionPort
  readonly log: FollowerLog
  /** The model's full name from the start hook; `[1m]` at its end means a larger window. */
  model(): string | undefined
  onRecord(record: ClaudeRecord): void
  /** A prompt that is in the file but no longer part of the conversation. */
  isWithdrawn(prompt: Prompt): boolean
  /** Another prompt replaced it in the conversation. */
  onWithdrawn(prompt: Prompt): void
  /** A good moment to save the position. */
  onProgress(): void
}

export type ClaudeTranscript = ReturnType<typeof followTranscript>

/** Reads the agent's transcript: its own text, which prompts it answered, its context size. */
export function followTranscript(options: ClaudeTranscriptOptions) {
  const { file, port } = options
  let openPrompt: Prompt | undefined
  let unread: string[] = []
  let lastAnswer = ''
  /** Before the first unanswered prompt: after a restart it is read again, together with its answer. */
  let heldPosition: FilePosition | undefined
  let lines = 0
  let bytes = 0
  const watchers = new Set<() => void>()

  const firstAnswer = orderFirstAnswer({
    isAtBeginning: (options.from?.offset ?? 0) === 0,
    handle: handleLine,
    onAnsweredBefore: () => answered('the first response in the transcript, recorded before it, answers it'),
  })

  function handleLine(line: string) {
    const record = readRecord(line)
    if (record === undefined) return
    handle(record)
    for (const look of [...watchers]) look()
    options.onProgress()
  }

  function handle(record: ClaudeRecord) {
    if (record.kind === 'prompt' && options.isWithdrawn(record)) return
    if (record.kind === 'prompt') handlePrompt(record)
    if (record.kind === 'answer') handleAnswer(record)
    if (record.kind === 'failure' || record.kind === 'interrupted') openPrompt = undefined
    options.onRecord(record)
  }

  function handlePrompt(prompt: Prompt) {
    const before = openPrompt
    // Both follow the same record: the conversation continued as if the first had never been sent.
    if (before?.canBeWithdrawn && before.parent !== undefined && before.parent === prompt.parent) {
      withdraw(before)
      options.onWithdrawn(before)
    }
    openPrompt = prompt
    unread.push(...messageIdsIn(prompt.text))
    heldPosition ??= follower.position()
  }

  function withdraw({ text }: Pick<Prompt, 'text'>) {
    const ids = new Set(messageIdsIn(text))
    unread = unread.filter((id) => !ids.has(id))
    openPrompt = undefined
  }

  function answered(evidence: string) {
    openPrompt = undefined
    heldPosition = undefined
    if (unread.length > 0) port.onEvidence(unread, 'read', evidence)
    unread = []
  }

  function handleAnswer(record: ClaudeAnswer) {
    answered(`record ${record.uuid} of the transcript answers it`)
    if (record.texts.length > 0) lastAnswer = record.texts.at(-1)!
    if (record.at < options.since) return
    for (const [index, text] of record.texts.entries()) {
      const key = index === 0 ? record.uuid : `${record.uuid}#${index}`
      output.say({ text, channel: 'transcript', key }, positionNow())
    }
    reportUsage(record)
  }

  function reportUsage({ tokens, model, messageId }: ClaudeAnswer) {
    if (tokens === undefined) return
    const contextTokens = tokens.input + tokens.cacheRead + tokens.cacheWrite
    const named = options.model()
    const exact = named?.startsWith(model) ? named : model
    port.onUsage({
      model,
      contextTokens,
      contextWindow: contextWindowOf(exact, contextTokens),
      // Unknown if the start was read before a restart.
      ...(options.from === undefined ? { lines } : {}),
      bytes,
      spent: { key: messageId, ...tokens },
    })
  }

  /** An answer of several blocks is several records. */
  const isReached = (wanted: string) =>
    openPrompt === undefined && lastAnswer !== '' && wanted.trim().endsWith(lastAnswer.trim())

  const follower = followLines({
    file,
    from: options.from,
    log: options.log,
    onLine(line, { end }) {
      lines += 1
      bytes = end
      firstAnswer.take(line)
    },
    onReset(reason) {
      options.log.warn({ file, reason }, 'reading the transcript from its beginning again')
      lines = 0
      firstAnswer.restart()
    },
  })
  const output = createAgentOutput<FilePosition | undefined>({
    ...{ onText: port.onText, onProcessed: options.onProgress, log: options.log },
  })
  /** Held records are read again from the start, so after a restart reading begins there again. */
  const positionNow = () => (firstAnswer.isOpen ? beginningOf(follower.position()) : follower.position())

  return {
    file,
    position: () => (firstAnswer.isOpen ? undefined : (output.oldestOpen ?? heldPosition)) ?? positionNow(),
    /** Everything written so far was processed. */
    settled: follower.settled,
    /** The turn has ended: releases the answer that was held to restore the order. */
    release: firstAnswer.release,
    /**
     * Settles when the transcript's last answer is that text, or after `limitMs`: the file may lag behind a
     * hook.
     */
    async reaches(wanted: string | undefined, limitMs: number): Promise<void> {
      await follower.settled()
      if (wanted === undefined) return firstAnswer.release()
      if (isReached(wanted)) return
      await new Promise<void>((resolve) => {
        const done = () => {
          watchers.delete(look)
          clearTimeout(timer)
          resolve()
        }
        const look = () => {
          if (isReached(wanted)) done()
        }
        const timer = setTimeout(done, limitMs)
        watchers.add(look)
      })
      firstAnswer.release()
      await follower.settled()
    },
    /** The last prompt, while it has no answer. */
    get openPrompt() {
      return openPrompt
    },
    /** The prompt is no longer part of the conversation, so no answer belongs to it. */
    withdraw,
    close(): Promise<void> {
      output.close()
      return follower.close()
    },
  }
}

/** The record with which each message was shown to the model, if any: one pass for all of them. */
export async function searchTranscript(
  file: string,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for await (const line of linesOf(file)) {
    const record = mayHoldMessages(line) ? readRecord(line) : undefined
    if (record?.kind !== 'prompt') continue
    for (const id of messageIdsIn(record.text)) if (ids.has(id) && !found.has(id)) found.set(id, record.uuid)
    if (found.size === ids.size) break
  }
  return found
}

const LARGE_WINDOW = 1_000_000
const USUAL_WINDOW = 200_000

/** Models known to have a larger default window. */
const LARGE_MODELS = /^claude-(?:opus-4-[78]|(?:opus|sonnet|haiku|fable|mythos)-[5-9])(?:-|$)/

/** The model's context window in tokens (C26). `seen` corrects the table: a context that was used did fit. */
function contextWindowOf(model: string, seen: number): number {
  const isLarge = model.endsWith('[1m]') || LARGE_MODELS.test(model) || seen > USUAL_WINDOW
  return isLarge ? LARGE_WINDOW : USUAL_WINDOW
}

const Link = z.looseObject({
  type: z.string(),
  uuid: z.string(),
  parentUuid: z.string().nullish(),
  isSidechain: z.boolean().optional(),
})

interface FirstAnswerOrderOptions {
  readonly isAtBeginning: boolean
  handle(line: string): void
  /** The last record is the prompt of the first answer, which was handled before it. */
  onAnsweredBefore(): void
}

/**
 * When Claude Code first writes a transcript, the model's answer may precede its prompt (seen in 2.1.197),
 * because text that waited for the file is written after the text that created it. So an answer at the start
 * of a file is held until the record it follows has been read.
 */
function orderFirstAnswer({ isAtBeginning, handle, onAnsweredBefore }: FirstAnswerOrderOptions) {
  let isBeginning = isAtBeginning
  let held: string[] = []
  const heldIds = new Set<string>()
  let follows: string | undefined
  /** The answer was read, but not the record it follows. */
  let isFollowedLate = false

  function hold(line: string, uuid: string) {
    held.push(line)
    heldIds.add(uuid)
  }

  function release() {
    for (const line of held) handle(line)
    held = []
  }

  function handleLate(line: string) {
    const link = readLink(line)
    const isNext = link?.parentUuid && heldIds.has(link.parentUuid)
    if (isNext) heldIds.add(link.uuid)
    // The next turn has begun: nothing in it is answered yet.
    if (link?.type === 'assistant' || (isNext && link.type === 'user')) isFollowedLate = false
    handle(line)
    if (link?.uuid !== follows || !isFollowedLate) return
    isFollowedLate = false
    onAnsweredBefore()
  }

  function begin(line: string, link: z.output<typeof Link>) {
    isBeginning = false
    if (link.type !== 'assistant' || !link.parentUuid) return handle(line)
    follows = link.parentUuid
    hold(line, link.uuid)
  }

  return {
    /** True until the conversation's first record is read, and while it is held. */
    get isOpen() {
      return isBeginning || held.length > 0
    },
    take(line: string) {
      if (!isBeginning && held.length === 0) return isFollowedLate ? handleLate(line) : handle(line)
      const link = readLink(line)
      if (link === undefined) return handle(line)
      if (isBeginning) return begin(line, link)
      if (link.parentUuid && heldIds.has(link.parentUuid)) return hold(line, link.uuid)
      // Another answer: the prompt of the first one is not in this file.
      if (link.type === 'assistant') release()
      handle(line)
      if (link.uuid === follows) release()
    },
    /** Releases the held answer although its prompt has not appeared. When it does, it is already answered. */
    release() {
      if (held.length > 0) isFollowedLate = true
      release()
    },
    /** The file is read from its start. */
    restart() {
      isBeginning = true
      isFollowedLate = false
      held = []
      heldIds.clear()
    },
  }
}

function readLink(line: string): z.output<typeof Link> | undefined {
  const link = Link.safeParse(parseJsonLine(line)).data
  return link?.isSidechain === true ? undefined : link
}
