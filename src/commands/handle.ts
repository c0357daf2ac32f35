import { hash } from 'node:crypto'
import type { AuditDraft } from '../audit/entry.ts'
import { OPERATOR, type Principal } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import { AppError, asAppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Command, CommandDefinition, RawCommand } from '../protocol/command.ts'
import { errorReceipt, type Receipt } from '../protocol/receipt.ts'
import type { Registry } from '../protocol/registry.ts'
import type { Decision } from '../rules/rule.ts'
import type { Store, Tx } from '../store/store.ts'
import type {
  Channel,
  CommandAnswer,
  CommandOrigin,
  CommandWork,
  Handler,
  HandlerContext,
  Handlers,
  Speaker,
} from './commands.ts'
import { duplicateChannel } from './duplicate-channel.ts'
import type { HaltState } from './halt-state.ts'
import { type CommandKey, createInFlight, findCommandReceipt, storeCommandReceipt } from './idempotency.ts'
import { changesNothing, identify, peopleOnly, saidBy, signedBy } from './identity.ts'
import type { RateLimits } from './rate-limits.ts'
import { personBehind, type Team } from './team.ts'

/** The one door: HTTP, shell, text, files and people all end here. */
export type Handle = (principal: Principal, raw: RawCommand, origin?: CommandOrigin) => Promise<Receipt>

interface DoorOptions {
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

/** Called with every command and its receipt, for the metrics. */
export type OnHandled = (type: string, receipt: Receipt, milliseconds: number) => void

/**
 * The one door: identity (C3) → audience → schema → idempotency key → halt → duplicate in the other channel → permission and
 * rules → rate → handler → receipt. The handler's changes, the audit entry and the key are written in one transaction.
 * A handler that acts outside the store runs after key, halt and rate; its `commit` then goes through all of them.
 */
export function createHandle(options: DoorOptions): { handle: Handle; onHandled(observe: OnHandled): void } {
  const inFlight = createInFlight()
  const observers: OnHandled[] = []

  async function handle(principal: Principal, raw: RawCommand, origin: CommandOrigin): Promise<Receipt> {
    const checked = checkCommand(options, principal, raw, origin)
    if ('refusal' in checked) return await refuse(options, checked.speaker, raw.type, checked.refusal)
    const { handler, command, definition, speaker } = checked
    const answer =
      handler.perform === undefined
        ? await commit(checked, (context) => handler.handle(context, command.fields, definition))
        : await inFlight.join(checked.key, () => perform(checked, handler.perform))
    options.log.debug({ command: definition.type, speaker: speaker.name }, 'command')
    if (!(answer instanceof AppError)) return answer
    if (answer.code === 'HALTED' && principal.kind === 'agent') options.onHalted(speaker.name)
    return await refuse(options, checked.auditName, definition.type, answer, checked.textKey)
  }

  return {
    async handle(principal, raw, origin = {}) {
      const startedAt = performance.now()
      const observe = (receipt: Receipt) => {
        for (const observer of observers) observer(raw.type, receipt, performance.now() - startedAt)
      }
      try {
        const receipt = await handle(principal, raw, origin)
        observe(receipt)
        return receipt
      } catch (error) {
        observe(errorReceipt(asAppError(error)))
        throw error
      }
    },
    onHandled: (observe) => void observers.push(observe),
  }
}

/** A command that passed identity, audience and schema. */
interface CheckedCommand {
  readonly options: DoorOptions
  readonly team: Team
  readonly speaker: Speaker
  /** Names the speaker in the audit entry of a refusal. */
  readonly auditName: string
  readonly definition: CommandDefinition
  readonly command: Command
  readonly ignored: readonly string[]
  readonly handler: Handler
  readonly channel: Channel | undefined
  readonly key: CommandKey | undefined
  /** The key of a command in an agent's text. The text may be read again, and a refused command stays refused (C25). */
  readonly textKey: CommandKey | undefined
  readonly once: HandlerContext['once']
  /** Set once a handler that acts outside the store has used the door's transaction. */
  isCommitted: boolean
}

/** Pure: decides by what is in memory. */
function checkCommand(
  options: DoorOptions,
  principal: Principal,
  raw: RawCommand,
  { idempotencyKey, channel }: CommandOrigin,
): CheckedCommand | { refusal: AppError; speaker: string } {
  const team = options.team()
  const identified = identify(team, principal, raw)
  if (!identified.ok) return { refusal: identified.error, speaker: principalName(principal) }
  const speaker = identified.value
  // Checked before the schema: an error about fields would explain the command to a speaker who may not send it.
  const forbidden = whyForbidden(team, speaker, options.registry.find(raw.type.trim()), options.handlers)
  if (forbidden !== undefined) return { refusal: forbidden, speaker: speaker.person ?? speaker.name }
  const auditName = speaker.onBehalf ? speaker.name : (speaker.person ?? speaker.name)
  const decoded = options.registry.decode(raw)
  if (!decoded.ok) return { refusal: decoded.error, speaker: auditName }
  const { definition, command, ignored } = decoded.value
  const handler = options.handlers[definition.type]!
  const key = keyOf(handler, speaker, idempotencyKey, definition, command)
  return {
    ...{ options, team, speaker, auditName, definition, command, ignored, handler, channel, key },
    textKey: channel === 'text' ? key : undefined,
    once: createOnce(),
    isCommitted: false,
  }
}

/** Runs `work` in a transaction with every check that needs one, and stores the receipt with the key. */
function commit(checked: CheckedCommand, work: CommandWork): CommandAnswer {
  const { options, speaker, definition, command, handler, key } = checked
  return options.store.write(async (unsigned) => {
    checked.isCommitted = true
    const tx = signedBy(unsigned, speaker.person)
    const earlier = await findCommandReceipt(tx, key)
    if (earlier !== undefined) return earlier
    // Checked in the transaction, because the command may have waited for the store when the halt began.
    const halted = haltRefusal(checked, tx)
    if (halted !== undefined) return halted
    const context: HandlerContext = {
      // After an act outside the store, which may have taken long, the team may have changed.
      team: handler.perform === undefined ? checked.team : options.team(),
      ...{ tx, unsigned, speaker, approved: false, channel: checked.channel, once: checked.once },
    }
    const otherChannel = otherChannelOf(checked, context)
    const duplicate = await otherChannel?.takeReceipt()
    if (duplicate !== undefined) {
      storeCommandReceipt(tx, key, duplicate)
      return duplicate
    }
    const decision = handler.decide?.(context, command.fields, definition) ?? ALLOWED
    if (decision instanceof AppError) return decision
    const limited = rateRefusal(checked)
    if (limited !== undefined) return limited
    if (decision.verdict === 'deny') {
      const blocked = block(context, command, decision)
      storeCommandReceipt(tx, checked.textKey, blocked)
      return blocked
    }
    const receipt =
      decision.verdict === 'ask'
        ? await options.hold(context, definition, command, decision)
        : await work(context)
    if (receipt instanceof AppError) return receipt
    const complete = noteIgnored(tx, checked, receipt)
    storeCommandReceipt(tx, key, complete)
    otherChannel?.storeReceipt(complete)
    return complete
  })
}

/** Runs a handler that acts outside the store. A repetition gets the first receipt and doesn't act again. */
async function perform(checked: CheckedCommand, act: NonNullable<Handler['perform']>): CommandAnswer {
  const { options, team, speaker, command, key } = checked
  const earlier = await findCommandReceipt(options.store, key)
  if (earlier !== undefined) return earlier
  const refusal = haltRefusal(checked) ?? rateRefusal(checked)
  if (refusal !== undefined) return refusal
  const call = { team, speaker, commit: (work: CommandWork) => commit(checked, work) }
  const answer = await act(call, command.fields).catch(asRefusal)
  if (checked.isCommitted || answer instanceof AppError) return answer
  if (key === undefined && checked.ignored.length === 0) return answer
  return await options.store.write(async (unsigned) => {
    const tx = signedBy(unsigned, speaker.person)
    // Another daemon may have acted with the same key.
    const stored = await findCommandReceipt(tx, key)
    if (stored !== undefined) return stored
    const complete = noteIgnored(tx, checked, answer)
    storeCommandReceipt(tx, key, complete)
    return complete
  })
}

function haltRefusal({ options, speaker, handler }: CheckedCommand, tx?: Tx): AppError | undefined {
  if (speaker.principal.kind !== 'agent' || handler.looksOnly || handler.whileHalted) return undefined
  return options.haltState.refusal(tx)
}

/** Takes from the agent's rate once per command, even if its transaction runs again. */
function rateRefusal({ options, team, speaker, handler, once }: CheckedCommand): AppError | undefined {
  if (speaker.principal.kind !== 'agent' || handler.free) return undefined
  const { rateLimits, clock } = options
  const retryAfterMs = once('rate', () => rateLimits.takeCommand(team, speaker.name, clock.now()))
  return retryAfterMs === undefined ? undefined : rateLimited(retryAfterMs)
}

function otherChannelOf(
  { options, handler, channel, speaker, ...checked }: CheckedCommand,
  context: HandlerContext,
) {
  if (channel === undefined || speaker.principal.kind !== 'agent') return undefined
  if (handler.looksOnly || handler.isEachTime) return undefined
  return duplicateChannel(context, options.turnBegan, channel, checked.definition, checked.command)
}

/** Checks the kind of speaker and a person's role; the rules are checked later. */
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
    `The command ${type} cannot be sent; the service creates it when people must decide on something`,
  )
}

function inOwnNameOnly(type: string): AppError {
  return new AppError('FORBIDDEN', `${type} cannot be sent on behalf of an agent`, {
    hint: 'Leave "from" out.',
  })
}

/** Queries have no key: they have no effect to protect, and their answers may be large. */
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

/** Rethrows faults of the service or its disk, which are not refusals. */
function asRefusal(error: unknown): AppError {
  if (!(error instanceof AppError) || /^(INTERNAL|FENCED|SERVICE_STOPPING|STORE_\w+)$/.test(error.code))
    throw error
  return error
}

/** Runs each computation once per command, because a rolled-back transaction runs again. */
function createOnce(): HandlerContext['once'] {
  const results = new Map<string, unknown>()
  return <T>(what: string, compute: () => T): T => {
    if (!results.has(what)) results.set(what, compute())
    return results.get(what) as T
  }
}

/** Runs a held command after a person approved it. A rule that denies it by then still wins. */
export async function runApproved(
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
    data: { command: command.type, rule: decision.rule, ...saidBy(context.speaker) },
  })
  return { status: 'blocked', reason: decision.reason }
}

/** Turns the error into a receipt and audits it. Beyond the rate limit refusals are only counted. */
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
      if ((await findCommandReceipt(tx, key)) === undefined) storeCommandReceipt(tx, key, receipt)
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
    // Later lines of the message may quote a plan or the configuration, which can contain secrets.
    text: `${type.slice(0, 100)} refused: ${error.message.split('\n', 1)[0]}${more}`,
    data: {
      command: type.slice(0, 100),
      code: error.code,
      ...(unwritten === 0 ? {} : { unwritten }),
      ...error.data,
    },
  }
}

/** Names unknown fields in the receipt and in the audit, so that they are not dropped silently. */
function noteIgnored(tx: Tx, { speaker, definition, ignored }: CheckedCommand, receipt: Receipt): Receipt {
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
