const translated = new Map<string, string>()

/** Replaces `?` by `$1`, `$2` … and caches the result: there are few distinct statements. */
export function toPostgres(sql: string): string {
  let text = translated.get(sql)
  if (text === undefined) {
    text = translate(sql)
    translated.set(sql, text)
  }
  return text
}

function translate(sql: string): string {
  if (/'[^']*\?[^']*'/.test(sql.replaceAll(/'[^'?]*'/g, ''))) {
    throw new Error(`A ? in a string literal would be taken for a parameter: ${sql}`)
  }
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}
