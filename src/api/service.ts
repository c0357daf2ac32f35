import { createScreens } from '../agents/routes/screens.ts'
import { createTerminals } from '../agents/routes/terminals.ts'
import type { Engine } from '../engine.ts'
import { createListener } from './http/app.ts'
import { cookieName } from './http/browser-session.ts'
import type { Desk, Facts } from './http/call.ts'
import { createFeed } from './http/feed.ts'
import { createGate } from './http/gate.ts'
import { createHosts } from './http/hosts.ts'
import { type Listen, listenOn } from './http/listen.ts'
import { createLogins } from './http/logins.ts'
import { createMetrics } from './http/metrics.ts'
import { createOpenCalls } from './http/open-calls.ts'
import { openPages } from './http/pages.ts'
import type { McpEndpoint } from './mcp-endpoint.ts'

export interface ServiceOptions extends Facts {
  engine: Engine
  listen: Listen
  /** Names, besides localhost and the address itself, under which the service may be reached. */
  allowedHosts: readonly string[]
  /** Where the built files of the control room are; without it there is none. */
  pages?: string
}

export interface Service {
  /** `http://host:port`, or `unix:/path`. */
  readonly url: string
  /** Undefined on a Unix socket. */
  readonly port: number | undefined
  /** Ends streams and long polls at once, lets other requests end, and frees the port. */
  close(): Promise<void>
}

/** Longer than any request but a stream takes, shorter than whoever stops the service will wait. */
const GRACE_MS = 5000

/** The HTTP API over a engine: SSE, long polls, metrics and the OpenAPI document with it. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { engine, listen, allowedHosts } = options
  const { store, tokens, log } = engine
  const openCalls = createOpenCalls(store, tokens, engine.clock.now)
  const feed = createFeed(store, log)
  const metrics = createMetrics(engine, openCalls)
  const terminals = createTerminals(engine)
  const pages = openPages(options.pages)
  let port: number | undefined
  const cookie = () => cookieName(port)
  const desk: Desk = {
    ...options,
    metrics,
    feed,
    openCalls,
    mcp: mcpOnDemand(options),
    logins: createLogins(engine.clock),
    screens: createScreens((agent) => engine.sessions.session(agent)),
    terminals,
    cookie,
  }
  // The port is known once it is taken, and no request comes before that.
  let hosts = createHosts({ allowed: [] })
  const listening = await listenOn(
    listen,
    createListener(desk, createGate({ hosts: () => hosts, tokens, pages, cookie }), pages),
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
    terminals.close()
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

/** Loaded with its first request: the library takes as long to load as the rest of the service. */
function mcpOnDemand({ engine, version }: ServiceOptions): McpEndpoint {
  let endpoint: Promise<McpEndpoint> | undefined
  return async (exchange) => {
    endpoint ??= import('./mcp/endpoint.ts').then(({ createMcpEndpoint }) =>
      createMcpEndpoint(engine, version),
    )
    return (await endpoint)(exchange)
  }
}
