const translated = new Map<string, string>()

/** `?` becomes `$1`, `$2` …, once for each text: there are few of them, and they come again. */
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
