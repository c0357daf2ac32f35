import type { Store, Tx } from '../../store/store.ts'

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

export async function keepDocument(tx: Tx, document: GithubDocument): Promise<void> {
  // PostgreSQL rejects NUL characters.
  const plain = (text: string) => text.toWellFormed().replaceAll('\0', '').slice(0, MAX_LENGTH).toWellFormed()
  await tx.run(
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

export async function forgetDocuments(
  tx: Tx,
  repository: string,
  number: number,
  part?: string,
): Promise<void> {
  const only = part === undefined ? '' : ' AND part = ?'
  await tx.run(`DELETE FROM github_documents WHERE repository = ? AND number = ?${only}`, [
    ...[repository, number, ...(part === undefined ? [] : [part])],
  ])
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
