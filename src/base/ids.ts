/** Ids are short, ordered and typable: `msg_1042`. The number is the row's key, so that no second index is needed. */
export type IdKind = 'msg' | 'req' | 'tok' | 'task' | 'run'

export function formatId(kind: IdKind, key: number): string {
  return `${kind}_${key}`
}

/** The key inside an id of that kind, or undefined for anything else. */
export function parseId(kind: IdKind, id: string): number | undefined {
  // Asked for every id of every command: an expression would take several times as long.
  const start = kind.length + 1
  if (!id.startsWith(kind) || id[kind.length] !== '_' || id.length === start || id.length > start + 16)
    return undefined
  for (let at = start; at < id.length; at++) {
    const digit = id.charCodeAt(at) - 0x30
    if (digit < (at === start ? 1 : 0) || digit > 9) return undefined
  }
  return Number(id.slice(start))
}
