import { uptime } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionPort } from '../../runtimes/runtime.ts'
import { createAgentOutput } from '../agent-output.ts'
import type { ProgramSession } from '../program.ts'
import { createActivity } from './activity.ts'
import { createConversations, type OpenCodeSavedState } from './conversations.ts'
import { createDelivery, createPrompts } from './deliver.ts'
import { createDialogs } from './dialogs.ts'
import {
  type MessageInfo,
  type OpenCodeEvent,
  type OpenCodeFailure,
  type OpenCodeMessage,
  type OpenCodePart,
  ownTexts,
  userText,
} from './records.ts'
import { followEvents, type OpenCodeServer } from './server.ts'
import { showInPane, type TerminalView } from './terminal-view.ts'

/** A message sent by an earlier service may still be on its way into the conversation. */
const SETTLE_MS = 1500
/** A small clock correction reorders no messages. */
const SET_BACK_MS = 1000

interface OpenCodeSessionOptions {
  readonly name: string
  readonly found: boolean
  readonly savedState: OpenCodeSavedState
  readonly server: OpenCodeServer
  readonly port: SessionPort
  /** The terminal view in the pane. */
  view(): Promise<TerminalView>
  warn(fields: Record<string, unknown>, text: string): void
  /** Boot time by the current clock: it changes only when the clock is set. */
  bootedAt?(): number
}

/**
 * An agent in opencode, followed and controlled by its HTTP API while people see it in the pane. The states are those of
 * activity.ts. The event stream is `connecting` (also after it broke; each connection reads the conversation again from
 * `saidUpTo`), `settling` (SETTLE_MS, in which a message sent by an earlier service can still appear, so `locate` waits)
 * and `following`; `isClosed` is final. `clock` is the boot time at the last processed answer: message ids sort by the
 * clock, so a clock set back by more than SET_BACK_MS makes `saidUpTo` unusable.
 */
export function openSession(options: OpenCodeSessionOptions): ProgramSession {
  const { savedState, server, port, bootedAt = () => Date.now() - uptime() * 1000 } = options
  const activity = createActivity({
    found: options.found,
    changed: (state, evidence) => port.onStateChange(state, evidence),
  })
  const conversations = createConversations(server, savedState.conversations)
  const { isSubagent } = conversations
  const messages = createMessages()
  const prompts = createPrompts(port)
  const dialogs = createDialogs({ server, port, changed: activity.dialogs, isSubagent })
  const reportSpending = createSpending(port, server)
  let isClosed = false
  let settled: Promise<unknown> = Promise.resolve()
  let saidUpTo = savedState.saidUpTo
  let clock = savedState.bootedAt ?? bootedAt()
  /** The answer that grew last while we listened. */
  let latest: string | undefined
  const output = createAgentOutput<string>({
    ...{ onText: port.onText, log: { warn: options.warn } },
    async onProcessed(messageId) {
      saidUpTo = messageId
      // For messages only read again, it is unknown whether they are the last.
      if (messageId === latest) clock = bootedAt()
      await save()
    },
  })

  const save = () =>
    port.saveState({
      port: savedState.port,
      conversations: [...conversations.all],
      ...(saidUpTo === undefined ? {} : { saidUpTo, bootedAt: clock }),
    } satisfies OpenCodeSavedState)

  const stream = followEvents(server, {
    async connected() {
      if (conversations.present === undefined) await begin()
      await readAgain()
      settled = sleep(SETTLE_MS, undefined, { ref: false })
      activity.connection('up', 'its server answers')
    },
    event: take,
    lost: (reason) => activity.connection('lost', `its server does not answer: ${reason}`),
    unexpected: (error) => options.warn({ err: error }, 'opencode sent an unexpected event'),
  })

  async function begin() {
    const { id } = await server.createConversation(options.name)
    // All of it is this agent's, even if the clock is set back.
    conversations.add({ id, since: 0 })
    await save()
    void showInPane({
      show: () => server.show(id),
      view: options.view,
      isWanted: () => !isClosed && conversations.present?.id === id,
    })
  }

  /** Catches up on everything missed while not connected. */
  async function readAgain() {
    const [statuses, permissions, questions] = await Promise.all([
      server.statuses(),
      server.permissions(),
      server.questions(),
    ])
    activity.reread(Object.keys(statuses).filter((id) => statuses[id]?.type !== 'idle'))
    dialogs.keepOnly(new Set([...permissions, ...questions].map(({ id }) => id)))
    for (const request of permissions) dialogs.permission(request)
    for (const request of questions) dialogs.question(request)
    for (const { id, since } of conversations.all) {
      for (const message of await messagesSince(id, since)) processMessage(messages.restore(message))
      if (statuses[id] === undefined) messages.forget(id)
    }
  }

  /**
   * Starts at the last processed message, which may have grown. Ids follow the clock: if it was set back,
   * newer messages may be anywhere, so everything is read again; repeated text acts once (C25).
   */
  async function messagesSince(conversation: string, since: number): Promise<OpenCodeMessage[]> {
    const found: OpenCodeMessage[][] = []
    const isSetBack = bootedAt() < clock - SET_BACK_MS
    const from = isSetBack ? undefined : saidUpTo
    for await (const page of server.pages(conversation)) {
      const news = page.filter(
        ({ info }) => info.time.created >= since && (from === undefined || info.id >= from),
      )
      found.unshift(news)
      if (news.length < page.length) break
    }
    return found.flat()
  }

  async function take(event: OpenCodeEvent): Promise<void> {
    switch (event.type) {
      case 'session.created':
        return conversations.created(event.properties.info.id, event.properties.info.parentID)
      case 'session.status':
        return takeStatus(event.properties)
      case 'session.error':
        return await turnFailed(event.properties)
      case 'message.updated': {
        const { info } = event.properties
        if (info.role === 'user' && (await conversations.adoptIfNew(info))) await save()
        if (info.role === 'assistant') latest = info.id
        processMessage(messages.take(info))
        return
      }
      case 'message.part.updated': {
        const message = messages.takePart(event.properties.part)
        // The turn begins now; the event follows shortly.
        if (message !== undefined && processMessage(message))
          activity.status(message.info.sessionID, true, `it has yet to answer ${message.info.id}`)
        return
      }
      case 'permission.asked':
        return dialogs.permission(event.properties)
      case 'question.asked':
        return dialogs.question(event.properties)
      case 'permission.replied':
      case 'question.replied':
      case 'question.rejected':
        return dialogs.closed(event.properties.requestID, event.type)
    }
  }

  function takeStatus({ sessionID, status }: OpenCodeEventOf<'session.status'>) {
    const isBusy = status.type !== 'idle'
    if (!isBusy) {
      dialogs.turnEnded(sessionID)
      messages.forget(sessionID)
    }
    const why = status.message === undefined ? '' : `: ${status.message}`
    activity.status(sessionID, isBusy, `session.status ${status.type}${why}`)
  }

  async function turnFailed({ sessionID, error }: OpenCodeEventOf<'session.error'>) {
    if (sessionID === undefined || error === undefined) return
    messages.markAborted(sessionID, error)
    const isBusy = ((await server.statuses())[sessionID]?.type ?? 'idle') !== 'idle'
    const reason = [error.name, error.data?.message].filter(Boolean).join(': ')
    activity.status(sessionID, isBusy, `the turn failed: ${reason}`)
  }

  /**
   * Processes a message in its current state, any number of times. Returns whether it is the one just
   * delivered.
   */
  function processMessage(message: OpenCodeMessage): boolean {
    const { info, parts } = message
    const conversation = conversations.find(info.sessionID)
    if (info.role === 'user') {
      if (conversation === undefined || parts.length === 0) return false
      const isGiven = prompts.recorded(info.id, info.sessionID, userText(message))
      prompts.noteId(info.id)
      return isGiven
    }
    const isOwn = conversation !== undefined && info.summary !== true
    void reportSpending(info, isOwn)
    if (!isOwn) return false
    prompts.noteId(info.id)
    if (parts.length > 0 && info.parentID !== undefined)
      prompts.answerBegan(info.id, info.sessionID, info.parentID)
    for (const { id: key, text = '', messageID, time } of ownTexts(message)) {
      if ((time?.start ?? 0) >= conversation.since) output.say({ text, channel: 'api', key }, messageID)
    }
    return false
  }

  async function close(evidence: string) {
    isClosed = true
    output.close()
    dialogs.close(evidence)
    await stream.close()
  }

  return {
    get state() {
      return activity.state
    },
    ...createDelivery({ server, conversations, activity, prompts, settled: () => settled }),
    onExit(evidence) {
      activity.connection('ended', evidence)
      void close(evidence)
    },
    // The server is the pane's own process.
    close: () => close('opencode is no longer followed'),
  }
}

type OpenCodeEventOf<Type extends OpenCodeEvent['type']> = Extract<
  OpenCodeEvent,
  { type: Type }
>['properties']

/** Messages assembled from events: first the message, then its parts, each again on every change. */
function createMessages() {
  const growing = new Map<string, OpenCodeMessage>()

  return {
    take(info: MessageInfo): OpenCodeMessage {
      const message = { info, parts: growing.get(info.id)?.parts ?? [] }
      growing.set(info.id, message)
      return message
    },
    /** A message that was read whole. */
    restore(message: OpenCodeMessage): OpenCodeMessage {
      growing.set(message.info.id, message)
      return message
    },
    /** Undefined for a part of an irrelevant message. */
    takePart(part: OpenCodePart): OpenCodeMessage | undefined {
      const known = growing.get(part.messageID)
      if (known === undefined) return undefined
      const others = known.parts.filter(({ id }) => id !== part.id)
      const parts = [...others, part].sort((a, b) => (a.id < b.id ? -1 : 1))
      const message = { ...known, parts }
      growing.set(part.messageID, message)
      return message
    },
    /** The turn has ended: an idle agent's conversation is not kept in memory. */
    forget(conversation: string) {
      for (const [id, { info }] of growing) if (info.sessionID === conversation) growing.delete(id)
    },
    /** The turn was aborted; its messages show that only later. */
    markAborted(conversation: string, error: OpenCodeFailure) {
      for (const [id, { info, parts }] of growing) {
        if (info.sessionID === conversation && info.role === 'assistant')
          growing.set(id, { info: { ...info, error }, parts })
      }
    },
  }
}

/** Reports each answer's cost, and the context size of the agent's own conversation (C26). */
function createSpending(port: Pick<SessionPort, 'onUsage'>, server: OpenCodeServer) {
  let windows: Promise<ReadonlyMap<string, number>> | undefined
  let last = ''

  async function windowOf(model: string): Promise<number | undefined> {
    windows ??= readWindows(server)
    try {
      const known = (await windows).get(model)
      // The model was added after the list was read: read it again next time.
      if (known === undefined) windows = undefined
      return known
    } catch {
      windows = undefined
      return undefined
    }
  }

  return async (info: MessageInfo, isOwn: boolean): Promise<void> => {
    const { id, tokens, time } = info
    if (tokens === undefined || time.completed === undefined || id === last) return
    last = id
    const { input, cache } = tokens
    const model = `${info.providerID ?? ''}/${info.modelID ?? ''}`
    const contextTokens = input + cache.read + cache.write
    // An interrupted answer has no figures.
    if (contextTokens === 0) return
    const output = tokens.output + tokens.reasoning
    const spent = { key: id, input, output, cacheRead: cache.read, cacheWrite: cache.write }
    const window = isOwn ? await windowOf(model) : undefined
    port.onUsage({
      model,
      spent,
      ...(isOwn ? { contextTokens } : {}),
      ...(window === undefined ? {} : { contextWindow: window }),
    })
  }
}

async function readWindows(server: OpenCodeServer): Promise<ReadonlyMap<string, number>> {
  const { providers } = await server.providers()
  return new Map(
    providers.flatMap(({ id, models }) =>
      Object.entries(models).flatMap(([model, { limit }]) =>
        limit === undefined ? [] : [[`${id}/${model}`, limit.context] as const],
      ),
    ),
  )
}
