/** Texts on their way into one pane: each in a private file of its own, where the tmux server reads it. */
import { closeSync, open, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Spooled } from './paste-site.ts'
import { outlineOf } from './unsent.ts'

export interface Spool {
  put(text: string): Spooled
  /** Nothing more is put there. */
  close(): void
}

const ENDING = '.txt'
const SPOOL_FILE = /^orc-\d+-\d+-\d+\.txt$/

export function isSpoolFile(name: string): boolean {
  return SPOOL_FILE.test(name)
}

/** It may have been loaded there already. */
export function bufferOf(spoolFile: string): string {
  return spoolFile.slice(0, -ENDING.length)
}

interface Sheet {
  readonly path: string
  readonly buffer: string
  /** Made and still empty. */
  file?: number | undefined
}

/**
 * Sync: a small file in the page cache, on the way of every message. To make a file takes ten times as long as to write
 * it, and longer while the disk syncs; so after the first text an empty one is kept ready for the next.
 */
export function openSpool(folder: string, pane: string): Spool {
  let count = 0
  let ready: Sheet | undefined
  let isMaking = false
  let isClosed = false

  function newSheet(): Sheet {
    const buffer = `orc-${process.pid}-${pane.slice(1)}-${++count}`
    return { buffer, path: join(folder, `${buffer}${ENDING}`) }
  }

  function makeReady() {
    if (isMaking || isClosed || ready !== undefined) return
    isMaking = true
    const sheet = newSheet()
    open(sheet.path, 'wx', 0o600, (error, file) => {
      isMaking = false
      // Then it is made when there is something to write.
      if (error !== null) return
      sheet.file = file
      if (isClosed) discard(sheet)
      else ready = sheet
    })
  }

  return {
    put(text) {
      const sheet = ready ?? newSheet()
      ready = undefined
      let isLaid = false
      return {
        path: sheet.path,
        buffer: sheet.buffer,
        outline: outlineOf(text),
        isLoaded: false,
        lay() {
          if (!isLaid) writeFileSync(sheet.file ?? sheet.path, text, { mode: 0o600 })
          isLaid = true
        },
        remove() {
          discard(sheet)
          makeReady()
        },
      }
    },
    close() {
      isClosed = true
      if (ready !== undefined) discard(ready)
      ready = undefined
    },
  }
}

function discard(sheet: Sheet) {
  if (sheet.file !== undefined) closeSync(sheet.file)
  sheet.file = undefined
  rmSync(sheet.path, { force: true })
}
