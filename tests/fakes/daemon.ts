import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programFile } from './program.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const NODE = process.execPath
const ENTRY = programFile()

export type Fields = Record<string, unknown>
export interface Answer {
  status: number
  body: Fields
}

/** The real service in its own process, which tests kill at any moment and start again on the same state. */
export async function createDaemon(config: string, options: { env?: NodeJS.ProcessEnv } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-daemon-'))
  const configFile = join(folder, 'orc.yaml')
  writeFileSync(configFile, config)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  let child: ChildProcess | undefined
  let output = ''
  const env = { ...process.env, ...options.env, NODE_COMPILE_CACHE: join(ROOT, '.cache', 'tests') }

  async function start() {
    output = ''
    const started = spawn(NODE, [ENTRY, 'serve', '--config', configFile, '--port', String(port)], {
      env,
      cwd: folder,
    })
    child = started
    for (const stream of [started.stdout, started.stderr]) stream?.on('data', (data) => (output += data))
    let ended = false
    started.once('exit', () => (ended = true))
    const deadline = Date.now() + 30_000
    // The port was free a moment ago, so another process may answer there.
    while (announcedPid() !== started.pid || !(await isUp(url))) {
      if (ended || Date.now() > deadline) {
        // The caller has nothing to close.
        await stop('SIGKILL')
        throw new Error(`the service did not start:\n${output}`)
      }
      await new Promise((resolve) => setTimeout(resolve, 15))
    }
  }

  async function stop(signal: NodeJS.Signals) {
    const stopping = child
    child = undefined
    if (stopping === undefined || stopping.exitCode !== null) return
    const gone = new Promise((resolve) => stopping.once('exit', resolve))
    stopping.kill(signal)
    await gone
  }

  function announcedPid(): number | undefined {
    try {
      return (JSON.parse(readFileSync(join(folder, '.orc', 'service.json'), 'utf8')) as { pid: number }).pid
    } catch {
      return undefined
    }
  }

  const operatorToken = () => readFileSync(join(folder, '.orc', 'operator.token'), 'utf8').trim()

  async function call(
    method: string,
    path: string,
    token: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Fields } satisfies Answer
  }

  return {
    folder,
    configFile,
    url,
    start,
    call,
    operatorToken,
    output: () => output,
    pid: () => child?.pid,
    kill: () => stop('SIGKILL'),
    stop: () => stop('SIGTERM'),
    async token(agent: string): Promise<string> {
      const { body } = await call('POST', '/api/v1/tokens', operatorToken(), { agent })
      return body.token as string
    },
    async mailbox(agent: string) {
      const { body } = await call('GET', `/api/v1/mailbox?agent=${agent}&filter=all`, operatorToken())
      return body.messages as { id: string; from: string; content: string }[]
    },
    async close() {
      await stop('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type Daemon = Awaited<ReturnType<typeof createDaemon>>

async function isUp(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/healthz`)).ok
  } catch {
    return false
  }
}

/** Below the ephemeral range, so that the system doesn't give the port to another process in between. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer()
    .once('error', () => resolve(false))
    .listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}
