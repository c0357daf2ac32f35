import type {
  AnswerOf,
  AuditEntryAnswer,
  BodyOf,
  MailAnswer,
  QueryOf,
  ReceiptAnswer,
  RunUpdate,
  TaskStreamEvent,
} from '../api/contract.ts'
import type { CommandType, FieldsOf } from '../protocol/command.ts'
import { backoff, reconnecting, wait } from './backoff.ts'
import { type ReceiveOptions, receiveMail } from './receive.ts'
import {
  createTransport,
  type FetchLike,
  type HttpRequest,
  isTemporary,
  newIdempotencyKey,
  parse,
  readEvents,
  readLines,
  refusal,
} from './transport.ts'

export type { ReceiveOptions } from './receive.ts'
export { ClientError, type FetchAnswer, type FetchInit, type FetchLike } from './transport.ts'

interface ClientOptions {
  /** The address that the service printed: `http://127.0.0.1:7420`. */
  url: string
  /** Token of an agent or a person. It is sent in a header, never in a URL. */
  token: string
  /** Replaces the built-in fetch, for example over a Unix socket. */
  fetch?: FetchLike
  /** Retries of a command whose connection broke; its idempotency key keeps it from acting twice. */
  retries?: number
}

/** The built-in commands with their parameters, and any other command of the service. */
type CommandInput =
  | { [T in CommandType]: { type: T } & Partial<FieldsOf<T>> }[CommandType]
  | ({ type: string } & Record<string, unknown>)

interface CommandOptions {
  /** The same key acts once (C25). Default: a new key. */
  idempotencyKey?: string
  signal?: AbortSignal
}

interface StreamOptions {
  signal?: AbortSignal
}

interface EndingStreamOptions extends StreamOptions {
  /** False: end when the connection breaks. */
  reconnect?: boolean
}

export type Client = ReturnType<typeof createClient>

/** Error codes of requests that did not reach the door, and so have no receipt. */
const NO_RECEIPT: ReadonlySet<string> = new Set([
  'UNAUTHENTICATED',
  'FORBIDDEN_HOST',
  'INVALID_REQUEST',
  'METHOD_NOT_ALLOWED',
  'NOT_FOUND',
  'SERVICE_STOPPING',
])
const RETRIES = 3
/** The service writes to every stream each 15 s: after two missed writes the connection is dead. */
const SILENCE_MS = 40_000

/**
 * Typed client of the service for programs and browsers. Receipts are returned, whatever their status; other failures
 * throw a ClientError with code, hint and HTTP status.
 */
export function createClient({ url, token, fetch, retries = RETRIES }: ClientOptions) {
  const transport = createTransport(url, token, fetch)

  async function request<Answer>(options: HttpRequest): Promise<Answer> {
    const { status, text } = await transport.send(options)
    const answer = status === 200 ? parse(text) : undefined
    if (answer === undefined) throw refusal(status, text)
    return answer as Answer
  }
  const get = <Answer>(path: string, query: object = {}, signal?: AbortSignal) =>
    request<Answer>({ method: 'GET', path, query, signal })
  const post = <Answer>(path: string, body: unknown) =>
    request<Answer>({ method: 'POST', path, headers: JSON_BODY, body: JSON.stringify(body) })
  const remove = <Answer>(path: string) => request<Answer>({ method: 'DELETE', path })

  /** Retries after broken connections; the key makes it act once, however often it arrives. */
  function postOnce<Answer>(
    path: string,
    body: string,
    { idempotencyKey = newIdempotencyKey(), signal }: CommandOptions = {},
    type = JSON_BODY,
    send: (options: HttpRequest) => Promise<Answer> = request,
  ): Promise<Answer> {
    const headers = { ...type, 'idempotency-key': idempotencyKey }
    return retry(signal, () => send({ method: 'POST', path, headers, body, signal }))
  }

  /** Reads answers that are not JSON. */
  async function text(path: string, query: object = {}): Promise<string> {
    const answer = await transport.send({ method: 'GET', path, query })
    if (answer.status !== 200) throw refusal(answer.status, answer.text)
    return answer.text
  }

  /** A receipt is an answer, whatever its status. */
  async function requestReceipt<Answer>(options: HttpRequest): Promise<Answer> {
    const { status, text } = await transport.send(options)
    const answer = parse(text) as { status?: string; code?: string } | undefined
    const isReceipt = Array.isArray(answer) || typeof answer?.status === 'string'
    if (!isReceipt || NO_RECEIPT.has(answer.code ?? '')) throw refusal(status, text)
    return answer as Answer
  }
  const sendCommands = <Answer>(body: string, options: CommandOptions, type = JSON_BODY) =>
    postOnce<Answer>('/api/v1/commands', body, options, type, requestReceipt)

  /** Retries requests that have a key or change nothing. */
  async function retry<T>(signal: AbortSignal | undefined, once: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await once()
      } catch (error) {
        if (!isTemporary(error) || failures >= retries || signal?.aborted === true) throw error
        await wait(backoff(failures), signal)
      }
    }
  }

  /** Yields the events of one connection and updates the position from which the next one continues. */
  async function* readStream<Event>(
    path: string,
    position: { last: string | undefined },
    signal: AbortSignal | undefined,
    alive: () => void,
  ): AsyncGenerator<Event> {
    const headers = {
      accept: 'text/event-stream',
      ...(position.last === undefined ? {} : { 'last-event-id': position.last }),
    }
    const pieces = await transport.open({ method: 'GET', path, headers, signal, silenceMs: SILENCE_MS })
    alive()
    for await (const { id, data } of readEvents(pieces)) {
      position.last = id ?? position.last
      if (data !== undefined) yield JSON.parse(data) as Event
    }
  }

  /** Streams events without positions; after a broken connection it starts again. */
  const follow = <Event>(path: string, signal: AbortSignal | undefined) =>
    reconnecting((alive) => readStream<Event>(path, { last: undefined }, signal, alive), signal)

  /** Streams events up to and including the one of type `end`. */
  async function* readToEnd<Event extends { type: string }>(
    path: string,
    { after, signal, reconnect = true }: { after?: unknown } & EndingStreamOptions,
  ): AsyncGenerator<Event> {
    const position = { last: after === undefined ? undefined : String(after) }
    const read = (alive: () => void) => readStream<Event>(path, position, signal, alive)
    for await (const event of reconnect ? reconnecting(read, signal) : read(() => {})) {
      yield event
      if (event.type === 'end') return
    }
  }

  const command = (one: CommandInput, options: CommandOptions = {}) =>
    sendCommands<ReceiptAnswer>(JSON.stringify(one), options)
  const next = (query: QueryOf<'nextDeliveries'> = {}, signal?: AbortSignal) =>
    get<AnswerOf<'nextDeliveries'>>('/api/v1/deliveries/next', query, signal)
  const acknowledge = (ids: readonly string[], agent?: string) =>
    command({ type: 'acknowledge', ids: [...ids], ...(agent === undefined ? {} : { agent }) })

  return {
    /** Creates a single-use link that signs a browser in. */
    mintLogin: () => post<AnswerOf<'mintLogin'>>('/api/v1/logins', {}),
    /** Exchanges the code of a sign-in link for a session. */
    openSession: (code: string) => post<AnswerOf<'openSession'>>('/api/v1/sessions', { code }),
    closeSession: () => remove<AnswerOf<'closeSession'>>('/api/v1/session'),
    me: () => get<AnswerOf<'me'>>('/api/v1/me'),

    health: () => get<AnswerOf<'health'>>('/healthz'),

    command,
    /** Sends all in order; they share one sync to disk. */
    commands: (many: readonly CommandInput[], options: CommandOptions = {}) =>
      sendCommands<ReceiptAnswer[]>(JSON.stringify(many), options),
    /** Sends the commands found in a text, as an agent writes them. */
    text: (text: string, options: CommandOptions = {}) =>
      sendCommands<ReceiptAnswer[]>(text, options, TEXT_BODY),
    commandTypes: () => get<AnswerOf<'commandTypes'>>('/api/v1/commands'),

    agents: () => get<AnswerOf<'agents'>>('/api/v1/agents'),
    /** The text of an agent's terminal. */
    terminal: (agent: string, query: QueryOf<'terminal'> = {}) =>
      get<AnswerOf<'terminal'>>(`${agentPath(agent)}/terminal`, query),
    /** Streams an agent's terminal; after a broken connection it starts again with every row. */
    terminalEvents(agent: string, { signal, for: purpose }: StreamOptions & QueryOf<'terminalEvents'> = {}) {
      const query = purpose === undefined ? '' : `?for=${purpose}`
      return follow<AnswerOf<'terminalEvents'>>(`${agentPath(agent)}/terminal/events${query}`, signal)
    },
    takeTerminal: (agent: string) =>
      post<AnswerOf<'takeTerminal'>>(`${agentPath(agent)}/terminal/take-over`, {}),
    releaseTerminal: (agent: string) =>
      remove<AnswerOf<'releaseTerminal'>>(`${agentPath(agent)}/terminal/take-over`),
    typeKeys: (agent: string, body: BodyOf<'typeKeys'>) =>
      post<AnswerOf<'typeKeys'>>(`${agentPath(agent)}/terminal/keys`, body),
    /** Actions that are possible for an agent now, and why the others aren't. */
    agentActions: (agent: string) => get<AnswerOf<'agentActions'>>(`${agentPath(agent)}/actions`),
    /** Interrupts an agent's turn; the answer says whether it ended. */
    interrupt: (agent: string) => post<AnswerOf<'interrupt'>>(`${agentPath(agent)}/interrupt`, {}),
    /** The agent's recent output. */
    transcript: (agent: string) => get<AnswerOf<'transcript'>>(`${agentPath(agent)}/transcript`),
    figures: (query: QueryOf<'figures'> = {}) => get<AnswerOf<'figures'>>('/api/v1/figures', query),
    rulesMatrix: (query: QueryOf<'rulesMatrix'> = {}) =>
      get<AnswerOf<'rulesMatrix'>>('/api/v1/rules/matrix', query),
    /** Stops the service, and its agents unless they are left running. */
    stop: (agents: 'end' | 'leave') => post<AnswerOf<'stop'>>('/api/v1/stop', { agents }),
    /** Halts the team at once; `go` ends the halt. */
    halt: (body: BodyOf<'halt'> = {}) => post<AnswerOf<'halt'>>('/api/v1/halt', body),
    go: () => post<AnswerOf<'go'>>('/api/v1/go', {}),
    webhooks: () => get<AnswerOf<'webhooks'>>('/api/v1/webhooks'),
    testWebhook: (name: string) =>
      post<AnswerOf<'testWebhook'>>(`/api/v1/webhooks/${encodeURIComponent(name)}/test`, {}),
    prompt: (agent: string) => get<AnswerOf<'prompt'>>(`/api/v1/prompts/${encodeURIComponent(agent)}`),
    explain: (query: QueryOf<'explain'>) => get<AnswerOf<'explain'>>('/api/v1/rules/explain', query),

    messages: (query: QueryOf<'messages'> = {}) => get<AnswerOf<'messages'>>('/api/v1/messages', query),
    message: (id: string) => get<AnswerOf<'message'>>(`/api/v1/messages/${encodeURIComponent(id)}`),
    mailbox: (query: QueryOf<'mailbox'> = {}) => get<AnswerOf<'mailbox'>>('/api/v1/mailbox', query),

    deliveries: (query: QueryOf<'deliveries'> = {}) =>
      get<AnswerOf<'deliveries'>>('/api/v1/deliveries', query),
    /** Waits for messages and takes them. Unacknowledged messages come again. */
    next,
    acknowledge,
    /** Handles messages one by one, and acknowledges each after its handler. Ends with the signal. */
    receive: (options: ReceiveOptions, handler: (message: MailAnswer) => Promise<void> | void) =>
      receiveMail({ next, acknowledge }, options, handler),

    tasks: (query: QueryOf<'tasks'> = {}) => get<AnswerOf<'tasks'>>('/api/v1/tasks', query),
    task: (id: string) => get<AnswerOf<'task'>>(`/api/v1/tasks/${encodeURIComponent(id)}`),
    trace: (id: string, query: QueryOf<'trace'> = {}) =>
      get<AnswerOf<'trace'>>(`/api/v1/tasks/${encodeURIComponent(id)}/trace`, query),
    /** Asks the team; follow it with taskEvents. The key makes it act once, however often it is sent. */
    ask: (question: BodyOf<'ask'>, options?: CommandOptions) =>
      postOnce<AnswerOf<'ask'>>('/api/v1/asks', JSON.stringify(question), options),
    /** Streams the events of a task and its children to the end, without gaps after broken connections. */
    taskEvents: (id: string, options: QueryOf<'taskEvents'> & EndingStreamOptions = {}) =>
      readToEnd<TaskStreamEvent>(`/api/v1/tasks/${encodeURIComponent(id)}/events`, options),

    /** Starts a run; follow it with runEvents. The key makes it act once, however often it is sent. */
    startRun: (run: BodyOf<'startRun'>, options?: CommandOptions) =>
      postOnce<AnswerOf<'startRun'>>('/api/v1/runs', JSON.stringify(run), options),
    runs: (query: QueryOf<'runs'> = {}) => get<AnswerOf<'runs'>>('/api/v1/runs', query),
    run: (id: string) => get<AnswerOf<'run'>>(runPath(id)),
    resumeRun: (id: string, body: BodyOf<'resumeRun'> = {}) =>
      post<AnswerOf<'resumeRun'>>(`${runPath(id)}/resume`, body),
    cancelRun: (id: string, body: BodyOf<'cancelRun'> = {}) =>
      post<AnswerOf<'cancelRun'>>(`${runPath(id)}/cancel`, body),
    sendToRun: (id: string, body: BodyOf<'sendToRun'>) =>
      post<AnswerOf<'sendToRun'>>(`${runPath(id)}/messages`, body),
    /** Streams the events of a run to its end, without gaps after broken connections. */
    runEvents: (
      id: string,
      { round = 'last', ...options }: QueryOf<'runEvents'> & EndingStreamOptions = {},
    ) => readToEnd<RunUpdate>(`${runPath(id)}/events?round=${round}`, options),
    /** The log of an attempt, and the output files of an agent. */
    runLog: (id: string, agent: string, query: QueryOf<'runLog'> = {}) =>
      get<AnswerOf<'runLog'>>(`${runPath(id)}/agents/${encodeURIComponent(agent)}/log`, query),
    /** Calls back whenever an attempt has printed more. */
    runLogEvents(id: string, agent: string, attempt: number, { signal }: StreamOptions = {}) {
      const path = `${runPath(id)}/agents/${encodeURIComponent(agent)}/log/events?attempt=${attempt}`
      return follow<AnswerOf<'runLogEvents'>>(path, signal)
    },
    runOutput: (id: string, agent: string, path: string) =>
      get<AnswerOf<'runOutput'>>(`${runPath(id)}/agents/${encodeURIComponent(agent)}/output`, { path }),
    /** The report of a run, as Markdown or HTML. */
    runReport: (id: string, query: QueryOf<'runReport'> = {}) => text(`${runPath(id)}/report`, query),
    /** Asks a model for a plan; starts nothing. */
    proposePlan: (body: BodyOf<'proposePlan'>) => post<AnswerOf<'proposePlan'>>('/api/v1/plans', body),

    humanRequests: (query: QueryOf<'humanRequests'> = {}) =>
      get<AnswerOf<'humanRequests'>>('/api/v1/human-requests', query),
    humanRequest: (id: string) =>
      get<AnswerOf<'humanRequest'>>(`/api/v1/human-requests/${encodeURIComponent(id)}`),
    decide: (id: string, verdict: BodyOf<'decide'>) =>
      post<AnswerOf<'decide'>>(`/api/v1/human-requests/${encodeURIComponent(id)}/verdict`, verdict),

    /** Reads the audit entry by entry, however long it is. */
    async *audit(query: QueryOf<'audit'> = {}, { signal }: StreamOptions = {}) {
      const headers = { accept: 'application/x-ndjson' }
      const pieces = await transport.open({ method: 'GET', path: '/api/v1/audit', query, headers, signal })
      for await (const line of readLines(pieces)) yield JSON.parse(line) as AuditEntryAnswer
    },
    verifyAudit: () => get<AnswerOf<'auditVerify'>>('/api/v1/audit/verify'),
    /** Streams the audit without gaps after broken connections, which `onLink` reports. Ends with the signal. */
    events({
      after,
      signal,
      onLink,
      longestMs,
    }: QueryOf<'events'> &
      StreamOptions & {
        onLink?: (isUp: boolean) => void
        /** The longest pause between two attempts. */
        longestMs?: number
      } = {}): AsyncGenerator<AuditEntryAnswer> {
      const position = { last: after === undefined ? undefined : String(after) }
      return reconnecting(
        async function* (alive) {
          try {
            yield* readStream<AuditEntryAnswer>('/api/v1/events', position, signal, () => {
              alive()
              onLink?.(true)
            })
          } finally {
            onLink?.(false)
          }
        },
        signal,
        longestMs,
      )
    },

    /** Calls back on changes that the audit doesn't contain. Ends with the signal. */
    changes: (of: 'github' | 'moderation', { signal }: StreamOptions = {}) =>
      follow<AnswerOf<'githubChanges'>>(`/api/v1/${of}/changes`, signal),
    github: (query: QueryOf<'github'> = {}) => get<AnswerOf<'github'>>('/api/v1/github', query),
    githubSetup: () => get<AnswerOf<'githubSetup'>>('/api/v1/github/setup'),
    /** Processes a payload as if GitHub had just sent it. */
    replayEvent: (body: BodyOf<'replayEvent'>) =>
      post<AnswerOf<'replayEvent'>>('/api/v1/github/events', body),
    githubEvent: (delivery: string) =>
      get<AnswerOf<'githubEvent'>>(`/api/v1/github/events/${encodeURIComponent(delivery)}`),
    /** For moderators only. */
    moderation: (query: QueryOf<'moderation'> = {}) =>
      get<AnswerOf<'moderation'>>('/api/v1/moderation', query),
    closeModeration: (id: string, body: BodyOf<'closeModeration'>) =>
      post<AnswerOf<'closeModeration'>>(`/api/v1/moderation/${encodeURIComponent(id)}`, body),

    state: () => get<AnswerOf<'state'>>('/api/v1/state'),
    tokens: () => get<AnswerOf<'tokens'>>('/api/v1/tokens'),
    mintToken: (agent: string) => post<AnswerOf<'mintToken'>>('/api/v1/tokens', { agent }),
    revokeTokens: (which: string) =>
      remove<AnswerOf<'revokeTokens'>>(`/api/v1/tokens/${encodeURIComponent(which)}`),
    metrics: () => text('/metrics'),
    openapi: () => get<AnswerOf<'openapi'>>('/openapi.json'),
  }
}

const agentPath = (agent: string) => `/api/v1/agents/${encodeURIComponent(agent)}`
const runPath = (id: string) => `/api/v1/runs/${encodeURIComponent(id)}`

const JSON_BODY = { 'content-type': 'application/json' }
const TEXT_BODY = { 'content-type': 'text/plain; charset=utf-8' }
