import { createHash } from 'node:crypto'
import { type FSWatcher, statSync, watch } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { z } from 'zod'
import { createLineSplitter, type SplitLine } from './line-splitter.ts'

/** A position between two lines of a file, from which a later follower continues. JSON. */
export const FilePosition = z.object({
  inode: z.string(),
  /** After the last complete line that was passed on. */
  offset: z.number(),
  /** Fingerprint of the line before it, since inodes are reused and files rewritten in place. */
  mark: z.string(),
})
export type FilePosition = Readonly<z.output<typeof FilePosition>>

/** `truncated`: shorter than what was read; `rewritten`: different content; `replaced`: another file. */
type ResetReason = 'truncated' | 'rewritten' | 'replaced'

export interface LineFollowerOptions {
  readonly file: string
  /** Position of an earlier follower; from the start if undefined. */
  readonly from?: FilePosition | undefined
  /**
   * Called with each complete line, in order, one at a time. If it rejects, the same line is retried later,
   * and the position stays before it.
   */
  onLine(line: string, at: { offset: number; end: number }): void | Promise<void>
  /** Later lines are from the start of the file again. */
  onReset?(reason: ResetReason): void
  /** Longer lines are skipped with a warning. */
  readonly maxLineBytes?: number
  readonly log: FollowerLog
}

export interface FollowerLog {
  warn(fields: Record<string, unknown>, text: string): void
}

const CHUNK_BYTES = 64 * 1024
const MAX_LINE_BYTES = 32 * 1024 * 1024
const NO_MARK = ''
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 30_000

/**
 * Follows a growing file of lines by file events; its existing content counts as new.
 * States: `waiting` (no file yet, `handle` undefined), `following` (`handle` is open; events trigger a check,
 * and checks run one after the other: `checks` is the last one, `next` the one that has not started),
 * `retrying` (a line was rejected or unreadable; `retry` is the timer, from FIRST_RETRY_MS, about one visible
 * delay, doubling up to LAST_RETRY_MS so that a broken store is not flooded) and `closed` (final). A
 * truncated, rewritten or replaced file restarts at offset 0.
 */
export function followLines(options: LineFollowerOptions) {
  const { file, onLine, onReset, log } = options
  const splitter = createLineSplitter(options.maxLineBytes ?? MAX_LINE_BYTES)
  let handle: FileHandle | undefined
  let inode = ''
  let offset = 0
  /** Fingerprint of the line before the offset; computed on demand, not for each line. */
  let mark = (): string => NO_MARK
  let resumeAt = options.from
  let retryMs = FIRST_RETRY_MS
  let retry: NodeJS.Timeout | undefined
  let closed = false
  let checks: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  const events = watchFile({
    file,
    changed: () => void check(),
    failed: (error) => log.warn({ file, err: error }, 'cannot watch a file; its changes are noticed late'),
  })
  void check()

  function check(): Promise<void> {
    if (next !== undefined) return next
    next = checks.then(async () => {
      next = undefined
      if (closed) return
      try {
        await readNewLines()
        retryMs = FIRST_RETRY_MS
      } catch (error) {
        if (closed) return
        log.warn({ file, offset, err: error }, 'a line could not be read or processed; it will be retried')
        splitter.clear()
        clearTimeout(retry)
        retry = setTimeout(() => void check(), retryMs).unref()
        retryMs = Math.min(retryMs * 2, LAST_RETRY_MS)
      }
    })
    checks = next
    return next
  }

  async function readNewLines() {
    const present = await ifThere(async () => String((await stat(file, { bigint: true })).ino))
    // A file that was moved away is still read until another one is at its path.
    if (handle !== undefined) await readAppended(handle)
    if (present === undefined || present === inode || closed) return
    const opened = await ifThere(() => open(file, 'r'))
    if (opened === undefined) return
    const isFirst = handle === undefined
    // Only now: while the old file is open, no new one can get its inode.
    await handle?.close()
    handle = opened
    events.attach()
    inode = String((await opened.stat({ bigint: true })).ino)
    if (isFirst) await resumePosition(opened)
    else restart('replaced')
    await readAppended(opened)
  }

  /** Continues at the earlier follower's position, if this is still the same file. */
  async function resumePosition(opened: FileHandle) {
    const from = resumeAt
    resumeAt = undefined
    if (from === undefined) return
    if (from.inode !== inode) return restart('replaced')
    offset = from.offset
    mark = () => from.mark
    await restartIfChanged(opened)
  }

  async function readAppended(opened: FileHandle) {
    await restartIfChanged(opened)
    // Up to the current size: later writes trigger their own event, and `settled` must end.
    const { size } = await opened.stat()
    const start = offset + splitter.pending
    if (size <= start) return
    // Not retained: most agents are idle most of the time.
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - start))
    for (let at = start; at < size && !closed; at = offset + splitter.pending) {
      const { bytesRead } = await opened.read(chunk, 0, Math.min(chunk.length, size - at), at)
      if (bytesRead === 0) return
      for (const line of splitter.split(chunk.subarray(0, bytesRead))) {
        if (closed) return
        await passOn(line)
      }
    }
  }

  async function passOn(line: SplitLine) {
    const { text, bytes } = line
    const end = offset + bytes
    if (text === undefined) log.warn({ file, offset, bytes }, 'skipped a line over the size limit')
    else await onLine(text, { offset, end })
    offset = end
    mark = () => markOf(bytes, line.head)
  }

  async function restartIfChanged(opened: FileHandle) {
    const { size } = await opened.stat()
    if (size < offset + splitter.pending) return restart('truncated')
    if (!(await hasMark(opened, offset, mark()))) restart('rewritten')
  }

  function restart(reason: ResetReason) {
    splitter.clear()
    offset = 0
    mark = () => NO_MARK
    onReset?.(reason)
  }

  return {
    /** After the last line whose `onLine` has resolved; undefined while there is no file. */
    position: () => (inode === '' ? resumeAt : { inode, offset, mark: mark() }),
    /**
     * Resolves once everything written so far was passed on, unless `onLine` rejected. Never rejects. Must not
     * be awaited within `onLine`.
     */
    settled: check,
    /** No line is passed on after it resolves. Must not be awaited within `onLine`. */
    async close(): Promise<void> {
      closed = true
      clearTimeout(retry)
      events.close()
      await checks
      await handle?.close()
    },
  }
}

/** The start of the same file. */
export function beginningOf(position: FilePosition | undefined): FilePosition | undefined {
  return position && { inode: position.inode, offset: 0, mark: NO_MARK }
}

function markOf(lineBytes: number, head: Buffer): string {
  return `${lineBytes}:${head.length}:${createHash('sha256').update(head).digest('base64url').slice(0, 16)}`
}

async function hasMark(handle: FileHandle, offset: number, mark: string): Promise<boolean> {
  if (mark === NO_MARK) return true
  const [lineBytes = 0, headBytes = 0] = mark.split(':', 2).map(Number)
  const head = Buffer.alloc(headBytes)
  const { bytesRead } = await handle.read(head, 0, headBytes, offset - lineBytes)
  return markOf(lineBytes, head.subarray(0, bytesRead)) === mark
}

/** Undefined if there is no such file. */
async function ifThere<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}

const POLL_MS = 1000

interface FileWatchOptions {
  readonly file: string
  /** The file was written or replaced. May be called without a change. */
  changed(): void
  failed(error: unknown): void
}

/**
 * File events for one path whose file and folders may not exist yet or may be replaced. Uses two watches: one
 * on the file reports writes, one on its folder (or the nearest existing one) reports replacements.
 */
export function watchFile({ file, changed, failed }: FileWatchOptions) {
  const folder = dirname(file)
  let folderWatch: { path: string; inode: bigint; watcher: FSWatcher } | undefined
  let fileWatch: FSWatcher | undefined
  let closed = false
  let polling: NodeJS.Timeout | undefined

  /** The system may have run out of watches: poll instead. */
  function fail(error: unknown) {
    if (closed || polling !== undefined) return
    polling = setInterval(changed, POLL_MS).unref()
    failed(error)
  }

  function open(path: string, onEvent: (kind: string, name: string | null) => void): FSWatcher | undefined {
    try {
      const watcher = watch(path, { persistent: false }, onEvent)
      watcher.on('error', fail)
      return watcher
    } catch (error) {
      // Deleted between the check and the watch; the next event triggers another check.
      if (!isMissing(error)) fail(error)
      return undefined
    }
  }

  function watchFolder() {
    // A folder may appear between the check and the watch, so check again until nothing changes.
    for (let tries = 0; tries < 100 && !closed; tries++) {
      const nearest = nearestFolder(folder)
      if (nearest.path === folderWatch?.path && nearest.inode === folderWatch.inode) return
      folderWatch?.watcher.close()
      folderWatch = undefined
      const watcher = open(nearest.path, (kind, name) => {
        const isOurs = nearest.path !== folder || name === null || name === basename(file)
        // A moved or deleted folder is reported under its own name.
        const isItself = name === basename(nearest.path)
        if (kind !== 'rename' || !(isOurs || isItself)) return
        watchFolder()
        changed()
      })
      if (watcher === undefined) return
      folderWatch = { ...nearest, watcher }
    }
  }

  watchFolder()
  return {
    /** Watches the file that is at the path now for writes, even if it is moved. */
    attach() {
      fileWatch?.close()
      fileWatch = closed ? undefined : open(file, changed)
    },
    close() {
      closed = true
      clearInterval(polling)
      fileWatch?.close()
      folderWatch?.watcher.close()
    },
  }
}

function nearestFolder(folder: string): { path: string; inode: bigint } {
  for (let path = folder; ; path = dirname(path)) {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (found?.isDirectory()) return { path, inode: found.ino }
    if (path === dirname(path)) return { path, inode: 0n }
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}
