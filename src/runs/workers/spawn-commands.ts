/**
 * Starts the commands of runs. This is a process of its own because a fork takes time in proportion to the memory of the
 * process that forks: the service would be blocked for 3 to 5 ms per command, this process needs less than 1 ms. To stay
 * small it imports nothing but Node's own modules. It exits with the service; commands outlive both.
 */
import { spawn } from 'node:child_process'
import { closeSync, constants, lstatSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

export interface LaunchOrder {
  readonly id: number
  /** A command line for /bin/sh. */
  readonly command: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Receives the standard output and the standard error. */
  readonly logFile: string
  /** Receives the pid of the wrapper and the exit code: see WRAPPER. */
  readonly exitFile: string
}

export type LaunchReport =
  | { readonly id: number; readonly type: 'started'; readonly pid: number }
  | { readonly id: number; readonly type: 'failed'; readonly why: string }
  | {
      readonly id: number
      readonly type: 'exited'
      readonly code: number | null
      readonly signal: string | null
    }

/**
 * Leads the process group of a command. It writes its pid, and later the exit code of the command, to descriptor 3: the
 * next service then knows how the command ended. The command runs in a second shell, so that neither `exec` nor an EXIT
 * trap can prevent this. `?` means that a signal ended the command. A stopping service may have sent it, so the next
 * service treats the attempt as lost and starts it again. The trap keeps a signal to the group from ending the wrapper
 * first. Unlike `trap ''`, it leaves the default action of the command in place.
 */
const WRAPPER = `trap : HUP INT QUIT TERM
echo $$ >&3
/bin/sh -c "$1" 3>&-
code=$?
note=$code
if [ $code -gt 128 ] && [ $code -lt 193 ]; then note='?'; fi
echo "$note" >&3
exit $code`

function launch({ id, command, cwd, env, logFile, exitFile }: LaunchOrder): void {
  const files: number[] = []
  try {
    makeLogFolder(dirname(logFile))
    // Files and not pipes: a pipe would break with the service, and the command with it.
    files.push(openLog(logFile), openNew(exitFile))
    const [log, exit] = files
    const child = spawn('/bin/sh', ['-c', WRAPPER, 'sh', command], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', log, log, exit],
    })
    child.on('error', ({ message }) => report({ id, type: 'failed', why: message }))
    child.on('exit', (code, signal) => report({ id, type: 'exited', code, signal }))
    if (child.pid !== undefined) report({ id, type: 'started', pid: child.pid })
  } catch (error) {
    report({ id, type: 'failed', why: error instanceof Error ? error.message : String(error) })
  } finally {
    for (const file of files) closeSync(file)
  }
}

/** If the service has just ended, nobody needs the report: `disconnect` follows. */
function report(event: LaunchReport): void {
  process.send?.(event, () => {})
}

/**
 * Every agent of the run can write to `_logs/`, so nothing here follows a link, waits for a pipe or reuses an existing
 * file.
 */
function makeLogFolder(folder: string): void {
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  rmSync(folder, { force: true })
  mkdirSync(folder, { recursive: true })
}

/** Opens a new log. If the same attempt starts again, after a power failure, its first output is kept as `.before`. */
function openLog(file: string): number {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found?.isFile() && found.size > 0) {
    rmSync(`${file}.before`, { recursive: true, force: true })
    renameSync(file, `${file}.before`)
  }
  return openNew(file, constants.O_APPEND)
}

/** Removes any file with this name and opens a new one. The caller closes it. */
function openNew(file: string, flags = 0): number {
  rmSync(file, { recursive: true, force: true })
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants
  return openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | flags, 0o644)
}

process.on('message', (order: LaunchOrder) => launch(order))
process.on('disconnect', () => process.exit())
