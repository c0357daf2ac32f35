/** The full-text index of threads and comments, by which related threads are found. */
import type { Store, Tx } from '../store/store.ts'
import type { GitHubEvent } from './core/event.ts'

/** Indexed text of an issue, a pull request or a comment. */
interface GithubDocument {
  repository: string
  kind: string
  number: number
  /** Empty for the thread itself, otherwise the id of the comment. */
  part: string
  title: string
  body: string
  author: string
  state: string
  /** By GitHub's clock. A late webhook doesn't overwrite newer text. */
  at: number
}

const MAX_LENGTH = 20_000

function keepDocument(tx: Tx, document: GithubDocument): void {
  // PostgreSQL rejects NUL characters.
  const plain = (text: string) => text.toWellFormed().replaceAll('\0', '').slice(0, MAX_LENGTH).toWellFormed()
  tx.run(
    `INSERT INTO github_documents (repository, kind, number, part, title, body, author, state, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (repository, number, part) DO UPDATE SET kind = excluded.kind, title = excluded.title,
       body = excluded.body, author = excluded.author, state = excluded.state, updated_at = excluded.updated_at
       WHERE excluded.updated_at >= github_documents.updated_at`,
    [
      ...[document.repository, document.kind, document.number, document.part],
      ...[plain(document.title), plain(document.body), document.author, document.state, document.at],
    ],
  )
}

function forgetDocuments(tx: Tx, repository: string, number: number, part?: string): void {
  const only = part === undefined ? '' : ' AND part = ?'
  tx.run(`DELETE FROM github_documents WHERE repository = ? AND number = ?${only}`, [
    ...[repository, number, ...(part === undefined ? [] : [part])],
  ])
}

/** Stores titles, bodies and comments for the search of related threads. */
export function indexEvent(
  tx: Tx,
  { type, repository, subject, comment }: GitHubEvent,
  redact: (text: string) => string,
): void {
  if (repository === undefined || subject === undefined) return
  if (/^issues\.(?:deleted|transferred)$/.test(type)) {
    forgetDocuments(tx, repository, subject.number)
    return
  }
  const { kind, number, author, state, updatedAt } = subject
  const title = redact(subject.title)
  const at = Date.parse(updatedAt ?? '') || tx.now
  const thread = { repository, kind, number, part: '', title, body: redact(subject.body), author, state, at }
  keepDocument(tx, thread)
  if (comment === undefined) return
  // GitHub numbers comments, reviews and review comments separately.
  const part = comment.kind === 'comment' ? String(comment.id) : `${comment.kind}-${comment.id}`
  if (type.endsWith('.deleted') || comment.body.trim() === '') forgetDocuments(tx, repository, number, part)
  else keepDocument(tx, { ...thread, part, body: redact(comment.body), author: comment.author })
}

export interface RelatedThread {
  kind: string
  number: number
  title: string
  state: string
  /** The beginning of the matching text. */
  body: string
}

/** Related threads, the best match first. `words` contain letters and digits only. */
export async function searchDocuments(
  store: Pick<Store, 'engine' | 'all'>,
  {
    repository,
    words,
    except,
    limit,
  }: { repository: string; words: readonly string[]; except: number; limit: number },
): Promise<RelatedThread[]> {
  if (words.length === 0) return []
  const found =
    store.engine === 'sqlite'
      ? await store.all<RelatedThread>(SEARCH_SQLITE, [
          words.map((word) => `"${word}"`).join(' OR '),
          repository,
          except,
        ])
      : await store.all<RelatedThread>(SEARCH_POSTGRES, [words.join(' | '), repository, except])
  const threads = new Map<number, RelatedThread>()
  for (const one of found) if (!threads.has(one.number)) threads.set(one.number, one)
  return [...threads.values()].slice(0, limit)
}

/** Reads more rows than requested, because several may belong to one thread. */
const SEARCH_SQLITE = `SELECT d.kind, d.number, d.title, d.state, substr(d.body, 1, 600) AS body FROM github_search
  JOIN github_documents d ON d.id = github_search.rowid
  WHERE github_search MATCH ? AND d.repository = ? AND d.number <> ? ORDER BY bm25(github_search, 4.0, 1.0), d.number LIMIT 50`

const SEARCH_POSTGRES = `SELECT d.kind, d.number, d.title, d.state, substr(d.body, 1, 600) AS body FROM github_documents d, to_tsquery('english', ?) AS wanted
  WHERE d.words @@ wanted AND d.repository = ? AND d.number <> ? ORDER BY ts_rank(d.words, wanted) DESC, d.number LIMIT 50`

const STOP: ReadonlySet<string> = new Set(
  'the and for with that this from have has not but you your are was were when what how why can does into out its they them then than there here will would could should about after before only also just been more some any all get got use using'.split(
    ' ',
  ),
)
const MAX_WORDS = 12

/** Words for the search of related threads: letters and digits only, so that no search engine reads them as syntax. */
export function searchWords(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]{3,40}/gu) ?? []
  return [...new Set(words)].filter((word) => !STOP.has(word)).slice(0, MAX_WORDS)
}

const MAX_MENTIONS = 20

export function mentionsIn(text: string): string[] {
  const found = text.matchAll(/(?:^|[^\w`/])(@[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))(?![\w/])/g)
  return [...new Set([...found].map(([, login]) => login!))].slice(0, MAX_MENTIONS)
}

/** `#123` in a text. */
export function numbersIn(text: string): number[] {
  const found = text.matchAll(/(?:^|[\s(])#([1-9]\d{0,8})\b/g)
  return [...new Set([...found].map(([, number]) => Number(number)))].slice(0, MAX_MENTIONS)
}
