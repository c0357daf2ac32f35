import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join, posix, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { SECURITY_HEADERS } from './answer.ts'

/** The files of the control room. They hold no data, so that anyone may have them; the names are read once, at the first request. */
export interface Pages {
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
<h1>The control room is not built here</h1><p>In a clone of Orchub: <code>npm run build:web</code>, then load this page again.</p>`

interface File {
  readonly type: string
  readonly bytes: Buffer
  zipped?: Buffer
}

/** `folder`: undefined where there is none, as in some tests. */
export function openPages(folder: string | undefined): Pages {
  let names: ReadonlySet<string> | undefined
  const files = new Map<string, File>()

  function known(): ReadonlySet<string> {
    // Built while the service runs: looked for again until it is there.
    if (names === undefined || names.size === 0) names = listFiles(folder)
    return names
  }

  function read(path: string): File | undefined {
    const kept = files.get(path)
    if (kept !== undefined) return kept
    const name = path === ENTRY ? '/index.html' : path
    if (folder === undefined || !known().has(name)) return undefined
    const bytes = readIfThere(join(folder, name))
    if (bytes === undefined) return undefined
    const file: File = { type: TYPES[extname(name)] ?? 'application/octet-stream', bytes }
    // The entry names the others, which change their names with their content: it is read anew each time.
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

/** Another version may be put in its place while the service runs; a file that went with the old one is no fault. */
function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Styles that libraries make in the page carry the nonce; nothing else inline is taken. */
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
