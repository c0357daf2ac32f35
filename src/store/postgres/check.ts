import { MIGRATIONS } from '../schema/migrations.ts'
import type { Reader } from '../store.ts'

const SCRIPT = MIGRATIONS.join()
const RENAMED = new Map(
  [...SCRIPT.matchAll(/ALTER TABLE (\w+) RENAME TO (\w+)/g)].map(([, from, to]) => [from!, to!]),
)
/** Under the names that they have by now. */
const DROPPED = new Set([...SCRIPT.matchAll(/DROP TABLE (\w+)/g)].map(([, dropped]) => dropped!))
const TABLES = [...SCRIPT.matchAll(/CREATE TABLE (\w+)/g)]
  .map(([, made]) => RENAMED.get(made!) ?? made!)
  .filter((table) => !DROPPED.has(table))

/** Reads every row of every table, long texts included: a damaged page or a wrong checksum then makes itself known. */
export async function checkTables(reader: Reader): Promise<string[]> {
  const problems: string[] = []
  for (const table of TABLES) {
    try {
      await reader.get(`SELECT COUNT(md5(CAST(t AS TEXT))) AS count FROM ${table} AS t`)
    } catch (error) {
      problems.push(`${table}: ${(error as Error).message}`)
    }
  }
  return problems
}
