import { uptime } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionPort } from '../../runtimes/runtime.ts'
import type { ProgramSession } from '../program.ts'
import { createActivity } from './activity.ts'
import { createConversations } from './conversations.ts'
import { createDialogs } from './dialogs.ts'
import { followEvents } from './event-stream.ts'
import type { Kept } from './kept.ts'
import { createMessages } from './messages.ts'
import { createPrompts } from './prompts.ts'
import type { Message, ServerEvent } from './records.ts'
import type { Server } from './server.ts'
import { createSpeech } from './speech.ts'
import { createSpending } from './spending.ts'
import { showInPane, type View } from './view.ts'
import { createWayIn } from './way-in.ts'
import { ownWords, userText } from './words.ts'

/** What an earlier service sent before it ended may still be on its way into the conversation. */
const SETTLE_MS = 1500
/** A clock that is only corrected a little gives no message an earlier place. */
const SET_BACK_MS = 1000

export interface SessionOptions {
  readonly name: string
  readonly found: boolean
  readonly kept: Kept
  readonly server: Server
  readonly port: SessionPort
  /** What people see of it. */
  view(): Promise<View>
  warn(fields: Record<string, unknown>, text: string): void
  /** When the machine was started, by the clock as it is now: it moves only when the clock is set. */
  bootedAt?(): number
}

/** One agent in opencode, known and spoken to by its HTTP API while people see it in the pane. */
export function openSession(options: SessionOptions): ProgramSession {
  const { kept, server, port, bootedAt = () => Date.now() - uptime() * 1000 } = options
  const activity = createActivity({
    found: options.found,
    changed: (state, evidence) => port.changed(state, evidence),
  })
  const conversations = createConversations(server, kept.conversations)
  const { isSubagent } = conversations
  const messages = createMessages()
  const prompts = createPrompts(port)
  const dialogs = createDialogs({ server, port, changed: activity.dialogs, isSubagent })
  const spend = createSpending(port, server)
  let isClosed = false
  let settled: Promise<unknown> = Promise.resolve()
  let saidUpTo = kept.saidUpTo
  let clock = kept.bootedAt ?? bootedAt()
  /** The answer that grew last while we listened. */
  let latest: string | undefined
  const speech = createSpeech(port, async (messageId) => {
    saidUpTo = messageId
    // Of what is only read again nobody knows whether it is the last that was said.
    if (messageId === latest) clock = bootedAt()
    await keep()
  })

  const keep = () =>
    port.keep({
      port: kept.port,
      conversations: [...conversations.all],
      ...(saidUpTo === undefined ? {} : { saidUpTo, bootedAt: clock }),
    } satisfies Kept)

  const stream = followEvents(server, {
    async connected() {
      if (conversations.present === undefined) await begin()
      await readAgain()
      settled = sleep(SETTLE_MS, undefined, { ref: false })
      activity.connection('up', 'its server answers')
    },
    event: take,
    lost: (reason) => activity.connection('lost', `its server does not answer: ${reason}`),
    strange: (error) => options.warn({ err: error }, 'opencode told something in a way that is not known'),
  })

  async function begin() {
    const { id } = await server.createConversation(options.name)
    // All of it is this agent's: none of its words are older than itself, though the clock be set back.
    conversations.add({ id, since: 0 })
    await keep()
    void showInPane({
      show: () => server.show(id),
      view: options.view,
      isWanted: () => !isClosed && conversations.present?.id === id,
    })
  }

  /** Everything that may have happened while nobody listened. */
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
      for (const message of await messagesSince(id, since)) learn(messages.restore(message))
      if (statuses[id] === undefined) messages.forget(id)
    }
  }

  /**
   * From the last message that was said on, for it may have had more to say. Ids follow the clock: once that was set
   * back, what came since may stand anywhere, and all is read again; what was said twice acts once (C25).
   */
  async function messagesSince(conversation: string, since: number): Promise<Message[]> {
    const found: Message[][] = []
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

  async function take(event: ServerEvent): Promise<void> {
    switch (event.type) {
      case 'session.created':
        return conversations.created(event.properties.info.id, event.properties.info.parentID)
      case 'session.status':
        return takeStatus(event.properties)
      case 'session.error':
        return await brokeOff(event.properties)
      case 'message.updated': {
        const { info } = event.properties
        if (info.role === 'user' && (await conversations.meet(info))) await keep()
        if (info.role === 'assistant') latest = info.id
        learn(messages.take(info))
        return
      }
      case 'message.part.updated': {
        const message = messages.takePart(event.properties.part)
        // Its turn begins now; the word that it has begun comes a moment later.
        if (message !== undefined && learn(message))
          activity.status(message.info.sessionID, true, `it has ${message.info.id} to answer`)
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

  function takeStatus({ sessionID, status }: EventOf<'session.status'>) {
    const isBusy = status.type !== 'idle'
    if (!isBusy) {
      dialogs.turnEnded(sessionID)
      messages.forget(sessionID)
    }
    const why = status.message === undefined ? '' : `: ${status.message}`
    activity.status(sessionID, isBusy, `session.status ${status.type}${why}`)
  }

  async function brokeOff({ sessionID, error }: EventOf<'session.error'>) {
    if (sessionID === undefined || error === undefined) return
    messages.breakOff(sessionID, error)
    const isBusy = ((await server.statuses())[sessionID]?.type ?? 'idle') !== 'idle'
    const reason = [error.name, error.data?.message].filter(Boolean).join(': ')
    activity.status(sessionID, isBusy, `the turn broke off: ${reason}`)
  }

  /** Takes in a message as it is now, however often. Says whether it is the one that was just given to the agent. */
  function learn(message: Message): boolean {
    const { info, parts } = message
    const conversation = conversations.find(info.sessionID)
    if (info.role === 'user') {
      if (conversation === undefined || parts.length === 0) return false
      const isGiven = prompts.stands(info.id, info.sessionID, userText(message))
      prompts.met(info.id)
      return isGiven
    }
    const isOwn = conversation !== undefined && info.summary !== true
    void spend(info, isOwn)
    if (!isOwn) return false
    prompts.met(info.id)
    if (parts.length > 0 && info.parentID !== undefined)
      prompts.answerBegan(info.id, info.sessionID, info.parentID)
    for (const part of ownWords(message)) {
      if ((part.time?.start ?? 0) >= conversation.since) speech.add(part)
    }
    return false
  }

  async function close(evidence: string) {
    isClosed = true
    speech.close()
    dialogs.close(evidence)
    await stream.close()
  }

  return {
    get state() {
      return activity.state
    },
    ...createWayIn({ server, conversations, activity, prompts, settled: () => settled }),
    exited(evidence) {
      activity.connection('ended', evidence)
      void close(evidence)
    },
    // Its server is the pane's own process.
    close: () => close('opencode is no longer followed'),
  }
}

type EventOf<Type extends ServerEvent['type']> = Extract<ServerEvent, { type: Type }>['properties']
