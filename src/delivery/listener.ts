import { asAppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { CommandOrigin } from '../commands/commands.ts'
import { findReceipt, keepReceipt } from '../commands/idempotency.ts'
import type { ScanProblem } from '../protocol/codec.ts'
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
import type { AgentText } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'

/** Finds the commands in one agent's own text, and carries them out in the order in which the agent sent them. */
export interface Listener {
  /** Resolves when every command in it was carried out and its response reached the agent. */
  hear(utterance: AgentText): Promise<void>
  /**
   * Ends the text of a turn, so that a command without an end doesn't swallow the next turn. Resolves when all commands
   * were carried out.
   */
  endTurn(): Promise<void>
}

/** The response to one command. */
export interface CommandResponse {
  block: string
  /** Whether the agent waits for it. A mere confirmation comes with the next turn, because waking the agent costs one. */
  wakes: boolean
  /** The command failed. */
  isMistake: boolean
}

export interface ListenerOptions {
  registry: Registry
  /** Must be in every command that is read off a terminal, where anybody's text may stand. */
  nonce: string
  handle(said: SaidCommand, origin: CommandOrigin): Promise<Receipt>
  /** Resolves when the response reached the agent. */
  respond(response: CommandResponse): Promise<void>
  /** Without it, a command that is read again is answered again. */
  answered?: AnsweredCommands
  /** A command on the screen lacks the nonce: it is neither carried out nor answered. */
  onUnmarked?(type: string): void
}

/** Places of commands whose responses reached the agent: a transcript that is read again wakes it for nothing (C25). */
export interface AnsweredCommands {
  has(place: string): Promise<boolean>
  add(place: string): Promise<void>
}

/** Neither function rejects; at worst the agent gets a response twice. */
export function createAnsweredCommands(store: Store, agent: string, log: Log): AnsweredCommands {
  const keyOf = (place: string) => `answered ${place}`
  return {
    async has(place) {
      try {
        return (await findReceipt(store, agent, keyOf(place))) !== undefined
      } catch (error) {
        log.warn({ agent, err: error }, 'whether a response had arrived could not be read')
        return false
      }
    },
    async add(place) {
      try {
        await store.write(async (tx) => {
          if ((await findReceipt(tx, agent, keyOf(place))) !== undefined) return
          await keepReceipt(tx, agent, keyOf(place), { digest: '', receipt: '' })
        })
      } catch (error) {
        log.warn({ agent, err: error }, 'that a response arrived could not be stored')
      }
    },
  }
}

const NONCE = 'nonce'

export function knownCommands(registry: Registry, alsoFields: Iterable<string> = []): KnownCommands {
  const shapes = new Map(
    registry.all().map(({ type, fields, body }) => {
      const shape = { type, fields: new Set([...Object.keys(fields.shape), ...alsoFields]) }
      return [type, body === undefined ? shape : { ...shape, body }]
    }),
  )
  return (type) => shapes.get(type)
}

/** The same, with the fields that claim a sender: the door can refuse only the claims that it sees. */
export function heardCommands(registry: Registry): KnownCommands {
  let known = heard.get(registry)
  if (known === undefined) {
    known = knownCommands(registry, [...CLAIMS, NONCE])
    heard.set(registry, known)
  }
  return known
}

/** Shared by the listeners of all agents. */
const heard = new WeakMap<Registry, KnownCommands>()

export function createListener(options: ListenerOptions): Listener {
  const { registry, nonce, handle, respond, answered } = options
  const known = heardCommands(registry)
  /** For text that comes in pieces; an idle agent has none. */
  let scanner: Scanner | undefined
  let last: Promise<unknown> = Promise.resolve()
  let streamed: AgentText = { text: '', channel: 'api' }

  async function act(
    found: Scanned,
    { channel }: AgentText,
    place: string | undefined,
  ): Promise<{ response: CommandResponse; isSettled: boolean } | undefined> {
    if (!found.ok) {
      // Quoted commands are no mistakes: an agent may explain the protocol. A screen is full of other people's text.
      if (QUOTED.has(found.code) || channel === 'pane') return undefined
      const block = renderResponse('unknown', problemReceipt(found))
      return { response: { block, wakes: true, isMistake: true }, isSettled: true }
    }
    const { [NONCE]: mark, ...fields } = found.fields
    if (channel === 'pane' && mark !== nonce) {
      options.onUnmarked?.(found.type)
      return undefined
    }
    const said = { type: found.type, fields, ignored: found.ignored }
    let isSettled = true
    const receipt = await handle(said, {
      channel: 'text',
      ...(place === undefined ? {} : { idempotencyKey: place }),
    }).catch((error: unknown) => {
      // The agent must learn of a full disk, too. Read again later, the command is tried again.
      isSettled = false
      return errorReceipt(asAppError(error))
    })
    const response = {
      block: renderResponse(found.type, receipt),
      wakes: isAwaited(registry, found.type, receipt),
      isMistake: receipt.status === 'error',
    }
    return { response, isSettled }
  }

  /** Carries commands out one after the other; a response that takes long to arrive holds up no later command. */
  function actInOrder(found: readonly Scanned[], utterance: AgentText): Promise<void> {
    if (found.length === 0) return Promise.resolve()
    const responses = last.then(async () => {
      const arriving: Promise<void>[] = []
      for (const one of found) {
        // The place in the transcript is the idempotency key: however often it is read, the command acts once (C25).
        const { key } = utterance
        const place = key === undefined ? undefined : `${key}@${one.span.offset}`
        const done = await act(one, utterance, place)
        if (done === undefined) continue
        const { response, isSettled } = done
        if (!response.wakes || !isSettled || place === undefined) arriving.push(respond(response))
        else if (!(await answered?.has(place)))
          arriving.push(respond(response).then(() => answered?.add(place)))
      }
      return arriving
    })
    last = responses.catch(() => {})
    return responses.then(async (arriving) => void (await Promise.all(arriving)))
  }

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

/** The agent doesn't wait for the success of a command whose definition says so. */
function isAwaited(registry: Registry, type: string, receipt: Receipt): boolean {
  if (receipt.status === 'delivered')
    return receipt.recipients?.some((one) => one.status !== 'delivered') ?? false
  return receipt.status !== 'ok' || registry.find(type)?.confirmation !== true
}

/** The receipt for text that looks like a command and isn't one. The door uses the same words for the same mistakes. */
export function problemReceipt({
  code,
  message,
  hint,
}: Pick<ScanProblem, 'code' | 'message' | 'hint'>): ErrorReceipt {
  if (code === 'TOO_LARGE' || code === 'UNKNOWN_COMMAND') return { status: 'error', code, message, hint }
  return { status: 'error', code: 'NOT_EXTRACTED', message: `${code}: ${message}`, hint }
}

const QUOTED = new Set(['IN_CODE_BLOCK', 'IN_RESPONSE_BLOCK', 'IN_ECHO'])

/** Ids of the messages that a receipt itself contains. */
export function handedOutBy(type: string, receipt: Receipt): string[] {
  if (type !== 'mailbox_check' || receipt.status !== 'ok') return []
  const messages = (receipt.details?.messages ?? []) as { id: string }[]
  return messages.map((message) => message.id)
}
