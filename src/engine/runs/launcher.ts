import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'

/** What is started in a session of its own. */
export interface LaunchOrder {
  /** For the shell. */
  readonly script: string
  readonly cwd: string
  /** Set besides what the launcher was started with. */
  readonly variables: Readonly<Record<string, string>>
  readonly logFile: string
}

export interface Launched {
  /** Of the process that leads the session; undefined: it never began. */
  readonly pid: Promise<number | undefined>
  /** `isKnown` false: the launcher went first. */
  readonly exited: Promise<Exit>
}

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  readonly isKnown: boolean
}

export interface Launcher {
  launch(order: LaunchOrder): Launched
  /** What it started goes on. */
  close(): void
}

interface Open {
  pid(value: number | undefined): void
  exit(value: Exit): void
}

const SETSID = ['/usr/bin/setsid', '/bin/setsid'].find((path) => existsSync(path))
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [128 + number, name]))

export const canLaunch = SETSID !== undefined

/**
 * A shell that starts processes for the service. For each child node copies the tables of all its own memory, and stands
 * still meanwhile: with a heap of 300 MB that is tens of milliseconds, where a shell takes less than one.
 */
export function createLauncher(environment: Readonly<Record<string, string>>): Launcher {
  const open = new Map<string, Open>()
  let shell: ChildProcess | undefined
  let count = 0

  function start(): ChildProcess {
    const started = spawn('/bin/sh', [], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
      env: environment,
    })
    let rest = ''
    const news = started.stdio[3] as Readable
    news.setEncoding('latin1').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) hear(line)
    })
    const gone = () => {
      if (shell !== started) return
      shell = undefined
      for (const one of open.values()) lose(one)
      open.clear()
    }
    started.on('error', gone)
    // Its last words come before the end of the pipe; the processes that it leaves may hold that open.
    started.on('exit', () => setImmediate(gone))
    started.stdin!.on('error', () => {})
    // It must not keep a service alive that is about to end.
    started.unref()
    return started
  }

  function hear(line: string) {
    const [what, key = '', number = ''] = line.split(' ')
    const one = open.get(key)
    if (one === undefined) return
    if (what === 'p') one.pid(Number(number))
    if (what !== 'e') return
    open.delete(key)
    one.pid(undefined)
    const code = Number(number)
    const signal = SIGNALS.get(code)
    one.exit({ code: signal === undefined ? code : null, signal: signal ?? null, isKnown: true })
  }

  return {
    launch({ script, cwd, variables, logFile }) {
      shell ??= start()
      const key = String(++count)
      const pid = Promise.withResolvers<number | undefined>()
      const exited = Promise.withResolvers<Exit>()
      open.set(key, { pid: pid.resolve, exit: exited.resolve })
      const set = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`)
      const inside = `printf 'p ${key} %s\\n' "$$" >&3; exec 3>&-\n${script}`
      const run = `${set.join(' ')} ${SETSID} /bin/sh -c ${quote(inside)} </dev/null >>${quote(logFile)} 2>&1`
      shell.stdin!.write(`( cd ${quote(cwd)} && ${run}; echo "e ${key} $?" >&3 ) &\n`)
      return { pid: pid.promise, exited: exited.promise }
    },
    close() {
      shell?.stdin?.end()
    },
  }
}

function lose(one: Open) {
  one.pid(undefined)
  one.exit({ code: null, signal: null, isKnown: false })
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
