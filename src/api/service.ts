import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import * as agents from '../agents/routes.ts'
import * as audit from '../audit/routes.ts'
import { AppError } from '../base/errors.ts'
import type { Engine } from '../engine.ts'
import * as github from '../github/routes.ts'
import * as messages from '../messages/routes.ts'
import * as people from '../people/routes.ts'
import * as runs from '../runs/routes.ts'
import * as tasks from '../tasks/routes.ts'
import * as webhooks from '../webhooks/routes.ts'
import { createFeed } from './audit-feed.ts'
import { type ApiCaller, type Authenticator, createAuthenticator } from './authenticate.ts'
import { cookieName, createLogins } from './browser-sessions.ts'
import { listCommandTypes, receiveCommands, sendCommand } from './command-routes.ts'
import { ROUTES, type Route, type RouteName } from './contract.ts'
import {
  type ApiContext,
  handleRequest,
  type McpEndpoint,
  type RouteHandler,
  type ServiceInfo,
} from './handle-request.ts'
import { createHosts } from './host-origin-check.ts'
import { refuse } from './http-response.ts'
import { type Listen, listenOn } from './listen.ts'
import { createMetrics } from './metrics.ts'
import { createOpenCalls } from './open-calls.ts'
import * as ownRoutes from './routes.ts'
import { openStaticFiles, type StaticFiles } from './static-files.ts'

export interface ServiceOptions extends ServiceInfo {
  engine: Engine
  listen: Listen
  /** Host names, besides localhost and the address itself, under which the service may be reached. */
  allowedHosts: readonly string[]
  /** The folder with the built control room; without it the service has none. */
  pages?: string
}

export interface Service {
  /** `http://host:port` or `unix:/path`. */
  readonly url: string
  /** Undefined on a Unix socket. */
  readonly port: number | undefined
  /** Ends streams and long polls at once, lets other requests finish, and frees the port. */
  close(): Promise<void>
}

/** Longer than any request except a stream takes, and shorter than people wait for a service to stop. */
const GRACE_MS = 5000

/** Starts the HTTP API of an engine, including event streams, long polls, metrics and the OpenAPI document. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { engine, listen, allowedHosts } = options
  const { store, tokens, log } = engine
  const openCalls = createOpenCalls(store, tokens, engine.clock.now)
  const feed = createFeed(store, log)
  const metrics = createMetrics(engine, openCalls)
  const pages = openStaticFiles(options.pages)
  let port: number | undefined
  const cookie = () => cookieName(port)
  const context: ApiContext = {
    ...options,
    metrics,
    feed,
    openCalls,
    mcp: mcpOnDemand(options),
    logins: createLogins(engine.clock),
    cookie,
  }
  // The port is known only after binding; no request arrives before that.
  let hosts = createHosts({ allowed: [] })
  const listening = await listenOn(
    listen,
    createListener(context, createAuthenticator({ hosts: () => hosts, tokens, pages, cookie }), pages),
  ).catch((error: unknown) => {
    release()
    throw error
  })
  port = listening.port
  hosts = createHosts({
    allowed: allowedHosts,
    ...('unixSocket' in listen ? {} : { host: listen.host, port: listening.port! }),
  })

  function release() {
    openCalls.close()
    feed.close()
    metrics.close()
  }

  return {
    url: listening.url,
    port: listening.port,
    async close() {
      openCalls.close()
      await listening.close(GRACE_MS)
      release()
    },
  }
}

/** Loads the MCP library on the first request: it takes as long to load as the rest of the service. */
function mcpOnDemand({ engine, version }: ServiceOptions): McpEndpoint {
  let endpoint: Promise<McpEndpoint> | undefined
  return async (exchange) => {
    endpoint ??= import('./mcp.ts').then(({ createMcpEndpoint }) => createMcpEndpoint(engine, version))
    return (await endpoint)(exchange)
  }
}

type CommandRoute = {
  [Name in RouteName]: (typeof ROUTES)[Name] extends { command: string } ? Name : never
}[RouteName]

/** A handler for every route that isn't the HTTP form of a command; a missing one does not compile. */
const HANDLERS: { [Name in Exclude<RouteName, CommandRoute>]: RouteHandler<Name> } = {
  health: ownRoutes.showHealth,
  mintLogin: ownRoutes.mintLogin,
  openSession: ownRoutes.openSession,
  closeSession: ownRoutes.closeSession,
  me: ownRoutes.showMe,
  command: receiveCommands,
  commandTypes: listCommandTypes,
  agents: agents.listAgents,
  terminal: agents.showTerminal,
  terminalEvents: agents.streamTerminal,
  figures: messages.showFigures,
  rulesMatrix: agents.showMatrix,
  stop: ownRoutes.stopService,
  webhooks: webhooks.listWebhooks,
  testWebhook: webhooks.testWebhook,
  agentActions: agents.listActions,
  transcript: agents.showTranscript,
  messages: messages.listMessages,
  message: messages.showMessage,
  mailbox: messages.showMailbox,
  deliveries: messages.countDeliveries,
  nextDeliveries: messages.nextDeliveries,
  tasks: tasks.listTasks,
  task: tasks.showTask,
  taskEvents: tasks.streamTask,
  trace: tasks.traceTask,
  runs: runs.listRuns,
  run: runs.showRun,
  runEvents: runs.streamRun,
  runLog: runs.showRunLog,
  runLogEvents: runs.streamRunLog,
  runOutput: runs.showRunOutput,
  runReport: runs.reportRun,
  proposePlan: runs.proposePlan,
  humanRequests: people.listHumanRequests,
  humanRequest: people.showHumanRequest,
  audit: audit.readAudit,
  auditVerify: audit.checkAudit,
  state: ownRoutes.showState,
  events: ownRoutes.streamEvents,
  prompt: agents.showPrompt,
  explain: agents.explainRules,
  tokens: agents.listTokens,
  mcp: ownRoutes.answerMcp,
  moderation: github.listModeration,
  moderationChanges: github.streamModeration,
  closeModeration: github.closeModeration,
  github: github.showGithub,
  githubChanges: github.streamGithub,
  githubWebhook: github.takeGithubWebhook,
  nextTeamMessages: github.nextTeamMessages,
  sayTeamMessage: github.sayTeamMessage,
  githubSetup: github.showGithubSetup,
  replayEvent: github.replayGithubEvent,
  githubEvent: github.showGithubEvent,
  hook: agents.takeHook,
  metrics: ownRoutes.showMetrics,
  openapi: ownRoutes.showOpenApi,
}

interface NodeBindings {
  incoming: IncomingMessage
  outgoing: ServerResponse
  caller: ApiCaller
}
type HonoEnv = { Bindings: NodeBindings }

/**
 * Authenticates each request, then routes it. Hono only finds the route: handlers read from and write to Node's own
 * request and response.
 */
function createListener(
  context: ApiContext,
  authenticate: Authenticator,
  pages: StaticFiles,
): RequestListener {
  const app = new Hono<HonoEnv>()
  for (const name of Object.keys(ROUTES) as RouteName[]) addRoute(app, context, name)
  app.notFound((c) => {
    const methods = methodsOf(c.req.path)
    return methods === ''
      ? sendError(c, noSuchRoute(c.req.path))
      : sendError(c, wrongMethod(c.req.method, methods), { allow: methods })
  })

  const callers = new WeakMap<IncomingMessage, ApiCaller>()
  const listener = getRequestListener(
    (request, env) => {
      const { incoming, outgoing } = env as Omit<NodeBindings, 'caller'>
      return app.fetch(request, { incoming, outgoing, caller: callers.get(incoming)! })
    },
    { overrideGlobalObjects: false, autoCleanupIncoming: false },
  )
  return (incoming, outgoing) => {
    const authenticated = authenticate(incoming)
    if (!authenticated.ok) {
      refuse(incoming, outgoing, authenticated.error)
      return
    }
    const caller = authenticated.value
    // The hottest route skips the router.
    if (incoming.url === ROUTES.command.path && incoming.method === 'POST') {
      void handleRequest(context, 'command', receiveCommands, {
        incoming,
        outgoing,
        caller,
        params: NO_PARAMS,
      })
      return
    }
    const path = incoming.url!.split('?', 1)[0]!
    if (pages.has(path) && incoming.method === 'GET') {
      pages.serve(path, incoming, outgoing)
      return
    }
    callers.set(incoming, caller)
    void listener(incoming, outgoing)
  }
}

function addRoute<Name extends RouteName>(app: Hono<HonoEnv>, context: ApiContext, name: Name) {
  const route: Route = ROUTES[name]
  const handler = (
    route.command === undefined
      ? HANDLERS[name as Exclude<RouteName, CommandRoute>]
      : sendCommand(route.command)
  ) as RouteHandler<Name>
  const hasParams = route.path.includes('{')
  app.on(route.method.toUpperCase(), pattern(route.path), async (c) => {
    const { incoming, outgoing, caller } = c.env
    await handleRequest(context, name, handler, {
      incoming,
      outgoing,
      caller,
      params: hasParams ? c.req.param() : NO_PARAMS,
    })
    return RESPONSE_ALREADY_SENT
  })
}

const NO_PARAMS = {}

/** Converts `/messages/{id}` to Hono's `/messages/:id`. */
function pattern(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

/** The methods of a path, looked up only when no route matched: an extra handler per path would slow down every request. */
function methodsOf(path: string): string {
  return Object.values<Route>(ROUTES)
    .filter((route) => new RegExp(`^${route.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path))
    .map((route) => route.method.toUpperCase())
    .join(', ')
}

function sendError(c: Context<HonoEnv>, error: AppError, headers?: Record<string, string>): Response {
  refuse(c.env.incoming, c.env.outgoing, error, headers)
  return RESPONSE_ALREADY_SENT
}

function wrongMethod(method: string, allowed: string): AppError {
  return new AppError('METHOD_NOT_ALLOWED', `This route does not accept ${method.slice(0, 20)}`, {
    hint: `It accepts ${allowed}.`,
  })
}

function noSuchRoute(path: string): AppError {
  return new AppError('NOT_FOUND', `There is no route ${path.slice(0, 100)}`, {
    hint: 'GET /openapi.json lists all routes.',
  })
}
