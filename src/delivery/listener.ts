import { asAppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { CommandOrigin } from '../commands/commands.ts'
import { findReceipt, storeReceipt } from '../commands/idempotency.ts'
import type { ScanProblem } from '../protocol/codec.ts'
import { CLAIMS, type RawCommand } from '../protocol/command.ts'
import { type ErrorReceipt, errorReceipt, type Receipt } from '../protocol/receipt.ts'
import type { Registry } from '../protocol/registry.ts'
import { renderRemark, renderResponse } from '../protocol/response.ts'
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

interface ListenerOptions {
  registry: Registry
  /** Required in every command read off a terminal, because text there may be anybody's. */
  nonce: string
  handle(said: RawCommand, origin: CommandOrigin): Promise<Receipt>
  /** Resolves when the response reached the agent. */
  respond(response: CommandResponse): Promise<void>
  /** Without it, a command that is read again is answered again. */
  answered?: AnsweredCommands
  /** A command on the screen lacks the nonce, so it is ignored. */
  onUnmarked?(type: string): void
}

type AnsweredCommands = ReturnType<typeof createAnsweredCommands>

/**
 * Positions of commands whose responses reached the agent, so a transcript that is read again doesn't wake it (C25).
 * Neither function rejects; at worst the agent gets a response twice.
 */
export function createAnsweredCommands(store: Store, agent: string, log: Log) {
  const keyOf = (position: string) => `answered ${position}`
  return {
    async has(position: string): Promise<boolean> {
      try {
        return (await findReceipt(store, agent, keyOf(position))) !== undefined
      } catch (error) {
        log.warn({ agent, err: error }, 'could not read whether a response arrived')
        return false
      }
    },
    async add(position: string): Promise<void> {
      try {
        await store.write(async (tx) => {
          if ((await findReceipt(tx, agent, keyOf(position))) !== undefined) return
          await storeReceipt(tx, agent, keyOf(position), { digest: '', receipt: '' })
        })
      } catch (error) {
        log.warn({ agent, err: error }, 'could not store that a response arrived')
      }
    },
  }
}

const NONCE = 'nonce'

/** Shared by the listeners of all agents. */
const knownCommands = new WeakMap<Registry, KnownCommands>()

/** The commands that the scanner looks for. Includes fields that claim a sender: the door can only refuse claims it sees. */
export function heardCommands(registry: Registry): KnownCommands {
  const earlier = knownCommands.get(registry)
  if (earlier !== undefined) return earlier
  const shapes = new Map(
    registry.all().map(({ type, fields, body }) => {
      const shape = { type, fields: new Set([...Object.keys(fields.shape), ...CLAIMS, NONCE]) }
      return [type, body === undefined ? shape : { ...shape, body }]
    }),
  )
  const known: KnownCommands = (type) => shapes.get(type)
  knownCommands.set(registry, known)
  return known
}

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
    position: string | undefined,
  ): Promise<{ response: CommandResponse; isSettled: boolean } | undefined> {
    if (!found.ok) {
      // Ignore quoted commands, because an agent may explain the protocol. Text on a screen may be anybody's.
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
      ...(position === undefined ? {} : { idempotencyKey: position }),
    }).catch((error: unknown) => {
      // The agent learns of a full disk too. The command is retried when its transcript is read again.
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
        // The position in the transcript is the idempotency key: however often it is read, the command acts once (C25).
        const { key } = utterance
        const position = key === undefined ? undefined : `${key}@${one.span.offset}`
        const done = await act(one, utterance, position)
        if (done === undefined) continue
        const { response, isSettled } = done
        if (!response.wakes || !isSettled || position === undefined) arriving.push(respond(response))
        else if (!(await answered?.has(position)))
          arriving.push(respond(response).then(() => answered?.add(position)))
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

/** The receipt for text that looks like a command but isn't one. */
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

type Response = Pick<CommandResponse, 'block' | 'wakes'>

/** Responses handed over in one turn. Exactly one of the three methods is called, once. */
export type ResponsesOfTurn = ReturnType<PendingResponses['take']>

interface PendingResponse extends Response {
  arrived(): void
  /** How often it was handed over without evidence that it arrived. */
  tries: number
  /** How many commands it answers. */
  commands: number
}

const TRIES = 3
const TURN_BYTES = 50_000
/** An agent may send many commands before its next turn; beyond these limits it only learns how many there were. */
const LIMITS = { confirmations: 20, awaited: 100 }

export type PendingResponses = ReturnType<typeof createPendingResponses>

/** Responses to an agent's commands that wait for its next turn. */
export function createPendingResponses() {
  let pending: PendingResponse[] = []
  /** Commands whose confirmations were dropped for newer ones. */
  let dropped = 0
  /** Callbacks of awaited responses that there was no room for. */
  let overflow: (() => void)[] = []

  const count = (wakes: boolean) => pending.filter((response) => response.wakes === wakes).length

  function addConfirmation(response: Response) {
    pending.push({ ...response, arrived() {}, tries: 0, commands: 1 })
    while (count(false) > LIMITS.confirmations) {
      const oldest = pending.findIndex(({ wakes }) => !wakes)
      dropped += pending.splice(oldest, 1)[0]!.commands
    }
  }

  function summarizeDropped(): PendingResponse[] {
    if (dropped === 0) return []
    const block = renderRemark(`Also answered, before these: ${counted(dropped)}`)
    const summary = { block, wakes: false, arrived() {}, tries: 0, commands: dropped }
    dropped = 0
    return [summary]
  }

  function summarizeOverflow(): PendingResponse[] {
    if (overflow.length === 0 || pending.length > 0) return []
    const callbacks = overflow
    overflow = []
    const much = `${counted(callbacks.length)}, too many to show at once`
    const block = renderRemark(`Also answered: ${much}. If you need an answer, send the command again.`)
    const arrived = () => {
      for (const callback of callbacks) callback()
    }
    return [{ block, wakes: true, arrived, tries: 0, commands: callbacks.length }]
  }

  function takeOldest(): PendingResponse[] {
    let bytes = 0
    const end = pending.findIndex(({ block }, index) => {
      bytes += Buffer.byteLength(block)
      return index > 0 && bytes > TURN_BYTES
    })
    return pending.splice(0, end < 0 ? pending.length : end)
  }

  return {
    /** Whether the agent waits for one of them. */
    areAwaited: () => overflow.length > 0 || pending.some(({ wakes }) => wakes),
    /** Resolves when the response reached the agent, or at once if it doesn't wake the agent. */
    add(response: Response): Promise<void> {
      if (!response.wakes) {
        addConfirmation(response)
        return Promise.resolve()
      }
      return new Promise((resolve) => {
        if (count(true) >= LIMITS.awaited) overflow.push(resolve)
        else pending.push({ ...response, arrived: resolve, tries: 0, commands: 1 })
      })
    },
    /** Takes the oldest ones, as many as fit into one turn. */
    take() {
      const taken = [...summarizeDropped(), ...takeOldest(), ...summarizeOverflow()]
      return {
        blocks: taken.map(({ block }) => block),
        arrived() {
          for (const response of taken) response.arrived()
        },
        /** They certainly didn't arrive. */
        putBack() {
          pending = [...taken, ...pending]
        },
        /** They may not have arrived, and are handed over again, at most TRIES times. */
        unknown() {
          for (const response of taken) response.tries += 1
          // Also resolve those given up, or the listener would wait forever.
          for (const response of taken.filter(({ tries }) => tries >= TRIES)) response.arrived()
          pending = [...taken.filter(({ tries }) => tries < TRIES), ...pending]
        },
      }
    },
  }
}

function counted(commands: number): string {
  return commands === 1 ? '1 more command' : `${commands} more commands`
}

export interface RecentText {
  readonly at: number
  readonly text: string
}

const MAX_ENTRIES = 40
/** The total of all entries. */
const MAX_CHARACTERS = 24_000

export type RecentOutput = ReturnType<typeof createRecentOutput>

/** The recent text of an agent, for people who watch it. Only in memory, because its program stores the conversation. */
export function createRecentOutput() {
  let entries: RecentText[] = []
  let isOpen = false
  return {
    add({ text, key }: AgentText, now: number) {
      const last = entries.at(-1)
      if (key === undefined && isOpen && last !== undefined) {
        entries[entries.length - 1] = { at: last.at, text: (last.text + text).slice(-MAX_CHARACTERS) }
      } else if (text.trim() !== '') entries.push({ at: now, text: text.slice(-MAX_CHARACTERS) })
      isOpen = key === undefined
      entries = entries.slice(-MAX_ENTRIES)
      let length = entries.reduce((sum, one) => sum + one.text.length, 0)
      while (length > MAX_CHARACTERS && entries.length > 1) length -= entries.shift()!.text.length
    },
    /** The next piece of text begins a new entry. */
    endTurn() {
      isOpen = false
    },
    /** Oldest first. */
    all: (): readonly RecentText[] => entries,
  }
}
