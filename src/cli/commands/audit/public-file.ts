import { createHash } from 'node:crypto'
import { openPublicChain, PUBLIC_FORMAT, type PublicHead } from '../../../audit/public-trail.ts'
import { readLines } from '../../../client/lines.ts'
import { counted } from '../../output/layout.ts'
import { PUBLIC_FORMS, unescapeHtml } from './public-format.ts'

/** A parsed line of a public trail, in any of its formats. */
type Piece =
  | { readonly title: string }
  | { readonly line: string; readonly n?: number; readonly hash?: string }
  | { readonly head: PublicHead }

export interface PublicVerdict {
  ok: boolean
  count: number
  message: string
  head?: PublicHead
  /** The first wrong line. */
  seq?: number
}

/** Recognizes a public trail by its first line. */
export function isPublicFile(first: string): boolean {
  return first.startsWith('<!doctype html>') || first.includes(PUBLIC_FORMAT)
}

type FormName = 'text' | 'jsonl' | 'html'

/**
 * Recomputes the hash chain of a public trail and regenerates the whole file from it, so that any change or addition
 * shows. `known` is an earlier head that must be part of the chain.
 */
export async function verifyPublic(file: AsyncIterable<string>, known?: PublicHead): Promise<PublicVerdict> {
  const asRead = createHash('sha256')
  const asWritten = createHash('sha256')
  let form: FormName | undefined
  let title: string | undefined
  let chain: ReturnType<typeof openPublicChain> | undefined
  let end: PublicHead | undefined
  let isKnown = known === undefined
  for await (const line of readLines(file)) {
    asRead.update(`${line}\n`)
    form ??= formOf(line)
    const piece = READERS[form](line)
    if (piece === undefined) continue
    const write = PUBLIC_FORMS[form]!
    if ('title' in piece) {
      if (chain !== undefined) return wrong(chain.head().n + 1, 'The trail begins a second time')
      title = piece.title
      chain = openPublicChain(title)
      asWritten.update(write.begin(title))
      if (known?.n === 0) isKnown = known.hash === chain.head().hash
      continue
    }
    if (chain === undefined) return wrong(1, 'The file does not begin like a public trail')
    if (end !== undefined) return wrong(chain.head().n + 1, 'The file continues after the end of the trail')
    if ('head' in piece) {
      end = piece.head
      continue
    }
    const own = chain.add(piece.line)
    const bad = whyWrong(piece, own, known)
    if (bad !== undefined) return wrong(own.n, bad)
    if (known?.n === own.n) isKnown = true
    asWritten.update(write.line(own))
  }
  if (chain === undefined || title === undefined) return wrong(1, 'The file is not a public trail')
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
  asWritten.update(PUBLIC_FORMS[form!]!.end(title, head))
  if (asRead.digest('hex') !== asWritten.digest('hex'))
    return wrong(head.n + 1, 'The file contains something that is not part of the trail')
  const message = `${counted(head.n, 'line')} verified, none changed`
  return { ok: true, count: head.n, head, message }
}

function wrong(n: number, message: string): PublicVerdict {
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

function formOf(first: string): FormName {
  if (first.startsWith('<')) return 'html'
  return first.startsWith('{') ? 'jsonl' : 'text'
}

function fromText(line: string): Piece | undefined {
  if (line === '') return undefined
  const title = /^# (orchub-public-audit-1(?: \S+)?)$/.exec(line)
  if (title !== null) return { title: title[1]! }
  const end = /^# lines (\d+) sha256 ([0-9a-f]{64})$/.exec(line)
  return end === null ? { line } : { head: { n: Number(end[1]), hash: end[2]! } }
}

function fromJson(line: string): Piece | undefined {
  try {
    const { format, head, line: said, n, hash } = JSON.parse(line) as Record<string, unknown>
    if (typeof format === 'string') return { title: format }
    if (typeof said === 'string') return { line: said, n: Number(n), hash: String(hash) }
    const { n: count, hash: last } = (head ?? {}) as Record<string, unknown>
    return { head: { n: Number(count), hash: String(last) } }
  } catch {
    return { line }
  }
}

/** Recognizes only lines in the exact form that this program writes. */
function fromHtml(line: string): Piece | undefined {
  const title = /<meta name="format" content="([^"]*)">/.exec(line)
  if (title !== null) return { title: unescapeHtml(title[1]!) }
  const item = /^<li id="n(\d+)" data-hash="([0-9a-f]{64})"><code>(.*)<\/code><\/li>$/.exec(line)
  if (item !== null) return { n: Number(item[1]), hash: item[2]!, line: unescapeHtml(item[3]!) }
  const end = /<span id="lines">(\d+)<\/span>.*<code id="head">([0-9a-f]{64})<\/code>/.exec(line)
  return end === null
    ? line.startsWith('<li')
      ? { line }
      : undefined
    : { head: { n: Number(end[1]), hash: end[2]! } }
}

const READERS: Readonly<Record<FormName, (line: string) => Piece | undefined>> = {
  text: fromText,
  jsonl: fromJson,
  html: fromHtml,
}
