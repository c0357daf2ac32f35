import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join, posix, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { SECURITY_HEADERS } from './http-response.ts'

/** Serves the built files of the control room. They contain no data, so no token is needed. */
export interface StaticFiles {
  /** Whether this path is one of the files. */
  has(path: string): boolean
  serve(path: string, incoming: IncomingMessage, outgoing: ServerResponse): void
}

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
  '.png': 'image/png',
}

const ENTRY = '/'
const PLACEHOLDER = '__ORC_NONCE__'
const IMMUTABLE = 'public, max-age=31536000, immutable'

const NOT_BUILT = `<!doctype html><meta charset="utf-8"><title>Orchub</title>
<h1>The control room has not been built</h1><p>In a clone of Orchub, run <code>npm run build:web</code>, then reload this page.</p>`

interface StaticFile {
  readonly type: string
  readonly bytes: Buffer
  zipped?: Buffer
}

/** Without a folder, the page says that the control room has not been built. */
export function openStaticFiles(folder: string | undefined): StaticFiles {
  let names: ReadonlySet<string> | undefined
  const files = new Map<string, StaticFile>()

  function known(): ReadonlySet<string> {
    // The files may be built while the service runs, so look again until they exist.
    if (names === undefined || names.size === 0) names = listFiles(folder)
    return names
  }

  function read(path: string): StaticFile | undefined {
    const cached = files.get(path)
    if (cached !== undefined) return cached
    const name = path === ENTRY ? '/index.html' : path
    if (folder === undefined || !known().has(name)) return undefined
    const bytes = readIfThere(join(folder, name))
    if (bytes === undefined) return undefined
    const file: StaticFile = { type: TYPES[extname(name)] ?? 'application/octet-stream', bytes }
    // The entry page references the others, whose names change with their content, so it is never cached.
    if (path !== ENTRY) files.set(path, file)
    return file
  }

  return {
    has: (path) =>
      path === ENTRY || (path.startsWith('/assets/') && known().has(path)) || path === '/favicon.svg',
    serve(path, incoming, outgoing) {
      if (path === ENTRY) names = undefined
      const file = read(path)
      if (path === ENTRY) {
        serveEntry(outgoing, file?.bytes.toString('utf8') ?? NOT_BUILT)
        return
      }
      if (file === undefined) {
        outgoing.writeHead(404, { 'content-length': 0, ...SECURITY_HEADERS })
        outgoing.end()
        return
      }
      const isText = /^(text|image\/svg|application\/(json|manifest))/.test(file.type)
      const isZipped = isText && /\bgzip\b/.test(String(incoming.headers['accept-encoding'] ?? ''))
      if (isZipped) file.zipped ??= gzipSync(file.bytes)
      const bytes = isZipped ? file.zipped! : file.bytes
      outgoing.writeHead(200, {
        ...SECURITY_HEADERS,
        'content-type': file.type,
        'content-length': bytes.length,
        'cache-control': path.startsWith('/assets/') ? IMMUTABLE : 'no-cache',
        'cross-origin-resource-policy': 'same-origin',
        vary: 'accept-encoding',
        ...(isZipped ? { 'content-encoding': 'gzip' } : {}),
      })
      outgoing.end(bytes)
    },
  }
}

/** A rebuild while the service runs replaces files, so a listed file may be gone. */
function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The nonce admits styles that libraries insert into the page; the policy blocks all other inline content. */
function serveEntry(outgoing: ServerResponse, html: string) {
  const nonce = randomBytes(16).toString('base64url')
  const bytes = Buffer.from(html.replaceAll(PLACEHOLDER, nonce))
  outgoing.writeHead(200, {
    ...SECURITY_HEADERS,
    'content-type': TYPES['.html'],
    'content-length': bytes.length,
    'content-security-policy': policy(nonce),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=()',
    'referrer-policy': 'no-referrer',
  })
  outgoing.end(bytes)
}

function policy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types orchub',
  ].join('; ')
}

function listFiles(folder: string | undefined): ReadonlySet<string> {
  if (folder === undefined || !existsSync(join(folder, 'index.html'))) return new Set()
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  return new Set(
    found.map((entry) => {
      const path = relative(folder, join(entry.parentPath, entry.name))
      return posix.join('/', ...path.split(sep))
    }),
  )
}
