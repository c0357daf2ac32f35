import type { Socket } from 'node:net'
import type { ShellShape } from '../../protocol/registry.ts'

// `import` builds a namespace of every export of a built-in module, which takes as long as loading the module.
const { closeSync, existsSync, fstatSync, openSync, readFileSync } = process.getBuiltinModule('node:fs')
const { connect } = process.getBuiltinModule('node:net')
const { dirname, join, resolve } = process.getBuiltinModule('node:path')

/**
 * The service's address and the caller's token. Everything a short command needs is in this file, send-command.ts
 * and print.ts, because each further file costs half a millisecond at startup. errors.ts is loaded only on failure.
 */
export interface Connection {
  address: string
  token: string
}

type EnvVars = Readonly<Record<string, string | undefined>>

const errors = () => import('../errors.ts')

/** `--config`, ORC_CONFIG, or the first orc.yaml from the working folder upwards. Parses nothing, to stay fast. */
export function findTeamLocation(named?: string, env: EnvVars = process.env): TeamLocation {
  const given = named ?? (env.ORC_CONFIG || undefined)
  const configFile = given === undefined ? searchUpwards(process.cwd()) : resolve(given)
  // Same rule as stateFolder() in config.ts, which would take too long to load.
  if (env.ORC_HOME) return { ...(configFile && { configFile }), stateFolder: resolve(env.ORC_HOME) }
  return configFile === undefined ? {} : { configFile, stateFolder: stateBeside(configFile) }
}

/** The orc.yaml that `orc run` writes for a plan without a team lies inside the state folder. */
function stateBeside(configFile: string): string {
  const folder = dirname(configFile)
  return folder.endsWith('/.orc') ? folder : join(folder, '.orc')
}

export function searchUpwards(folder: string): string | undefined {
  for (let here = folder; ; here = dirname(here)) {
    const file = ['orc.yaml', '.orc/orc.yaml'].map((name) => join(here, name)).find(existsSync)
    if (file !== undefined) return file
    if (here === dirname(here)) return undefined
  }
}

export async function openConnection(location: TeamLocation): Promise<Connection> {
  return { address: await findService(location), token: await findToken(location) }
}

/** The service's address: ORC_URL, or the one in the service.json of the state folder. */
export async function findService(location: TeamLocation, env: EnvVars = process.env): Promise<string> {
  if (env.ORC_URL) return env.ORC_URL
  const noted = readNote(location)
  if (noted === undefined) throw (await errors()).notRunning(location.configFile, location.stateFolder)
  // After a crash service.json remains, and another program may own the port by now: never send it a token.
  if (!isAlive(noted.pid)) throw (await errors()).hasEnded(location.configFile, noted.pid)
  return noted.url
}

/** Agents pass their token in ORC_TOKEN, the operator's is in a file. Never in argv, which other users can list. */
export async function findToken(location: TeamLocation, env: EnvVars = process.env): Promise<string> {
  const file = operatorFile(location)
  // `??`, not `||`: an agent whose ORC_TOKEN is empty by mistake must not act as the operator.
  const token = (env.ORC_TOKEN ?? (await readOwnFile(file))).trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw (await errors()).badToken(env.ORC_TOKEN === undefined ? file : undefined)
}

export function operatorFile({ stateFolder }: TeamLocation): string | undefined {
  return stateFolder === undefined ? undefined : join(stateFolder, 'operator.token')
}

async function readOwnFile(file: string | undefined): Promise<string> {
  let descriptor: number | undefined
  try {
    if (file !== undefined) descriptor = openSync(file, 'r')
    if (descriptor === undefined || (fstatSync(descriptor).mode & 0o077) !== 0)
      throw new Error('other users can read it')
    return readFileSync(descriptor, 'utf8')
  } catch (error) {
    throw (await errors()).noToken(file, error)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** The service.json of a service started for runs only, if any. A service that was stopped properly removes it. */
export function noteOfRuns(
  location: TeamLocation,
  env: EnvVars = process.env,
): { isAlive: boolean } | undefined {
  const noted = env.ORC_URL ? undefined : readNote(location)
  return noted?.for_runs ? { isAlive: isAlive(noted.pid) } : undefined
}

/** The fields of a command as the running service noted them; undefined if the note doesn't have the command. */
export function notedShape(
  location: TeamLocation,
  type: string,
  env: EnvVars = process.env,
): ShellShape | undefined {
  const noted = readNote(location)
  if (noted?.commands === undefined || (env.ORC_URL && env.ORC_URL !== noted.url)) return undefined
  return Object.hasOwn(noted.commands, type) ? noted.commands[type] : undefined
}

interface ServiceFile {
  url: string
  pid: number
  for_runs?: true
  /** Older services don't write this. */
  commands?: Record<string, ShellShape>
}

function readNote({ stateFolder }: TeamLocation): ServiceFile | undefined {
  if (stateFolder === undefined) return undefined
  try {
    return JSON.parse(readFileSync(join(stateFolder, 'service.json'), 'utf8'))
  } catch {
    return undefined
  }
}

/** Same as isRunning() in base/process.ts, which would be one more file to load. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

interface ServiceRequest {
  method: 'GET' | 'POST'
  path: string
  body?: string
  idempotencyKey?: string
  /** Called once the request is written, to load modules while the service works. */
  onSent?: () => void
  /** Timeout for the response; 0 waits forever. */
  timeoutMs?: number
}

export interface ServiceResponse {
  status: number
  body: string
}

const TIMEOUT_MS = 60_000

/** Sends one request and returns the parsed JSON of the response. */
export async function exchange<T>(connection: Connection, request: ServiceRequest): Promise<T> {
  const { body } = await transfer(connection, request)
  try {
    return JSON.parse(body)
  } catch {
    throw (await errors()).notOrchub(connection.address)
  }
}

/** Makes one HTTP/1.1 exchange over a bare socket, because loading fetch or node:http takes longer than a short command. */
export async function transfer(
  { address, token }: Connection,
  request: ServiceRequest,
): Promise<ServiceResponse> {
  const { timeoutMs = TIMEOUT_MS } = request
  const { socket, host, prefix } = await open(address)
  const chunks: Buffer[] = []
  let received = 0
  let whole: number | undefined
  // `Connection: close` makes the service end the connection; closing it here would only take time.
  return await new Promise<ServiceResponse>((resolve, reject) => {
    const finish = () => {
      const answered = readAnswer(Buffer.concat(chunks))
      if (answered === undefined) reject(new Error('the response was cut off'))
      else resolve(answered)
    }
    socket.setTimeout(timeoutMs, () => reject(new Error(`no response within ${timeoutMs / 1000} s`)))
    socket.on('error', reject)
    socket.on('end', finish)
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      received += chunk.length
      whole ??= answerSize(chunks.length === 1 ? chunk : Buffer.concat(chunks))
      if (whole !== undefined && received >= whole) finish()
    })
    socket.write(renderRequest({ ...request, path: prefix + request.path }, host, token))
    // Runs after the socket's own connect listener, which flushes the request.
    if (request.onSent !== undefined) socket.once('connect', request.onSent)
  }).catch(async (error: Error) => {
    throw (await errors()).unreachable(address, error)
  })
}

interface OpenedSocket {
  socket: Socket
  host: string
  /** The path that a proxy puts before every route. */
  prefix: string
}

async function open(address: string): Promise<OpenedSocket> {
  if (address.startsWith('unix:')) {
    return { socket: connect(address.slice('unix:'.length)), host: 'localhost', prefix: '' }
  }
  const url = URL.parse(address)
  if (url === null || !/^https?:$/.test(url.protocol)) throw (await errors()).noAddress(address)
  const name = url.hostname.replace(/^\[|\]$/g, '')
  const asked = { host: url.host, prefix: url.pathname.replace(/\/+$/, '') }
  if (url.protocol === 'http:') return { socket: connect(Number(url.port || 80), name), ...asked }
  const tls = await import('node:tls')
  return { socket: tls.connect(Number(url.port || 443), name), ...asked }
}

function renderRequest(
  { method, path, body, idempotencyKey }: ServiceRequest,
  host: string,
  token: string,
): string {
  const key = idempotencyKey === undefined ? '' : `Idempotency-Key: ${idempotencyKey}\r\n`
  const entity =
    body === undefined
      ? ''
      : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n`
  return `${head}${key}${entity}\r\n${body ?? ''}`
}

/** The response's size in bytes once its head has arrived; infinite without a Content-Length. */
function answerSize(bytes: Buffer): number | undefined {
  const head = readHead(bytes)
  return head && head.end + (head.length ?? Number.POSITIVE_INFINITY)
}

/** Undefined unless the bytes are one complete response. */
export function readAnswer(bytes: Buffer): ServiceResponse | undefined {
  const head = readHead(bytes)
  if (head === undefined) return undefined
  const rest = bytes.subarray(head.end)
  const isCut = !head.isChunked && rest.length < (head.length ?? 0)
  const body = isCut ? undefined : head.isChunked ? joinChunks(rest) : rest.toString('utf8', 0, head.length)
  return body === undefined ? undefined : { status: head.status, body }
}

interface ResponseHead {
  status: number
  /** Offset of the body. */
  end: number
  length?: number
  isChunked: boolean
}

function readHead(bytes: Buffer): ResponseHead | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const text = bytes.toString('latin1', 0, end)
  const length = /^content-length: *(\d+)/im.exec(text)?.[1]
  const isChunked = /^transfer-encoding:.*\bchunked\b/im.test(text)
  const status = Number(/^HTTP\/1\.\d (\d{3})/.exec(text)?.[1])
  return { status, end: end + 4, isChunked, ...(length === undefined ? {} : { length: Number(length) }) }
}

function joinChunks(rest: Buffer): string | undefined {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.toString('latin1', at, lineEnd), 16)
    if (lineEnd === -1 || Number.isNaN(size)) return undefined
    if (size === 0) return Buffer.concat(parts).toString('utf8')
    const begin = lineEnd + 2
    if (begin + size > rest.length) return undefined
    parts.push(rest.subarray(begin, begin + size))
    at = begin + size + 2
  }
}

/** Finds an option by the typed word and, after two dashes, its name; throws if there is none. A flag has no `value`. */
type FindOption = (
  word: string,
  name: string | undefined,
) => { name: string; value?: string } | Promise<{ name: string; value?: string }>

/** Splits a command line into words and options: `--key value`, `--key=value`, flags. `--` ends the options. */
export async function readArguments(argv: readonly string[], find: FindOption) {
  const words: string[] = []
  const options: [name: string, value: string | undefined][] = []
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!
    if (word === '--') {
      words.push(...argv.slice(at + 1))
      break
    }
    if (word === '-' || !word.startsWith('-')) {
      words.push(word)
      continue
    }
    const [, typed, attached] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
    if (typed === 'token') throw (await errors()).tokenInArguments()
    const { name, value: placeholder } = await find(word, typed)
    const isFlag = placeholder === undefined
    if (isFlag && attached !== undefined) throw (await errors()).takesNoValue(name)
    const value = isFlag ? undefined : (attached ?? argv[++at])
    if (!isFlag && (value === undefined || (attached === undefined && value.startsWith('--'))))
      throw (await errors()).needsValue(name, placeholder)
    options.push([name, value])
  }
  return { words, options }
}

/** The team that a command addresses: its orc.yaml and its state folder, each undefined if unknown. */
export interface TeamLocation {
  readonly configFile?: string
  readonly stateFolder?: string
}
