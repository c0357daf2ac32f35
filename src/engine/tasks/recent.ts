/** The newest so many, and up to as many more: the older half is forgotten at once. */
export function createRecent<Key, Value>(most: number) {
  let values = new Map<Key, Value>()
  let older = new Map<Key, Value>()
  return {
    get: (key: Key): Value | undefined => values.get(key) ?? older.get(key),
    set(key: Key, value: Value) {
      if (values.size >= most) {
        older = values
        values = new Map()
      }
      values.set(key, value)
    },
    delete(key: Key) {
      values.delete(key)
      older.delete(key)
    },
  }
}
