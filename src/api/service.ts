import { createScreens, createTerminalHolders } from '../agents/routes/terminals.ts'
import type { Engine } from '../engine.ts'
import { createListener } from './http/app.ts'
import { createAuthenticator, createHosts } from './http/authenticate.ts'
import { cookieName, createLogins } from './http/browser-session.ts'
import type { ApiContext, McpEndpoint, ServiceInfo } from './http/call.ts'
import { createFeed } from './http/feed.ts'
import { type Listen, listenOn } from './http/listen.ts'
import { createMetrics } from './http/metrics.ts'
import { createOpenCalls } from './http/open-calls.ts'
import { openPages } from './http/pages.ts'

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
  const terminals = createTerminalHolders(engine)
  const pages = openPages(options.pages)
  let port: number | undefined
  const cookie = () => cookieName(port)
  const context: ApiContext = {
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

/** Loads the MCP library on the first request: it takes as long to load as the rest of the service. */
function mcpOnDemand({ engine, version }: ServiceOptions): McpEndpoint {
  let endpoint: Promise<McpEndpoint> | undefined
  return async (exchange) => {
    endpoint ??= import('./mcp/endpoint.ts').then(({ createMcpEndpoint }) =>
      createMcpEndpoint(engine, version),
    )
    return (await endpoint)(exchange)
  }
}
