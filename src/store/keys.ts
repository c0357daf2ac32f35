import type { IdKind } from '../base/ids.ts'

/** Queries for the last key of each kind. Keys only grow, in the order of the commits. */
export const LAST_KEY: Record<IdKind, string> = {
  msg: 'SELECT MAX(seq) AS last FROM messages',
  req: 'SELECT MAX(id) AS last FROM human_requests',
  tok: 'SELECT MAX(id) AS last FROM tokens',
  task: 'SELECT MAX(id) AS last FROM tasks',
  run: 'SELECT MAX(id) AS last FROM runs',
}
