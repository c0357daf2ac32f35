import { asAppError } from '../base/errors.ts'
import type { Circumstances } from '../commands/command-origin.ts'
import { CLAIMS, type SaidCommand } from '../protocol/command.ts'
import { type ErrorReceipt, errorReceipt, type Receipt } from '../protocol/receipt.ts'
import type { Registry } from '../protocol/registry.ts'
import { renderResponse } from '../protocol/response.ts'
import {
  createScanner,
  type KnownCommands,
  type Scanned,
  type Scanner,
  scanText,
} from '../protocol/scanner.ts'
import type { Utterance } from '../runtimes/runtime.ts'
import type { AnsweredPlaces } from './answered-commands.ts'

type Problem = Extract<Scanned, { ok: false }>

/** Listens to one agent's own text: commands are carried out in the order they are said, and each is answered. */
export interface Listener {
  /** Resolves when all it asked for was carried out and answered. */
  hear(utterance: Utterance): Promise<void>
  /**
   * What was said so far is all of it: a command left open does not swallow the next turn. Resolves when all of it was
   * carried out.
   */
  endTurn(): Promise<void>
}

/** What goes back to the agent for one command. */
export interface Answer {
  block: string
  /** Whether the agent waits for it. A mere confirmation comes with its next turn: waking it would cost a turn. */
  wakes: boolean
  /** What it said could not be carried out as it stands. */
  isMistake: boolean
}

export interface ListenerOptions {
  registry: Registry
  /** Must stand in every command that is read off a terminal, where anybody's text may stand. */
  nonce: string
  handle(said: SaidCommand, circumstances: Circumstances): Promise<Receipt>
  /** Resolves when the answer reached the agent. */
  answer(answer: Answer): Promise<void>
  /** Without it, what is read again is answered again. */
  answered?: AnsweredPlaces
  /** A command on the screen without the nonce: not carried out, not answered, but written down. */
  unmarked(type: string): void
}

const NONCE = 'nonce'

export function knownCommands(registry: Registry, also: Iterable<string> = []): KnownCommands {
  const shapes = new Map(
    registry.all().map(({ type, fields, body }) => {
      const shape = { type, fields: new Set([...Object.keys(fields.shape), ...also]) }
      return [type, body === undefined ? shape : { ...shape, body }]
    }),
  )
  return (type) => shapes.get(type)
}

/** The same for what is carried out: whoever claims to be somebody must be heard, or the claim could not be refused. */
export function heardCommands(registry: Registry): KnownCommands {
  let known = heard.get(registry)
  if (known === undefined) {
    known = knownCommands(registry, [...CLAIMS, NONCE])
    heard.set(registry, known)
  }
  return known
}

/** One for all listeners: each agent has its own of those. */
const heard = new WeakMap<Registry, KnownCommands>()

export function createListener({
  registry,
  nonce,
  handle,
  answer,
  answered,
  unmarked,
}: ListenerOptions): Listener {
  const known = heardCommands(registry)
  /** Only where text comes in pieces; an idle agent has none. */
  let scanner: Scanner | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function act(
    found: Scanned,
    { channel }: Utterance,
    place: string | undefined,
  ): Promise<{ given: Answer; isSettled: boolean } | undefined> {
    if (!found.ok) {
      // Quoted code is no mistake: an agent may well explain the protocol to another. A screen is full of others' text.
      if (QUOTED.has(found.code) || channel === 'pane') return undefined
      const block = renderResponse('unknown', problemReceipt(found))
      return { given: { block, wakes: true, isMistake: true }, isSettled: true }
    }
    const { [NONCE]: mark, ...fields } = found.fields
    if (channel === 'pane' && mark !== nonce) {
      unmarked(found.type)
      return undefined
    }
    const said = { type: found.type, fields, ignored: found.ignored }
    let isSettled = true
    const receipt = await handle(said, {
      channel: 'text',
      ...(place === undefined ? {} : { idempotencyKey: place }),
    }).catch((error: unknown) => {
      // A full disk is the agent's to know, too. Read again, the command is tried again, and answered.
      isSettled = false
      return errorReceipt(asAppError(error))
    })
    const given = {
      block: renderResponse(found.type, receipt),
      wakes: isWaitedFor(registry.find(found.type)?.confirmation === true, receipt),
      isMistake: receipt.status === 'error',
    }
    return { given, isSettled }
  }

  /** Carried out one after the other; an answer that takes its time to arrive keeps no later command back. */
  function actInOrder(found: readonly Scanned[], utterance: Utterance): Promise<void> {
    if (found.length === 0) return Promise.resolve()
    const answers = last.then(async () => {
      const arriving: Promise<void>[] = []
      for (const one of found) {
        // The place in the record makes it act once, however often the record is read (C25).
        const { key } = utterance
        const place = key === undefined ? undefined : `${key}@${one.span.offset}`
        const outcome = await act(one, utterance, place)
        if (outcome === undefined) continue
        const { given, isSettled } = outcome
        if (!given.wakes || !isSettled || place === undefined) arriving.push(answer(given))
        else if (!(await answered?.has(place))) arriving.push(answer(given).then(() => answered?.add(place)))
      }
      return arriving
    })
    // What went wrong with one keeps no later one back.
    last = answers.catch(() => {})
    return answers.then(async (arriving) => void (await Promise.all(arriving)))
  }

  let streamed: Utterance = { text: '', channel: 'api' }
  return {
    hear(utterance) {
      if (utterance.key !== undefined) return actInOrder(scanText(utterance.text, known), utterance)
      streamed = utterance
      scanner ??= createScanner(known)
      return actInOrder(scanner.push(utterance.text), utterance)
    },
    async endTurn() {
      if (scanner !== undefined) void actInOrder(scanner.end(), streamed)
      scanner = undefined
      await last
    },
  }
}

function isWaitedFor(isConfirmation: boolean, receipt: Receipt): boolean {
  if (receipt.status === 'delivered')
    return receipt.recipients?.some((one) => one.status !== 'delivered') ?? false
  return receipt.status !== 'ok' || !isConfirmation
}

/** What a text says that cannot be carried out. Where the door would say the same, it is said in the door's words. */
export function problemReceipt({
  code,
  message,
  hint,
}: Pick<Problem, 'code' | 'message' | 'hint'>): ErrorReceipt {
  if (code === 'TOO_LARGE' || code === 'UNKNOWN_COMMAND') return { status: 'error', code, message, hint }
  return { status: 'error', code: 'NOT_EXTRACTED', message: `${code}: ${message}`, hint }
}

const QUOTED = new Set(['IN_CODE_BLOCK', 'IN_RESPONSE_BLOCK', 'IN_ECHO'])

/** The messages that a receipt itself brings to whoever gets it. */
export function handedOutBy(type: string, receipt: Receipt): string[] {
  if (type !== 'mailbox_check' || receipt.status !== 'ok') return []
  const messages = (receipt.details?.messages ?? []) as { id: string }[]
  return messages.map((message) => message.id)
}
