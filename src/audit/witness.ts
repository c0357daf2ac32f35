import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { Store } from '../store/store.ts'
import type { AuditEntry } from './entry.ts'
import type { ChainMark } from './verify.ts'

/**
 * The head of the audit chain, in a file outside the store. Written at most once a second, it may lag behind but never
 * lead: a log that ends before it was cut off.
 */
export function openWitness(file: string, store: Store): { read(): ChainMark | undefined; close(): void } {
  let newest: ChainMark | undefined
  let timer: NodeJS.Timeout | undefined

  function write() {
    timer = undefined
    if (newest === undefined) return
    try {
      writeFileSync(`${file}.new`, JSON.stringify(newest), { mode: 0o600 })
      renameSync(`${file}.new`, file)
    } catch {
      // A full disk: keep the older file; the next commit tries again.
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

export function readWitness(file: string): ChainMark | undefined {
  try {
    const { seq, hash } = JSON.parse(readFileSync(file, 'utf8')) as ChainMark
    return typeof seq === 'number' && typeof hash === 'string' ? { seq, hash } : undefined
  } catch {
    return undefined
  }
}
