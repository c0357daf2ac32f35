import { describe, expect, it } from 'vitest'
import { toPostgres } from '../../../src/store/postgres/connection.ts'

describe('a statement for PostgreSQL', () => {
  it('numbers its parameters', () => {
    expect(toPostgres(`SELECT a FROM b WHERE c = ? AND d IN (?, ?) LIMIT ?`)).toBe(
      'SELECT a FROM b WHERE c = $1 AND d IN ($2, $3) LIMIT $4',
    )
  })

  it('has the same text each time, so that it is prepared once', () => {
    expect(toPostgres(`x LIKE ? ESCAPE '\\' AND y = 'it''s'`)).toBe(`x LIKE $1 ESCAPE '\\' AND y = 'it''s'`)
    expect(toPostgres('SELECT 1')).toBe('SELECT 1')
  })

  it.each([`SELECT '?'`, `SELECT 'a' || 'why?' || ?`, `SELECT 'it''s ?', ?`])(
    'is refused if a literal holds a question mark: %s',
    (sql) => {
      expect(() => toPostgres(sql)).toThrow('string literal')
    },
  )
})
