import { writeSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'
import { isatty } from 'node:tty'
import type { BodyOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Client } from '../../../client/client.ts'
import { complain, paint, plain } from '../../output/print.ts'
import { type HumanRequest, missingText, requestText } from '../../output/request-text.ts'

/** Shows questions to a person while they watch a task, and sends the answers they type. */
export interface AnswerPrompt {
  /** Shows an open request; returns false if it isn't open any more. */
  ask(id: string): Promise<boolean>
  /** Removes a request that was decided, here or elsewhere. */
  decided(id: string): void
  /** Prints a line of progress above what the person is typing. */
  say(text: string): void
  close(): void
}

/** True if a person can read a question and type an answer. */
export function canType(): boolean {
  return isatty(0) && isatty(2)
}

export function openAnswerPrompt(options: {
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
    say(`${requestText(request)}\n${paint('dim', promptHelp(request), 'err')}`)
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
    const verdict = readDecision(request, line)
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
export function readDecision(
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

function promptHelp({ kind, decisions }: HumanRequest): string {
  const takesAnswer = decisions.includes('answer')
  if (kind === 'input' && takesAnswer) return '  Type the answer. Ctrl-D to answer later.'
  const also = takesAnswer ? ', or an answer in words' : ''
  return `  Type approve or reject, with a comment if you like${also}. Ctrl-D to answer later.`
}
