import { CLAIMS, type SaidCommand } from '../model/command.ts'
import { asAppError } from '../model/errors.ts'
import { type ErrorReceipt, errorReceipt, type Receipt } from '../model/receipt.ts'
import type { Registry } from '../model/registry.ts'
import { renderResponse } from '../wire/response.ts'
import { createScanner, type KnownCommands, type Scanned } from '../wire/scanner.ts'

type Problem = Extract<Scanned, { ok: false }>

/** Listens to one agent's own text: commands are carried out in the order they are said, and each is answered. */
export interface Listener {
  hear(text: string): void
  /** What was said so far is all of it: a command left open does not swallow the next turn. */
  endTurn(): void
}

/** `handedOut`: the messages that the answer itself brings to the agent. */
export type Answer = (block: string, handedOut: readonly string[]) => void

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
  return knownCommands(registry, CLAIMS)
}

export function createListener(
  registry: Registry,
  handle: (said: SaidCommand) => Promise<Receipt>,
  answer: Answer,
): Listener {
  const known = heardCommands(registry)
  let scanner = createScanner(known)
  let last: Promise<void> = Promise.resolve()

  async function act(found: Scanned) {
    if (found.ok) {
      const said = { type: found.type, fields: found.fields, ignored: found.ignored }
      // A full disk or a lost database is the agent's to know, too.
      const receipt = await handle(said).catch((error: unknown) => errorReceipt(asAppError(error)))
      answer(renderResponse(found.type, receipt), handedOutBy(found.type, receipt))
      return
    }
    // Quoted code is no mistake: an agent may well explain the protocol to another.
    if (!QUOTED.has(found.code)) answer(renderResponse('unknown', problemReceipt(found)), [])
  }

  function actInOrder(found: readonly Scanned[]) {
    if (found.length === 0) return
    last = last.then(async () => {
      for (const one of found) await act(one)
    })
  }

  return {
    hear: (text) => actInOrder(scanner.push(text)),
    endTurn() {
      actInOrder(scanner.end())
      scanner = createScanner(known)
    },
  }
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

function handedOutBy(type: string, receipt: Receipt): string[] {
  if (type !== 'mailbox_check' || receipt.status !== 'ok') return []
  const messages = (receipt.details?.messages ?? []) as { id: string }[]
  return messages.map((message) => message.id)
}
