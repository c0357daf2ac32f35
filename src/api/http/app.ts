import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { interruptAgent, listActions, showTranscript } from '../../agents/routes/agent.ts'
import { takeHook } from '../../agents/routes/hooks.ts'
import { explainRules, listAgents, showMatrix, showPrompt, showTerminal } from '../../agents/routes/team.ts'
import { releaseTerminal, streamTerminal, takeTerminal, typeKeys } from '../../agents/routes/terminal.ts'
import { listTokens, mintToken, revokeTokens } from '../../agents/routes/tokens.ts'
import { checkAudit, readAudit } from '../../audit/routes.ts'
import { AppError } from '../../base/errors.ts'
import { listCommandTypes } from '../../commands/routes/command-types.ts'
import { takeCommands } from '../../commands/routes/commands.ts'
import {
  nextTeamMessages,
  replayGithubEvent,
  sayTeamMessage,
  showGithub,
  showGithubEvent,
  showGithubSetup,
  streamGithub,
  takeGithubWebhook,
} from '../../github/routes/github.ts'
import { closeModeration, listModeration, streamModeration } from '../../github/routes/moderation.ts'
import { haltTeam, letGoOn } from '../../halt/routes.ts'
import { countDeliveries, nextDeliveries } from '../../messages/routes/deliveries.ts'
import { listMessages, showMailbox, showMessage } from '../../messages/routes/messages.ts'
import { decideHumanRequest, listHumanRequests, showHumanRequest } from '../../people/routes.ts'
import { streamRun } from '../../runs/routes/events.ts'
import { showRunLog, showRunOutput, streamRunLog } from '../../runs/routes/files.ts'
import {
  cancelRun,
  listRuns,
  proposePlan,
  reportRun,
  resumeRun,
  sendToRun,
  showRun,
  startRun,
} from '../../runs/routes/runs.ts'
import { takeAsk } from '../../tasks/routes/asks.ts'
import { streamTask } from '../../tasks/routes/events.ts'
import { listTasks, showTask } from '../../tasks/routes/tasks.ts'
import { traceTask } from '../../tasks/routes/trace.ts'
import { listWebhooks, testWebhook } from '../../webhooks/routes.ts'
import { ROUTES, type Route, type RouteName } from '../contract.ts'
import { refuse } from './answer.ts'
import type { Desk, RouteHandler } from './call.ts'
import { dispatch } from './dispatch.ts'
import type { Caller, Gate } from './gate.ts'
import type { Pages } from './pages.ts'
import { closeSession, mintLogin, openSession, showMe } from './routes/browser.ts'
import { streamEvents } from './routes/events.ts'
import { showFigures } from './routes/figures.ts'
import { answerMcp } from './routes/mcp.ts'
import { showHealth, showMetrics, showOpenApi, showState, stopService } from './routes/state.ts'

/** One handler for every route of the contract: the compiler finds a missing one. */
const HANDLERS: { [Name in RouteName]: RouteHandler<Name> } = {
  health: showHealth,
  mintLogin,
  openSession,
  closeSession,
  me: showMe,
  command: takeCommands,
  commandTypes: listCommandTypes,
  agents: listAgents,
  terminal: showTerminal,
  terminalEvents: streamTerminal,
  takeTerminal,
  releaseTerminal,
  typeKeys,
  figures: showFigures,
  rulesMatrix: showMatrix,
  stop: stopService,
  halt: haltTeam,
  go: letGoOn,
  webhooks: listWebhooks,
  testWebhook,
  agentActions: listActions,
  interrupt: interruptAgent,
  transcript: showTranscript,
  messages: listMessages,
  message: showMessage,
  mailbox: showMailbox,
  deliveries: countDeliveries,
  nextDeliveries,
  tasks: listTasks,
  task: showTask,
  taskEvents: streamTask,
  trace: traceTask,
  ask: takeAsk,
  startRun,
  runs: listRuns,
  run: showRun,
  resumeRun,
  cancelRun,
  sendToRun,
  runEvents: streamRun,
  runLog: showRunLog,
  runLogEvents: streamRunLog,
  runOutput: showRunOutput,
  runReport: reportRun,
  proposePlan,
  humanRequests: listHumanRequests,
  humanRequest: showHumanRequest,
  decide: decideHumanRequest,
  audit: readAudit,
  auditVerify: checkAudit,
  state: showState,
  events: streamEvents,
  prompt: showPrompt,
  explain: explainRules,
  tokens: listTokens,
  mintToken,
  revokeTokens,
  mcp: answerMcp,
  moderation: listModeration,
  moderationChanges: streamModeration,
  closeModeration,
  github: showGithub,
  githubChanges: streamGithub,
  githubWebhook: takeGithubWebhook,
  nextTeamMessages,
  sayTeamMessage,
  githubSetup: showGithubSetup,
  replayEvent: replayGithubEvent,
  githubEvent: showGithubEvent,
  hook: takeHook,
  metrics: showMetrics,
  openapi: showOpenApi,
}

interface Bindings {
  incoming: IncomingMessage
  outgoing: ServerResponse
  caller: Caller
}
type Env = { Bindings: Bindings }

/** The gate, then the routes. Bodies are read from and answers written to node's own objects: Hono routes, no more. */
export function createListener(desk: Desk, gate: Gate, pages: Pages): RequestListener {
  const app = new Hono<Env>()
  for (const name of Object.keys(ROUTES) as RouteName[]) addRoute(app, desk, name)
  app.notFound((c) => {
    const methods = methodsOf(c.req.path)
    return methods === ''
      ? turnAway(c, noSuchRoute(c.req.path))
      : turnAway(c, wrongMethod(c.req.method, methods), { allow: methods })
  })

  const callers = new WeakMap<IncomingMessage, Caller>()
  const listener = getRequestListener(
    (request, env) => {
      const { incoming, outgoing } = env as Omit<Bindings, 'caller'>
      return app.fetch(request, { incoming, outgoing, caller: callers.get(incoming)! })
    },
    { overrideGlobalObjects: false, autoCleanupIncoming: false },
  )
  return (incoming, outgoing) => {
    const passed = gate(incoming)
    if (passed instanceof AppError) {
      refuse(incoming, outgoing, passed)
      return
    }
    // The one route that must be fast is found without the router.
    if (incoming.url === ROUTES.command.path && incoming.method === 'POST') {
      void dispatch(desk, 'command', takeCommands, { incoming, outgoing, caller: passed, params: NO_PARAMS })
      return
    }
    const path = incoming.url!.split('?', 1)[0]!
    if (pages.has(path) && incoming.method === 'GET') {
      pages.serve(path, incoming, outgoing)
      return
    }
    callers.set(incoming, passed)
    void listener(incoming, outgoing)
  }
}

function addRoute<Name extends RouteName>(app: Hono<Env>, desk: Desk, name: Name) {
  const route: Route = ROUTES[name]
  const handler = HANDLERS[name] as RouteHandler<Name>
  const hasParams = route.path.includes('{')
  app.on(route.method.toUpperCase(), pattern(route.path), async (c) => {
    const { incoming, outgoing, caller } = c.env
    await dispatch(desk, name, handler, {
      incoming,
      outgoing,
      caller,
      params: hasParams ? c.req.param() : NO_PARAMS,
    })
    return RESPONSE_ALREADY_SENT
  })
}

const NO_PARAMS = {}

/** `/messages/{id}` as Hono writes it. */
function pattern(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

/** Found out only when no route took the request: a second handler on each path would slow down the first. */
function methodsOf(path: string): string {
  return Object.values<Route>(ROUTES)
    .filter((route) => new RegExp(`^${route.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path))
    .map((route) => route.method.toUpperCase())
    .join(', ')
}

function turnAway(c: Context<Env>, error: AppError, headers?: Record<string, string>): Response {
  refuse(c.env.incoming, c.env.outgoing, error, headers)
  return RESPONSE_ALREADY_SENT
}

function wrongMethod(method: string, allowed: string): AppError {
  return new AppError('METHOD_NOT_ALLOWED', `This route does not take ${method.slice(0, 20)}`, {
    hint: `It takes ${allowed}.`,
  })
}

function noSuchRoute(path: string): AppError {
  return new AppError('NOT_FOUND', `There is no route ${path.slice(0, 100)}`, {
    hint: 'GET /openapi.json lists all of them.',
  })
}
