/** A text on its way into a pane: in a private file, where the tmux server reads it. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Spooled } from './paste-target.ts'
import { outlineOf } from './pending-input.ts'
import { withoutFormats } from './quote.ts'

const ENDING = '.txt'
const SPOOL_FILE = /^orc-\d+-\d+-\d+\.txt$/

export function isSpoolFile(name: string): boolean {
  return SPOOL_FILE.test(name)
}

/** It may have been loaded there already. */
export function bufferOf(spoolFile: string): string {
  return spoolFile.slice(0, -ENDING.length)
}

export function loadBuffer({ buffer, path }: Spooled): readonly string[] {
  return ['load-buffer', '-b', buffer, withoutFormats(path)]
}

/** Sync: a small file in the page cache, on the way of every message. */
export function spool(folder: string, buffer: string, text: string): Spooled {
  const path = join(folder, `${buffer}${ENDING}`)
  let isLaid = false
  return {
    path,
    buffer,
    outline: outlineOf(text),
    lay() {
      if (!isLaid) writeFileSync(path, text, { mode: 0o600 })
      isLaid = true
    },
    remove: () => rmSync(path, { force: true }),
  }
}
