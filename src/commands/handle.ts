import { hash } from 'node:crypto'
import type { AuditDraft } from '../audit/entry.ts'
import { OPERATOR, type Principal } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Command, CommandDefinition } from '../protocol/command.ts'
import { errorReceipt, type Receipt } from '../protocol/receipt.ts'
import type { Registry } from '../protocol/registry.ts'
import type { Decision } from '../rules/rule.ts'
import type { Store, Tx } from '../store/store.ts'
import type { CommandAnswer, Handle, Handler, HandlerContext, Handlers, Speaker } from './commands.ts'
import { duplicateChannelOf } from './duplicate-channel.ts'
import type { HaltState } from './halt-state.ts'
import { type CommandKey, createInFlight, findEarlier, keepAt } from './idempotency.ts'
import { behalf, changesNothing, identify, peopleOnly, signedBy } from './identity.ts'
import type { RateLimits } from './rate-limits.ts'
import { personBehind, type Team } from './team.ts'

export interface DoorOptions {
  store: Store
  registry: Registry
  handlers: Handlers
  rateLimits: RateLimits
  haltState: Pick<HaltState, 'refusal'>
  clock: Clock
  log: Log
  team(): Team
  /** Holds a command until a person decides on it. */
  hold(
    context: HandlerContext,
    definition: CommandDefinition,
    command: Command,
    decision: Decision,
  ): Promise<Receipt>
  /** When the agent's current turn began. */
  turnBegan(agent: string): number | undefined
  /** An agent sent a command during a halt. */
  onHalted(agent: string): void
}

/** List at most this many unknown fields in the receipt. */
const IGNORED_NAMED = 20

const ALLOWED: Decision = { verdict: 'allow', rule: 'built-in: needs no permission', reason: '' }

/**
 * identity (C3) → schema → permission and rules → rate → handler → one transaction → receipt.
 * Everything before the handler is a pure decision on what is in memory; the handler's changes, the audit entry
 * and the idempotency key are written together or not at all.
 */
export function createHandle(options: DoorOptions): Handle {
  const { store, registry, handlers, rateLimits, haltState, clock, log } = options
  const inFlight = createInFlight()

  return async (principal, said, origin = {}) => {
    const team = options.team()
    const identified = identify(team, principal, said)
    if (!identified.ok) return refuse(options, principalName(principal), said.type, identified.error)
    const speaker = identified.value
    const who = speaker.onBehalf ? speaker.name : (speaker.person ?? speaker.name)
    // Before the fields are looked at: their mistakes would explain a command to a speaker who may not send it.
    const forbidden = whyForbidden(team, speaker, registry.find(said.type.trim()), handlers)
    if (forbidden !== undefined) return refuse(options, speaker.person ?? who, said.type, forbidden)
    const decoded = registry.decode(said)
    if (!decoded.ok) return refuse(options, who, said.type, decoded.error)
    const { definition, command, ignored } = decoded
    const handler = handlers[definition.type]
    if (handler === undefined) throw new Error(`the command ${definition.type} has no handler`)
    const isHeldUp = principal.kind === 'agent' && handler.looksOnly !== true && handler.whileHalted !== true
    const counted = principal.kind === 'agent' && handler.free !== true
    const once = createOnce()
    const key = keyOf(handler, speaker, origin.idempotencyKey, definition, command)
    // A transcript may be read again: a command that was refused there stays refused (C25).
    const keyInText = origin.channel === 'text' ? key : undefined
    let isCommitted = false
    const takeCommand = () => rateLimits.takeCommand(team, speaker.name, clock.now())

    type Work = (context: HandlerContext) => Promise<Receipt | AppError> | Receipt | AppError
    const commit = (work: Work): CommandAnswer =>
      store.write(async (unsigned) => {
        isCommitted = true
        const tx = signedBy(unsigned, speaker.person)
        const earlier = await findEarlier(tx, key)
        if (earlier !== undefined) return earlier
        // Checked here, so that the halt also stops commands that already waited for the store.
        const halted = isHeldUp ? haltState.refusal(tx) : undefined
        if (halted !== undefined) return halted
        const { channel } = origin
        const context: HandlerContext = {
          // An act outside the store may have taken long.
          team: handler.perform === undefined ? team : options.team(),
          ...{ tx, unsigned, speaker, approved: false, channel, once },
        }
        const duplicates =
          channel === undefined ||
          principal.kind !== 'agent' ||
          handler.looksOnly === true ||
          handler.isEachTime
            ? undefined
            : duplicateChannelOf(context, options.turnBegan, channel, definition, command)
        const duplicate = await duplicates?.take()
        if (duplicate !== undefined) {
          keepAt(tx, key, duplicate)
          return duplicate
        }
        const decision = handler.decide?.(context, command.fields, definition) ?? ALLOWED
        if (decision instanceof AppError) return decision
        const retryAfterMs = counted ? once('rate', takeCommand) : undefined
        if (retryAfterMs !== undefined) return rateLimited(retryAfterMs)
        if (decision.verdict === 'deny') {
          const blocked = block(context, command, decision)
          keepAt(tx, keyInText, blocked)
          return blocked
        }
        const receipt =
          decision.verdict === 'ask'
            ? await options.hold(context, definition, command, decision)
            : await work(context)
        if (receipt instanceof AppError) return receipt
        const noted = noteIgnored(tx, speaker, definition, ignored, receipt)
        keepAt(tx, key, noted)
        duplicates?.leave(noted)
        return noted
      })

    /** A repetition gets the first receipt, and nothing outside the store happens twice. */
    const perform = (act: NonNullable<Handler['perform']>): CommandAnswer =>
      inFlight.join(key, async () => {
        const earlier = await findEarlier(store, key)
        if (earlier !== undefined) return earlier
        const halted = isHeldUp ? haltState.refusal() : undefined
        if (halted !== undefined) return halted
        const retryAfterMs = counted ? once('rate', takeCommand) : undefined
        if (retryAfterMs !== undefined) return rateLimited(retryAfterMs)
        const answer = await act({ team, speaker, commit }, command.fields).catch(asRefusal)
        if (isCommitted || answer instanceof AppError) return answer
        if (key === undefined && ignored.length === 0) return answer
        return await store.write(async (unsigned) => {
          const tx = signedBy(unsigned, speaker.person)
          // Another daemon may have acted with the same key.
          const stored = await findEarlier(tx, key)
          if (stored !== undefined) return stored
          const noted = noteIgnored(tx, speaker, definition, ignored, answer)
          keepAt(tx, key, noted)
          return noted
        })
      })

    const answer =
      handler.perform === undefined
        ? await commit((context) => handler.handle(context, command.fields, definition))
        : await perform(handler.perform)
    log.debug({ command: definition.type, speaker: speaker.name }, 'command')
    if (!(answer instanceof AppError)) return answer
    if (answer.code === 'HALTED' && principal.kind === 'agent') options.onHalted(speaker.name)
    return refuse(options, who, definition.type, answer, keyInText)
  }
}

/** The kind of speaker and a person's role decide first; rules come later. */
function whyForbidden(
  team: Team,
  speaker: Speaker,
  definition: CommandDefinition | undefined,
  handlers: Handlers,
): AppError | undefined {
  if (definition === undefined) return undefined
  const { type, audience } = definition
  const person = personBehind(team, speaker.principal)
  if (audience === 'nobody') return cannotBeSent(type)
  if (audience === 'people' && person === undefined) return peopleOnly()
  if (audience === 'people' && speaker.onBehalf) return inOwnNameOnly(type)
  if (person === undefined || person.role === 'operator') return undefined
  const { looksOnly, forEveryRole } = handlers[type] ?? {}
  return looksOnly === true || forEveryRole === true ? undefined : changesNothing(person)
}

function cannotBeSent(type: string): AppError {
  return new AppError(
    'FORBIDDEN',
    `The command ${type} cannot be sent; it is only held for people to decide on`,
  )
}

function inOwnNameOnly(type: string): AppError {
  return new AppError('FORBIDDEN', `People send ${type} in their own name only`, {
    hint: 'Leave "from" out.',
  })
}

/** A query has no effect to protect, and its answer may be large. */
function keyOf(
  handler: Handler,
  { onBehalf, person, name }: Speaker,
  key: string | undefined,
  definition: CommandDefinition,
  command: Command,
): CommandKey | undefined {
  if (key === undefined || handler.looksOnly === true || handler.ignoresKey === true) return undefined
  const owner = onBehalf ? `${person ?? OPERATOR} for ${name}` : (person ?? name)
  return { owner, key, digest: hash('sha256', JSON.stringify([definition.type, command.fields])) }
}

/** A fault of the service or its disk is no refusal. */
function asRefusal(error: unknown): AppError {
  if (!(error instanceof AppError) || /^(INTERNAL|FENCED|SERVICE_STOPPING|STORE_\w+)$/.test(error.code))
    throw error
  return error
}

/** Takes or counts something in memory once per command, though its transaction may run again. */
function createOnce(): HandlerContext['once'] {
  const results = new Map<string, unknown>()
  return <T>(what: string, compute: () => T): T => {
    if (!results.has(what)) results.set(what, compute())
    return results.get(what) as T
  }
}

/** Carries out a command that a person approved. A rule that denies it by now still wins. */
export async function carryOut(
  context: HandlerContext,
  handler: Handler,
  definition: CommandDefinition,
  command: Command,
): Promise<Receipt> {
  if (handler.handle === undefined) throw new Error(`the command ${definition.type} cannot be held`)
  const decision = handler.decide?.(context, command.fields, definition) ?? ALLOWED
  if (decision instanceof AppError) return errorReceipt(decision)
  if (decision.verdict === 'deny') return block(context, command, decision)
  const receipt = await handler.handle(context, command.fields, definition)
  return receipt instanceof AppError ? errorReceipt(receipt) : receipt
}

function rateLimited(retryAfterMs: number): AppError {
  return new AppError('RATE_LIMITED', `Too many commands; try again in ${Math.ceil(retryAfterMs / 1000)} s`, {
    hint: 'Wait that long, and say more in one message instead of many. The limit is limits.rate in orc.yaml.',
    data: { retryAfterMs },
  })
}

/** A denial by rule: the receipt says `blocked` and why (S1.12). */
function block(context: HandlerContext, command: Command, decision: Decision): Receipt {
  const { to, target } = command.fields as { to?: string; target?: string }
  const named = to ?? target
  // Use the registered spelling, or a query by name would miss the attempt.
  const subject = named === undefined ? undefined : (context.team.resolve(named) ?? named)
  context.tx.audit({
    type: 'command.blocked',
    class: 'internal',
    actor: context.speaker.name,
    ...(subject === undefined ? {} : { subject }),
    text: `${command.type} blocked: ${decision.reason}`,
    data: { command: command.type, rule: decision.rule, ...behalf(context.speaker) },
  })
  return { status: 'blocked', reason: decision.reason }
}

/** Returns the error to the speaker and writes it to the audit; a flood of errors is only counted. */
async function refuse(
  { rateLimits, clock, store, team }: DoorOptions,
  speaker: string,
  type: string,
  error: AppError,
  key?: CommandKey,
): Promise<Receipt> {
  const receipt = errorReceipt(error)
  const kind = isSecurity(error) ? 'security' : 'refusal'
  const note = rateLimits.noteRefusal(team(), speaker, kind, clock.now())
  if (note.write || key !== undefined) {
    await store.write(async (tx) => {
      if (note.write) tx.audit(refusalEntry(speaker, type, error, note.unwritten))
      if ((await findEarlier(tx, key)) === undefined) keepAt(tx, key, receipt)
    })
  }
  return receipt
}

function isSecurity({ code }: AppError): boolean {
  return code === 'SENDER_MISMATCH' || code === 'FORBIDDEN'
}

function refusalEntry(speaker: string, type: string, error: AppError, unwritten: number): AuditDraft {
  const forged = isSecurity(error)
  const more = unwritten === 0 ? '' : ` (and ${unwritten} earlier ones were not recorded)`
  return {
    type: forged ? `security.${error.code.toLowerCase()}` : 'command.refused',
    class: forged ? 'private' : 'internal',
    actor: speaker,
    // Further lines quote the plan or the configuration, where secrets may stand.
    text: `${type.slice(0, 100)} refused: ${error.message.split('\n', 1)[0]}${more}`,
    data: {
      command: type.slice(0, 100),
      code: error.code,
      ...(unwritten === 0 ? {} : { unwritten }),
      ...error.data,
    },
  }
}

/** Unknown parameters are never dropped silently: the receipt and the audit name them. */
function noteIgnored(
  tx: Tx,
  speaker: Speaker,
  definition: CommandDefinition,
  ignored: readonly string[],
  receipt: Receipt,
): Receipt {
  if (ignored.length === 0) return receipt
  const named = ignored.slice(0, IGNORED_NAMED)
  tx.audit({
    type: 'command.fields_ignored',
    class: 'internal',
    actor: speaker.name,
    text: `${definition.type}: ignored ${named.join(', ')}`,
    data: { command: definition.type, ignored: named },
  })
  return { ...receipt, ignored: named }
}

export function principalName(principal: Principal): string {
  if (principal.kind === 'agent') return principal.agent
  return principal.kind === 'person' ? principal.person : OPERATOR
}
