import { writeSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'
import { isatty } from 'node:tty'
import type { BodyOf, TaskStreamEvent } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Client } from '../../../client/client.ts'
import { newIdempotencyKey } from '../../../client/transport.ts'
import { isEnd } from '../../../tasks/task.ts'
import { noteHalt, openClient, throughRestarts } from '../../connection/client.ts'
import { checkIdempotencyKey, exitCode, usage } from '../../errors.ts'
import { showWorking } from '../../output/layout.ts'
import { complain, paint, plain, plainLine, print, printJson, remark } from '../../output/print.ts'
import { type HumanRequest, missingText, requestText } from '../../output/request-text.ts'
import { readText } from '../../standard-input.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { createEchoes, progressLine } from './task-event-text.ts'

export const verb: Verb = {
  name: 'ask',
  summary: 'ask the team and wait for the answer; - reads standard input',
  details:
    'Orchub chooses the agents it needs and gives the question to the root agent, which answers alone or delegates. The\n' +
    'answer goes to standard output, progress to standard error. If an agent asks you something, answer right here.\n' +
    'Ctrl-C exits with 130 and leaves the team at work; --resume returns. Exits with 9 if the task failed or was\n' +
    'cancelled.',
  arguments: [{ name: 'QUESTION', optional: true, rest: true }],
  options: [
    {
      name: 'agent',
      value: 'ROOT',
      summary: 'who answers (default: the only agent without a parent, or one that Orchub chooses)',
    },
    { name: 'resume', value: 'TASK', summary: 'watch a question that was asked before' },
    {
      name: 'idempotency-key',
      value: 'KEY',
      summary: 'ask only once, even if the command is repeated with this key',
    },
  ],
  examples: [
    'orc ask "Which of our tests are slow, and why?"',
    'orc ask --agent Planner "Find a flight to Rome" > answer.txt',
    'orc ask --resume task_7',
    'orc ask --json "How many users do we have?"',
  ],
  async run(invocation) {
    const leaving = new AbortController()
    const leave = () => leaving.abort()
    process.on('SIGINT', leave)
    process.on('SIGTERM', leave)
    let task = checkResume(invocation)
    try {
      task ??= await ask(invocation, leaving.signal)
      return await watch(invocation, task, leaving)
    } catch (error) {
      if (!leaving.signal.aborted) throw error
      complain(
        task === undefined
          ? 'The team may have received the question; check with `orc task list`.'
          : `${task} keeps running. Return to it with: orc ask --resume ${task}`,
      )
      return exitCode('interrupted')
    }
  },
}

function checkResume({ option, words }: Invocation): string | undefined {
  const task = option('resume')
  if (task === undefined) return undefined
  if (words.length > 0 || option('agent') !== undefined || option('idempotency-key') !== undefined) {
    throw usage('--resume takes no question and no other options', 'Usage: orc ask --resume TASK')
  }
  return task
}

/** Retries use the same key, so that the team gets the question once. */
async function ask(
  { location, words, option, given, json }: Invocation,
  signal: AbortSignal,
): Promise<string> {
  const question = await readText(words, () => usage('QUESTION is missing', 'Usage: orc ask QUESTION…'))
  const idempotencyKey = option('idempotency-key') ?? newIdempotencyKey()
  checkIdempotencyKey(idempotencyKey)
  const body = { question, ...given('agent') }
  const working = json ? undefined : showWorking('Choosing agents')
  try {
    const { task_id } = await throughRestarts(location, signal, (client) =>
      client.ask(body, { idempotencyKey, signal }),
    )
    return task_id
  } finally {
    working?.end()
  }
}

type AskEnd = Extract<TaskStreamEvent, { type: 'end' }>

async function watch({ location, json, option }: Invocation, task: string, leaving: AbortController) {
  const { signal } = leaving
  const client = () => openClient(location)
  if (option('resume') !== undefined && !json) {
    const { id, agent, state, result, reason, ended_at } = await (await client()).task(task)
    if (ended_at !== undefined) {
      return showEnd({ type: 'end', seq: 0, at: ended_at, task_id: id, agent, state, result, reason })
    }
  }
  if (!json) await noteHalt(await client())
  const answering = openAnswerPrompt({
    client,
    typing: canType() && !json,
    interrupted: () => leaving.abort(),
  })
  const isEcho = createEchoes()
  let last = 0
  try {
    const end = await throughRestarts(location, signal, async (connected) => {
      const events = connected.taskEvents(task, { after: last, signal, reconnect: false })
      for await (const event of events) {
        if (json) printJson(event)
        else if (!isEcho(event)) await show(event, task, answering)
        // Only now: if the service went away while a request was being read, its event must come again.
        last = event.seq
        if (event.type === 'end') return event
      }
      signal.throwIfAborted()
      throw new AppError('SERVICE_UNREACHABLE', 'The service ended the stream')
    })
    answering.close()
    return json ? exitOf(end) : showEnd(end)
  } finally {
    answering.close()
  }
}

async function show(event: TaskStreamEvent, task: string, answering: AnswerPrompt) {
  if (event.type === 'asked' && event.awaits && (await answering.ask(event.request_id))) return
  if (event.type === 'verdict') answering.decided(event.request_id)
  const line = progressLine(event, task)
  if (line !== undefined) answering.say(line)
}

function showEnd(end: AskEnd): number {
  const { task_id, state, result, reason } = end
  if (state === 'completed') print(plain(result ?? reason ?? ''))
  else {
    complain(paint('red', `${task_id} is ${state}: ${plainLine(reason ?? '')}`, 'err'))
    if (result !== undefined) complain(`Result so far:\n${plain(result)}`)
    remark(`orc task trace ${task_id} shows what happened.`)
  }
  return exitOf(end)
}

function exitOf({ state }: AskEnd): number {
  if (!isEnd(state)) throw new Error(`${state} is not a final state`)
  return state === 'completed' ? exitCode('ok') : exitCode('taskFailed')
}

/** Shows questions to a person while they watch a task, and sends the answers they type. */
interface AnswerPrompt {
  /** Shows an open request; returns false if it isn't open any more. */
  ask(id: string): Promise<boolean>
  /** Removes a request that was decided, here or elsewhere. */
  decided(id: string): void
  /** Prints a line of progress above what the person is typing. */
  say(text: string): void
  close(): void
}

/** True if a person can read a question and type an answer. */
function canType(): boolean {
  return isatty(0) && isatty(2)
}

function openAnswerPrompt(options: {
  client(): Promise<Client>
  typing: boolean
  /** Ctrl-C while the person is typing. */
  interrupted(): void
}): AnswerPrompt {
  const waiting: HumanRequest[] = []
  let keyboard: Interface | undefined
  let isSending = false

  function say(text: string) {
    if (keyboard !== undefined) writeSync(2, '\r\x1b[J')
    complain(text)
    keyboard?.prompt(true)
  }

  /** Shows the next open request, or closes the prompt. */
  function next() {
    const [request] = waiting
    if (request === undefined) {
      close()
      return
    }
    keyboard ??= openKeyboard()
    keyboard.setPrompt(paint('bold', `${request.id}> `, 'err'))
    say(`${requestText(request)}\n${paint('dim', howTo(request), 'err')}`)
  }

  function openKeyboard(): Interface {
    const opened = createInterface({ input: process.stdin, output: process.stderr, historySize: 0 })
    opened.on('line', (line) => void send(line))
    opened.on('SIGINT', options.interrupted)
    // Ctrl-D: the person answers later or elsewhere, so print the open requests.
    opened.on('close', () => {
      if (keyboard !== opened) return
      keyboard = undefined
      for (const request of waiting.splice(0)) complain(`\n${requestText(request)}`)
    })
    return opened
  }

  async function send(line: string) {
    const [request] = waiting
    if (request === undefined || isSending) return
    const verdict = verdictOf(request, line)
    if (verdict === undefined) return next()
    isSending = true
    try {
      const decision = await (await options.client()).decide(request.id, verdict)
      if (decision.request.state === 'open')
        say(`${request.id} is still open: ${missingText(decision.request)}`)
      decided(request.id)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      say(
        `${paint('red', plain(error.message), 'err')}${error.hint === undefined ? '' : `\n  ${plain(error.hint)}`}`,
      )
      if (!(await isOpen(request.id))) decided(request.id)
      else next()
    } finally {
      isSending = false
    }
  }

  async function find(id: string): Promise<HumanRequest | undefined> {
    const request = await (await options.client()).humanRequest(id)
    return request.state === 'open' ? request : undefined
  }

  async function isOpen(id: string): Promise<boolean> {
    // Without the service nobody can decide, so the question stays.
    return await find(id).then(
      (request) => request !== undefined,
      () => true,
    )
  }

  function decided(id: string) {
    const at = waiting.findIndex((request) => request.id === id)
    if (at < 0) return
    waiting.splice(at, 1)
    if (at === 0) next()
  }

  function close() {
    const closing = keyboard
    keyboard = undefined
    if (closing === undefined) return
    writeSync(2, '\r\x1b[J')
    closing.close()
  }

  return {
    async ask(id) {
      const request = await find(id)
      if (request === undefined) return false
      if (!options.typing) say(requestText(request))
      else if (waiting.push(request) === 1) next()
      return true
    },
    decided,
    say,
    close,
  }
}

type PersonVerdict = BodyOf<'decide'>

/** Undefined if the request needs approve or reject and the line is neither. */
export function verdictOf(
  { kind, decisions, action }: HumanRequest,
  line: string,
): PersonVerdict | undefined {
  const takesAnswer = decisions.includes('answer')
  if (kind === 'input' && takesAnswer) return { decision: 'answer', comment: line }
  const [, word, comment = ''] = /^\s*(approve|reject)\b[\s:,]*(.*)$/is.exec(line) ?? []
  const decision = word?.toLowerCase() as 'approve' | 'reject' | undefined
  // Approve only the version that was shown, not one that was changed since.
  const hash = decision === 'approve' && action !== undefined ? { hash: action.hash } : {}
  if (decision !== undefined) return { decision, ...hash, ...(comment === '' ? {} : { comment }) }
  return takesAnswer ? { decision: 'answer', comment: line } : undefined
}

function howTo({ kind, decisions }: HumanRequest): string {
  const takesAnswer = decisions.includes('answer')
  if (kind === 'input' && takesAnswer) return '  Type the answer. Ctrl-D to answer later.'
  const also = takesAnswer ? ', or an answer in words' : ''
  return `  Type approve or reject, with a comment if you like${also}. Ctrl-D to answer later.`
}
