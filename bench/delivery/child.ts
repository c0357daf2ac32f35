/** Requests to a child process of the bench, and its answers, over Node's IPC channel. */
import { fork } from 'node:child_process'
import { join } from 'node:path'

export type Answers = Record<string, (argument: never) => unknown>

export interface Child {
  readonly pid: number
  ask<Answer>(question: string, argument?: unknown): Promise<Answer>
  /** Asks the child to end, and waits for its end. */
  close(): Promise<void>
}

interface Asked {
  id: number
  question: string
  argument: unknown
}
type Answered = { id: number; answer?: unknown; error?: string }

const END_MS = 60_000

export async function startChild(file: string, order: unknown, execArgv: string[] = []): Promise<Child> {
  const child = fork(join(import.meta.dirname, file), [JSON.stringify(order)], {
    execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>()
  let asked = 0
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      for (const { reject } of waiting.values()) reject(new Error(`${file} ended`))
      resolve()
    })
  })
  child.on('message', ({ id, answer, error }: Answered) => {
    const waiter = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) waiter?.resolve(answer)
    else waiter?.reject(new Error(error))
  })
  const ask = <Answer>(question: string, argument?: unknown) =>
    new Promise<Answer>((resolve, reject) => {
      const id = ++asked
      waiting.set(id, { resolve: resolve as (answer: unknown) => void, reject })
      child.send({ id, question, argument } satisfies Asked, (error) => error && reject(error))
    })
  await Promise.race([
    ask('ready'),
    gone.then(() => {
      throw new Error(`${file} did not start`)
    }),
  ])
  return {
    pid: child.pid!,
    ask,
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const kill = setTimeout(() => child.kill('SIGKILL'), END_MS)
      await ask('close').catch(() => {})
      child.disconnect()
      await gone
      clearTimeout(kill)
    },
  }
}

/** In the child: ends when the bench ends, and ignores Ctrl-C, which reaches the whole process group. */
export function answerParent(answers: Answers & { close(): Promise<void> }): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
  process.on('message', async ({ id, question, argument }: Asked) => {
    try {
      const answer = question === 'ready' ? true : await answers[question]!(argument as never)
      process.send!({ id, answer } satisfies Answered)
    } catch (error) {
      process.send!({ id, error: error instanceof Error ? error.stack! : String(error) } satisfies Answered)
    }
  })
  process.once('disconnect', () => {
    const end = () => process.exit()
    setTimeout(end, END_MS).unref()
    answers.close().then(end, end)
  })
}
