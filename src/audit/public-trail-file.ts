import { createHash } from 'node:crypto'
import { openPublicChain, PUBLIC_FORMAT, type PublicHead, type PublicLine } from './public-trail.ts'
import { type AuditLine, parseLine } from './readable-line.ts'

/** A line of a file, as far as it can be read; a tampered line may come without its number and hash. */
type ReadLine =
  | { readonly title: string }
  | { readonly line: string; readonly n?: number; readonly hash?: string }
  | { readonly head: PublicHead }

/**
 * A file format of the public trail. Each begins with the title and ends with the head, which makes truncation visible.
 * Verification regenerates the file, so the fixed texts must never change.
 */
interface PublicFormat {
  begin(title: string): string
  line(line: PublicLine): string
  end(head: PublicHead): string
  /** Undefined for lines that only frame the trail. */
  read(line: string): ReadLine | undefined
}

const HOW =
  "each hash is sha256 over the hash before it, a line end, the line, and a line end; the first one follows that of the title with a line end. 'orc audit verify FILE' does the same."

const text: PublicFormat = {
  begin: (title) => `# ${title}\n`,
  line: ({ line }) => `${line}\n`,
  end: ({ n, hash }) => `# lines ${n} sha256 ${hash}\n`,
  read(line) {
    if (line === '') return undefined
    const title = /^# (orchub-public-audit-1(?: \S+)?)$/.exec(line)
    if (title !== null) return { title: title[1]! }
    const end = /^# lines (\d+) sha256 ([0-9a-f]{64})$/.exec(line)
    return end === null ? { line } : { head: { n: Number(end[1]), hash: end[2]! } }
  },
}

const UNREADABLE: AuditLine = { at: '', type: '', actor: '', text: '' }

const jsonl: PublicFormat = {
  begin: (title) => `${JSON.stringify({ format: title, how: HOW })}\n`,
  line({ n, line, hash }) {
    // A tampered line may not parse; it is written unchanged and fails by its hash.
    const { at, actor, subject, type, text: body, confidence } = parseLine(line) ?? UNREADABLE
    const parts = { at, from: actor, to: subject, kind: type.toUpperCase(), text: body, confidence }
    return `${JSON.stringify({ n, ...parts, line, hash })}\n`
  },
  end: (head) => `${JSON.stringify({ head })}\n`,
  read(line) {
    try {
      const { format, head, line: text, n, hash } = JSON.parse(line) as Record<string, unknown>
      if (typeof format === 'string') return { title: format }
      if (typeof text === 'string') return { line: text, n: Number(n), hash: String(hash) }
      const { n: count, hash: last } = (head ?? {}) as Record<string, unknown>
      return { head: { n: Number(count), hash: String(last) } }
    } catch {
      return { line }
    }
  },
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff}
ol{padding-left:3.5rem}li{padding:.15rem 0;border-bottom:1px solid #e5e8eb}li::marker{color:#59636e}
code{font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}footer,header p{color:#59636e}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}li{border-color:#2b323b}footer,header p,li::marker{color:#9198a1}}`

/** A self-contained file without scripts, for any web server. */
const html: PublicFormat = {
  begin: (title) =>
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="format" content="${escapeHtml(title)}">
<title>Public audit trail</title><style>${STYLE}</style></head><body>
<header><h1>Public audit trail</h1><p>What the agents were asked, proposed and did${escapeHtml(inRepository(title))}, oldest first. Agents can be wrong.</p></header>
<ol>
`,
  line: ({ n, line, hash }) => `<li id="n${n}" data-hash="${hash}"><code>${escapeHtml(line)}</code></li>\n`,
  end: ({ n, hash }) =>
    `</ol>\n<footer><p>Lines: <span id="lines">${n}</span>. Head: <code id="head">${hash}</code>.</p><p>To check it: ${escapeHtml(HOW)}</p></footer>\n</body></html>\n`,
  /** Recognizes only lines in the exact form that this program writes. */
  read(line) {
    const title = /<meta name="format" content="([^"]*)">/.exec(line)
    if (title !== null) return { title: unescapeHtml(title[1]!) }
    const item = /^<li id="n(\d+)" data-hash="([0-9a-f]{64})"><code>(.*)<\/code><\/li>$/.exec(line)
    if (item !== null) return { n: Number(item[1]), hash: item[2]!, line: unescapeHtml(item[3]!) }
    const end = /<span id="lines">(\d+)<\/span>.*<code id="head">([0-9a-f]{64})<\/code>/.exec(line)
    if (end !== null) return { head: { n: Number(end[1]), hash: end[2]! } }
    return line.startsWith('<li') ? { line } : undefined
  },
}

export const PUBLIC_FORMATS: Readonly<Record<string, PublicFormat>> = { text, jsonl, html }

function inRepository(title: string): string {
  const repository = title.slice(PUBLIC_FORMAT.length).trim()
  return repository === '' ? '' : ` in ${repository}`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escapeHtml(plainText: string): string {
  return plainText.replace(/[&<>"]/g, (character) => ENTITIES[character]!)
}

function unescapeHtml(plainText: string): string {
  return plainText.replace(
    /&(?:amp|lt|gt|quot);/g,
    (entity) => Object.entries(ENTITIES).find(([, written]) => written === entity)![0],
  )
}

/** Recognizes a public trail by its first line. */
export function isPublicTrail(first: string): boolean {
  return first.startsWith('<!doctype html>') || first.includes(PUBLIC_FORMAT)
}

function formatOf(first: string): PublicFormat {
  if (first.startsWith('<')) return html
  return first.startsWith('{') ? jsonl : text
}

export interface PublicTrailVerification {
  ok: boolean
  count: number
  message: string
  head?: PublicHead
  /** The first wrong line. */
  seq?: number
}

/**
 * Recomputes the hash chain of a public trail and regenerates the whole file from it, so that any change or addition
 * shows. `known` is an earlier head that must be part of the chain.
 */
export async function verifyPublicTrail(
  lines: AsyncIterable<string>,
  known?: PublicHead,
): Promise<PublicTrailVerification> {
  const asRead = createHash('sha256')
  const asWritten = createHash('sha256')
  let format: PublicFormat | undefined
  let chain: ReturnType<typeof openPublicChain> | undefined
  let end: PublicHead | undefined
  let isKnown = known === undefined
  for await (const line of lines) {
    asRead.update(`${line}\n`)
    format ??= formatOf(line)
    const read = format.read(line)
    if (read === undefined) continue
    if ('title' in read) {
      if (chain !== undefined) return wrong(chain.head().n + 1, 'The trail begins a second time')
      chain = openPublicChain(read.title)
      asWritten.update(format.begin(read.title))
      if (known?.n === 0) isKnown = known.hash === chain.head().hash
      continue
    }
    if (chain === undefined) return wrong(1, 'The file does not begin like a public trail')
    if (end !== undefined) return wrong(chain.head().n + 1, 'The file continues after the end of the trail')
    if ('head' in read) {
      end = read.head
      continue
    }
    const own = chain.add(read.line)
    const bad = whyWrong(read, own, known)
    if (bad !== undefined) return wrong(own.n, bad)
    if (known?.n === own.n) isKnown = true
    asWritten.update(format.line(own))
  }
  if (chain === undefined) return wrong(1, 'The file is not a public trail')
  const head = chain.head()
  if (end === undefined)
    return wrong(head.n + 1, 'The file is truncated: its last line, with the head, is missing')
  if (end.n !== head.n || end.hash !== head.hash) {
    return wrong(
      head.n + 1,
      'The file was truncated or changed: the head in its last line does not match its lines',
    )
  }
  if (!isKnown)
    return wrong(head.n + 1, `The trail ends with line ${head.n}, before the head given with --extends`)
  asWritten.update(format!.end(head))
  if (asRead.digest('hex') !== asWritten.digest('hex'))
    return wrong(head.n + 1, 'The file contains something that is not part of the trail')
  const message = `${head.n} ${head.n === 1 ? 'line' : 'lines'} verified, none changed`
  return { ok: true, count: head.n, head, message }
}

function wrong(n: number, message: string): PublicTrailVerification {
  return { ok: false, count: n - 1, seq: n, message }
}

function whyWrong(read: { n?: number; hash?: string }, own: PublicHead, known: PublicHead | undefined) {
  if (read.n !== undefined && read.n !== own.n)
    return `Line ${own.n} is missing or in the wrong position: the file has line ${read.n} there`
  if (read.hash !== undefined && read.hash !== own.hash)
    return `Line ${own.n}, or one before it, was changed: it does not match its hash`
  if (known?.n === own.n && known.hash !== own.hash)
    return `Line ${own.n}, or one before it, was changed: it does not match the head given with --extends`
  return undefined
}
