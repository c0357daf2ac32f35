/** Ids are short, ordered and typable: `msg_1042`. The number is the row's key, so that no second index is needed. */
export type IdKind = 'msg' | 'req' | 'tok' | 'task'

export function formatId(kind: IdKind, key: number): string {
  return `${kind}_${key}`
}

/** The key inside an id of that kind, or undefined for anything else. */
export function parseId(kind: IdKind, id: string): number | undefined {
  const match = /^([a-z]+)_([1-9]\d{0,15})$/.exec(id)
  return match !== null && match[1] === kind ? Number(match[2]) : undefined
}
