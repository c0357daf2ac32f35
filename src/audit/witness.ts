import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { Store } from '../store/store.ts'
import type { AuditEntry } from './entry.ts'

export interface Witness {
  seq: number
  hash: string
}

/**
 * The head of the audit chain, noted in a file outside the store. It is written at most once a second and may
 * lag behind, but it is never ahead of an honest log: a log that ends before it was cut off.
 */
export function openWitness(file: string, store: Store): { read(): Witness | undefined; close(): void } {
  let newest: Witness | undefined
  let timer: NodeJS.Timeout | undefined

  function write() {
    timer = undefined
    if (newest === undefined) return
    try {
      writeFileSync(`${file}.new`, JSON.stringify(newest), { mode: 0o600 })
      renameSync(`${file}.new`, file)
    } catch {
      // A full disk: the next commit tries again, and until then the older note stands.
    }
  }

  const stop = store.onCommit((entries: readonly AuditEntry[]) => {
    const { seq, hash } = entries.at(-1)!
    newest = { seq, hash }
    timer ??= setTimeout(write, 1000)
    timer.unref()
  })

  return {
    read: () => readWitness(file),
    close() {
      stop()
      clearTimeout(timer)
      write()
    },
  }
}

export function readWitness(file: string): Witness | undefined {
  try {
    const { seq, hash } = JSON.parse(readFileSync(file, 'utf8')) as Witness
    return typeof seq === 'number' && typeof hash === 'string' ? { seq, hash } : undefined
  } catch {
    return undefined
  }
}
