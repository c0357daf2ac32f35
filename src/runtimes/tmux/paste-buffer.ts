/** Text on its way into a pane: a private file that the tmux server loads into a buffer. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PasteBuffer } from './paste-target.ts'
import { outlineOf } from './pending-input.ts'
import { withoutFormats } from './quote.ts'

const EXTENSION = '.txt'
const BUFFER_FILE = /^orc-\d+-\d+-\d+\.txt$/

export function isBufferFile(name: string): boolean {
  return BUFFER_FILE.test(name)
}

/** The file may have been loaded into a buffer already. */
export function bufferNameOf(file: string): string {
  return file.slice(0, -EXTENSION.length)
}

/** Synchronous: a small file in the page cache, in the path of every message. */
export function createPasteBuffer(folder: string, name: string, text: string): PasteBuffer {
  const path = join(folder, `${name}${EXTENSION}`)
  let isWritten = false
  return {
    path,
    name,
    outline: outlineOf(text),
    writeFile() {
      if (!isWritten) writeFileSync(path, text, { mode: 0o600 })
      isWritten = true
    },
    remove: () => rmSync(path, { force: true }),
  }
}

export function loadBuffer({ name: buffer, path }: PasteBuffer): readonly string[] {
  return ['load-buffer', '-b', buffer, withoutFormats(path)]
}
