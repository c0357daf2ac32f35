import type { Reader } from '../store.ts'
import { nameFault } from './fault.ts'

/** Reads every row of every table, long texts included: a damaged page or a wrong checksum then makes itself known. */
export async function checkTables(reader: Reader, server: string): Promise<string[]> {
  const problems: string[] = []
  try {
    const tables = await reader.all<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`,
    )
    for (const { name } of tables) {
      const problem = await readWhole(reader, server, name)
      if (problem !== undefined) problems.push(problem)
    }
  } catch (error) {
    problems.push((error as Error).message)
  }
  return problems
}

async function readWhole(reader: Reader, server: string, table: string): Promise<string | undefined> {
  try {
    await reader.get(`SELECT COUNT(md5(CAST(t AS TEXT))) AS count FROM "${table}" AS t`)
    return undefined
  } catch (error) {
    return `${table}: ${(nameFault(server, error) as Error).message}`
  }
}
