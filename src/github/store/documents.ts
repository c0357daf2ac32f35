import type { Store, Tx } from '../../store/store.ts'

/** What the repository has shown us: an issue, a pull request, a comment. */
export interface GithubDocument {
  repository: string
  kind: string
  number: number
  /** Empty for the thread itself, else the comment's id. */
  part: string
  title: string
  body: string
  author: string
  state: string
  /** When it was so, by GitHub's clock: what comes late does not take the place of what is newer. */
  at: number
}

const LONGEST = 20_000

export async function keepDocument(tx: Tx, document: GithubDocument): Promise<void> {
  // PostgreSQL takes no NUL.
  const plain = (text: string) => text.toWellFormed().replaceAll('\0', '').slice(0, LONGEST).toWellFormed()
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

export interface Related {
  kind: string
  number: number
  title: string
  state: string
  /** The beginning of what fits. */
  body: string
}

/** Threads that speak of the same, the closest first. `words`: letters and digits only. */
export async function searchDocuments(
  store: Pick<Store, 'engine' | 'all'>,
  {
    repository,
    words,
    except,
    limit,
  }: { repository: string; words: readonly string[]; except: number; limit: number },
): Promise<Related[]> {
  if (words.length === 0) return []
  const found =
    store.engine === 'sqlite'
      ? await store.all<Related>(SEARCH_SQLITE, [
          words.map((word) => `"${word}"`).join(' OR '),
          repository,
          except,
        ])
      : await store.all<Related>(SEARCH_POSTGRES, [words.join(' | '), repository, except])
  const threads = new Map<number, Related>()
  for (const one of found) if (!threads.has(one.number)) threads.set(one.number, one)
  return [...threads.values()].slice(0, limit)
}

/** More than are asked for, since several may be of one thread. */
const SEARCH_SQLITE = `SELECT d.kind, d.number, d.title, d.state, substr(d.body, 1, 600) AS body FROM github_search
  JOIN github_documents d ON d.id = github_search.rowid
  WHERE github_search MATCH ? AND d.repository = ? AND d.number <> ? ORDER BY bm25(github_search, 4.0, 1.0), d.number LIMIT 50`

const SEARCH_POSTGRES = `SELECT d.kind, d.number, d.title, d.state, substr(d.body, 1, 600) AS body FROM github_documents d, to_tsquery('english', ?) AS wanted
  WHERE d.words @@ wanted AND d.repository = ? AND d.number <> ? ORDER BY ts_rank(d.words, wanted) DESC, d.number LIMIT 50`
