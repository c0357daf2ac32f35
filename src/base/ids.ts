/** Ids are short, ordered and easy to type: `msg_1042`. The number is the row's key, which saves a second index. */
export type IdKind = 'msg' | 'req' | 'tok' | 'task' | 'run'

export function formatId(kind: IdKind, key: number): string {
  return `${kind}_${key}`
}

/** Returns the key of an id of that kind, or undefined for other text. */
export function parseId(kind: IdKind, id: string): number | undefined {
  // Runs for every id of every command; a regular expression takes several times as long.
  const start = kind.length + 1
  if (!id.startsWith(kind) || id[kind.length] !== '_' || id.length === start || id.length > start + 16)
    return undefined
  for (let at = start; at < id.length; at++) {
    const digit = id.charCodeAt(at) - 0x30
    if (digit < (at === start ? 1 : 0) || digit > 9) return undefined
  }
  return Number(id.slice(start))
}
