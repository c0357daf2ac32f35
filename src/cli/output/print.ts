// `import` would take longer, and every short command loads this file.
const { writeSync } = process.getBuiltinModule('node:fs')

/** The reader of the output has exited (`orc audit | head`), which isn't an error: the program ends quietly. */
export class OutputClosed extends Error {}

/** Synchronous, so that messages are acknowledged only after they were printed. */
export function print(text: string): void {
  write(1, `${safe(text, 'out')}\n`)
}

/** A line of JSON. Also escapes control characters that JSON allows but some terminals obey. */
export function printJson(value: unknown): void {
  const json = JSON.stringify(value).replace(/[\x7f-\x9f\u2028\u2029]/g, escapeUnit)
  write(1, `${json}\n`)
}

/** Writes errors, notes and progress to standard error. */
export function complain(text: string): void {
  write(2, `${safe(text, 'err')}\n`)
}

/** A note on standard error that people may skip. */
export function remark(text: string): void {
  complain(paint('dim', text, 'err'))
}

/** A line on standard error with a label that stands out. */
export function warn(text: string, label = 'warning'): void {
  complain(`${paint('yellow', `${label}:`, 'err')} ${text}`)
}

/** For output that isn't essential: a service keeps running if its reader has exited or the disk is full. */
export function tryWrite(write: () => void): void {
  try {
    write()
  } catch (error) {
    const isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC'
    if (!isFull && !(error instanceof OutputClosed)) throw error
  }
}

/** Writes text unchanged, for output that isn't meant for a terminal. */
export function printRaw(text: string): void {
  write(1, text)
}

const isColoured = { out: colourTest(1), err: colourTest(2) }

/** Colors only on a terminal and unless NO_COLOR is set (https://no-color.org). Cached on first use. */
function colourTest(descriptor: number): () => boolean {
  let answer: boolean | undefined
  return () => {
    const wanted = !process.env.NO_COLOR && process.env.TERM !== 'dumb'
    answer ??= wanted && process.getBuiltinModule('node:tty').isatty(descriptor)
    return answer
  }
}

const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36, grey: 90 } as const
export type Style = keyof typeof STYLES

export function paint(style: Style, text: string, on: 'out' | 'err' = 'out'): string {
  return isColoured[on]() && text !== '' ? `\x1b[${STYLES[style]}m${text}\x1b[0m` : text
}

/**
 * Agents' text is hostile: characters that control a terminal or reorder text are replaced by visible ones. Line ends,
 * tabs, and the joiners that emoji and several scripts need stay.
 */
export function plain(text: string): string {
  if (/^[\x20-\x7e\n\t]*$/.test(text)) return text
  return text
    .replace(/\r\n/g, '\n')
    .replace(/[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]--[\n\t\u200c\u200d]]/gv, visible)
}

export function plainLine(text: string): string {
  return plain(text).replace(/[\n\t]+/g, ' ')
}

/** Second line of defence if a renderer forgets `plain`: only the styles above pass, and only to a terminal. */
export function safe(text: string, on: 'out' | 'err'): string {
  if (!text.includes('\x1b') || !isColoured[on]()) return plain(text)
  return text
    .split(/(\x1b\[(?:[012]|3[1-6]|90)m)/)
    .map((part, index) => (index % 2 === 1 ? part : plain(part)))
    .join('')
}

function visible(character: string): string {
  const code = character.codePointAt(0)!
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : `\\u{${code.toString(16)}}`
}

function escapeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function write(descriptor: number, text: string): void {
  let bytes: Uint8Array = Buffer.from(text)
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(descriptor, bytes))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // EIO: the terminal was closed.
      if (code === 'EPIPE' || code === 'EIO') throw new OutputClosed()
      if (code !== 'EAGAIN') throw error
      // A non-blocking pipe is full.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
  }
}
