import type { Socket } from 'node:net'
import type { ShellShape } from '../../protocol/registry.ts'
import type { TeamLocation } from './team-location.ts'

// An import statement makes a namespace of every export of the module, which takes as long as the module itself.
const { closeSync, existsSync, fstatSync, openSync, readFileSync } = process.getBuiltinModule('node:fs')
const { connect } = process.getBuiltinModule('node:net')
const { dirname, join, resolve } = process.getBuiltinModule('node:path')

/**
 * The line to the service: which team is meant, where its service listens, who speaks, and one exchange with it.
 * All that a short command needs is in this file, in send-command.ts and print.ts, because each further file costs it half
 * a millisecond. errors.ts is loaded only when something fails.
 */
export interface Connection {
  address: string
  token: string
}

export type EnvVars = Readonly<Record<string, string | undefined>>

const errors = () => import('../errors.ts')

/** `--config`, ORC_CONFIG, or the first orc.yaml from the working folder upwards. Nothing is parsed for it. */
export function findTeamLocation(named?: string, env: EnvVars = process.env): TeamLocation {
  const given = named ?? (env.ORC_CONFIG || undefined)
  const configFile = given === undefined ? searchUpwards(process.cwd()) : resolve(given)
  // As stateFolder() in config.ts has it.
  if (env.ORC_HOME) return { ...(configFile && { configFile }), stateFolder: resolve(env.ORC_HOME) }
  return configFile === undefined ? {} : { configFile, stateFolder: stateBeside(configFile) }
}

/** One that `orc run` made for a plan without a team is inside that folder. */
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

/** Where the service listens: ORC_URL, or what the running service noted in its state folder. */
export async function findService(location: TeamLocation, env: EnvVars = process.env): Promise<string> {
  if (env.ORC_URL) return env.ORC_URL
  const noted = readNote(location)
  if (noted === undefined) throw (await errors()).notRunning(location)
  // After a crash the note stays. Whoever has the port by then must not be sent a token.
  if (!isAlive(noted.pid)) throw (await errors()).hasEnded(location, noted.pid)
  return noted.url
}

/** An agent's token comes from its environment, the operator's from a file; never from argv, which others can list. */
export async function findToken(location: TeamLocation, env: EnvVars = process.env): Promise<string> {
  const file = operatorFile(location)
  // An agent whose variable is empty by mistake must not speak as the operator.
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
      throw new Error('not readable by me alone')
    return readFileSync(descriptor, 'utf8')
  } catch (error) {
    throw (await errors()).noToken(file, error)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** What a service that is only there for runs has left: one that is stopped takes its note away. */
export function noteOfRuns(
  location: TeamLocation,
  env: EnvVars = process.env,
): { isAlive: boolean } | undefined {
  const noted = env.ORC_URL ? undefined : readNote(location)
  return noted?.for_runs ? { isAlive: isAlive(noted.pid) } : undefined
}

/** What the service that will be asked noted about a command; undefined if it isn't known here. */
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
  /** Missing from the note of an older service. */
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

/** As in model/process.ts. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

export interface ServiceRequest {
  method: 'GET' | 'POST'
  path: string
  body?: string
  idempotencyKey?: string
  /** Called when it is on its way, for what can be done while the service works. */
  onSent?: () => void
  /** How long to wait for the answer; 0 is for ever. */
  timeoutMs?: number
}

export interface ServiceResponse {
  status: number
  body: string
}

const TIMEOUT_MS = 60_000

/** One exchange with the service; gives the JSON of its answer. */
export async function exchange<T>(connection: Connection, request: ServiceRequest): Promise<T> {
  const { body } = await transfer(connection, request)
  try {
    return JSON.parse(body)
  } catch {
    throw (await errors()).notOrchub(connection.address)
  }
}

/**
 * One HTTP/1.1 exchange over a bare socket. Loading fetch or node:http would take longer than all the rest of a short
 * command.
 */
export async function transfer(
  { address, token }: Connection,
  request: ServiceRequest,
): Promise<ServiceResponse> {
  const { timeoutMs = TIMEOUT_MS } = request
  const { socket, host, prefix } = await open(address)
  const chunks: Buffer[] = []
  let received = 0
  let whole: number | undefined
  // The service ends the connection, as it was asked to; closing it from here would only take time.
  return await new Promise<ServiceResponse>((resolve, reject) => {
    const finish = () => {
      const answered = readAnswer(Buffer.concat(chunks))
      if (answered === undefined) reject(new Error('its answer was cut off'))
      else resolve(answered)
    }
    socket.setTimeout(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs / 1000} s`)))
    socket.on('error', reject)
    socket.on('end', finish)
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      received += chunk.length
      whole ??= answerSize(chunks.length === 1 ? chunk : Buffer.concat(chunks))
      if (whole !== undefined && received >= whole) finish()
    })
    socket.write(renderRequest({ ...request, path: prefix + request.path }, host, token))
    // After the listener with which the socket sends what was written before it was connected.
    if (request.onSent !== undefined) socket.once('connect', request.onSent)
  }).catch(async (error: Error) => {
    throw (await errors()).unreachable(address, error)
  })
}

interface OpenedSocket {
  socket: Socket
  host: string
  /** Before every path, where a proxy has the service below one. */
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

/** How many bytes an answer has, once its head is there; without a word on it, it goes on until the end. */
function answerSize(bytes: Buffer): number | undefined {
  const head = readHead(bytes)
  return head && head.end + (head.length ?? Number.POSITIVE_INFINITY)
}

/** A whole answer; undefined for what is not one. */
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
  /** Where the body begins. */
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
