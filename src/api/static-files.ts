import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { SECURITY_HEADERS } from './http-response.ts'

/** Serves the built files of the control room. They contain no data, so no token is needed. */
export interface StaticFiles {
  /** Whether this path belongs to the control room; the file may not exist. */
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
/** The only other paths: one name without a folder, which can't lead out of the folder of the pages. */
const FILE = /^\/(?:assets\/\w[\w.-]*|favicon\.svg)$/
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
  const files = new Map<string, StaticFile>()

  /** Read on demand, because a rebuild while the service runs replaces the files. */
  function read(path: string): StaticFile | undefined {
    const bytes = folder === undefined ? undefined : readIfThere(join(folder, path))
    if (bytes === undefined) return undefined
    return { type: TYPES[extname(path)] ?? 'application/octet-stream', bytes }
  }

  return {
    has: (path) => path === ENTRY || FILE.test(path),
    serve(path, incoming, outgoing) {
      // The entry page names the other files, whose names change with their content, so only the others are cached.
      if (path === ENTRY) {
        serveEntry(outgoing, read('/index.html')?.bytes.toString('utf8') ?? NOT_BUILT)
        return
      }
      const file = files.get(path) ?? read(path)
      if (file === undefined) {
        outgoing.writeHead(404, { 'content-length': 0, ...SECURITY_HEADERS })
        outgoing.end()
        return
      }
      files.set(path, file)
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

/** Undefined for any error: a request for a folder or an overlong name must not stop the service. */
function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch {
    return undefined
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
