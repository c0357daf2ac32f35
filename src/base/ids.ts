/** Ids are short, ordered and easy to type: `msg_1042`. The number is the row's key, which saves a second index. */
export type IdKind = 'msg' | 'req' | 'tok' | 'task' | 'run'

export function formatId(kind: IdKind, key: number): string {
  return `${kind}_${key}`
}

const KEY = /^[1-9]\d{0,15}$/

/** Returns the key of an id of that kind, or undefined for other text. */
export function parseId(kind: IdKind, id: string): number | undefined {
  if (!id.startsWith(`${kind}_`)) return undefined
  const key = id.slice(kind.length + 1)
  return KEY.test(key) ? Number(key) : undefined
}
