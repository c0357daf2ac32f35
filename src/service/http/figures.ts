import type { Reader } from '../../store/store.ts'

export async function countOpenRequests(reader: Reader): Promise<number> {
  const row = await reader.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM human_requests WHERE state = 'open'`,
  )
  return row?.count ?? 0
}
