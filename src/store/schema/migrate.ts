import { AppError } from '../../base/errors.ts'
import type { StoreConnection } from '../store.ts'
import { MIGRATIONS } from './migrations.ts'

/** Fragments that differ between SQL dialects. */
export type Dialect = Record<
  'key' | 'int' | 'text' | 'clustered' | 'audit_key' | 'serial' | 'github_search',
  string
>

/** Migrates the store to this version's schema, or refuses a store written by a newer version. */
export async function migrate(
  connection: StoreConnection,
  dialect: Dialect,
  execute: (script: string) => void | Promise<void>,
  /** Throws while other daemons use the store: they would continue with the old schema. */
  checkAlone: () => Promise<void> = async () => {},
): Promise<void> {
  await execute('CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)')
  const row = await connection.get<{ value: string }>(`SELECT value FROM meta WHERE key = 'schema_version'`)
  const version = row === undefined ? 0 : Number(row.value)
  if (!Number.isSafeInteger(version) || version < 0) {
    throw new AppError('STORE_CORRUPT', `The store's schema version is not a number: ${row?.value}`, {
      hint: 'Restore the store from a backup.',
    })
  }
  if (version > MIGRATIONS.length) {
    throw new AppError(
      'STORE_NEWER',
      `The store has schema version ${version}; this Orchub knows versions up to ${MIGRATIONS.length}`,
      { hint: 'A newer Orchub wrote it. Update this one, or use another state folder (ORC_HOME).' },
    )
  }
  if (version > 0 && version < MIGRATIONS.length) await checkAlone()
  for (let next = version; next < MIGRATIONS.length; next++) {
    const script = MIGRATIONS[next]!.replace(/\{(\w+)\}/g, (_, word: keyof Dialect) => dialect[word])
    await connection.begin()
    try {
      await execute(script)
      connection.run(
        `INSERT INTO meta (key, value) VALUES ('schema_version', ?)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
        [String(next + 1)],
      )
      await connection.commit()
    } catch (error) {
      await connection.rollback()
      if (error instanceof AppError) throw error
      const text = (error as Error).message
      throw new AppError(
        'STORE_CORRUPT',
        `The store could not be migrated to schema version ${next + 1} (${text})`,
        {
          hint: 'Its tables do not match its version. Restore it from a backup.',
          cause: error,
        },
      )
    }
  }
}
