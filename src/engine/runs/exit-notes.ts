/**
 * How commands ended, for a service that was away meanwhile: a line for each in `_logs/exits`, written by its own shell as its
 * last deed, and by the shell that waits for it, for one that replaced its own or had a last deed of its own.
 */
import { appendLine, readTail } from './log-files.ts'

export interface ExitNote {
  /** Null: by a signal. That may have been a service on its way out, so that it is taken for lost. */
  readonly code: number | null
  /** Of the process that led its group; not in notes of earlier versions. */
  readonly pid: number | undefined
}

interface Place {
  readonly exitsFile: string
  readonly mark: string
}

/** Far more than the commands of a run leave; any agent of it can write there, too. */
const MOST_BYTES = 16 * 1024 * 1024
const FORGOTTEN = '-'
const SIGNALLED = '?'

/** Goes before the command. */
export function notingOwnEnd(place: Place): string {
  return `trap ${quoted(`orc_code=$?; ${noting(place, '$orc_code $$')}`)} EXIT`
}

/** For the shell that waits for it: `$1` is its exit code, `$2` its pid. */
export function noteAtEnd(place: Place): string {
  const isSignal = '[ "$1" -gt 128 ] && [ "$1" -lt 193 ]'
  return `if ${isSignal}; then set -- '${SIGNALLED}' "$2"; fi; ${noting(place, '$1 $2')}`
}

/** Not through a link, nor into a pipe, that an agent has put there. Opened for both ways first: so even one put there just now holds nobody up. */
function noting({ exitsFile, mark }: Place, how: string): string {
  const file = quoted(exitsFile)
  return `[ ! -f ${file} ] || [ -L ${file} ] || echo "${mark} ${how}" 9<>${file} >>${file}`
}

/** The last word on it counts. */
export function exitNoteOf(exitsFile: string, mark: string): ExitNote | undefined {
  const lines = `\n${textOf(exitsFile)}`
  const at = lines.lastIndexOf(`\n${mark} `)
  if (at < 0) return undefined
  const found = /^(\d{1,3}|\?)(?: (\d{1,10}))?(?=\n)/.exec(
    lines.slice(at + mark.length + 2, at + mark.length + 20),
  )
  if (found === null) return undefined
  const [, code, pid] = found
  return { code: code === SIGNALLED ? null : Number(code), pid: pid === undefined ? undefined : Number(pid) }
}

/** Whose ends were noted. */
export function marksIn(exitsFile: string): ReadonlySet<string> {
  return new Set(
    textOf(exitsFile)
      .split('\n')
      .map((line) => line.split(' ', 1)[0]!),
  )
}

/** The service ends it: what its shells may have noted is not its own end. */
export function forgetExit(exitsFile: string, mark: string): void {
  appendLine(exitsFile, `${mark} ${FORGOTTEN}`)
}

function textOf(exitsFile: string): string {
  return readTail(exitsFile, MOST_BYTES)?.toString('latin1') ?? ''
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
