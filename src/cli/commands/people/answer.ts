import { createInterface } from 'node:readline'
import { isatty } from 'node:tty'
import { AppError } from '../../../base/errors.ts'
import { openClient } from '../../connection/client.ts'
import { sendCommand } from '../../connection/send-command.ts'
import { usage } from '../../errors.ts'
import { exitCode } from '../../exit-code.ts'
import { complain, plain, print } from '../../output/print.ts'
import { choiceLines } from '../../output/request-text.ts'
import { reportError } from '../../print-error.ts'
import { readInput } from '../../standard-input.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { giveVerdict } from './decide.ts'

export const verb: Verb = {
  name: 'answer',
  summary: 'answer a question from an agent; - reads standard input',
  details:
    'If the question has choices, TEXT is the number or the text of one. An empty TEXT ("") takes the default, if there\n' +
    'is one. On a terminal, orc answer ID shows the question and prompts for the answer.',
  arguments: [{ name: 'ID' }, { name: 'TEXT', rest: true, optional: true }],
  options: [
    { name: 'from', value: 'AGENT', summary: 'answer as this agent (operator only)' },
    { name: 'insist', summary: 'skip the model that checks whether the answer fits' },
  ],
  examples: [
    'orc answer req_4 "Use the second one."',
    'orc answer req_4 2',
    'orc answer req_4 - < answer.txt',
    'orc answer msg_12 "Price."',
  ],
  async run(invocation) {
    const [id, ...text] = invocation.words
    const isRequest = id!.startsWith('req_')
    if (text.length === 0) {
      if (isRequest && isatty(0)) return await askAndAnswer(invocation, id!)
      throw usage('TEXT is missing', 'Usage: orc answer ID TEXT… [options]. - reads standard input.')
    }
    const words = text.length === 1 && text[0] === '-' ? await readInput() : text.join(' ')
    return isRequest ? await answerRequest(invocation, id!, words) : await answerQuery(invocation, id!, words)
  },
}

async function answerRequest(invocation: Invocation, id: string, words: string): Promise<number> {
  const insist = invocation.flag('insist')
  return await giveVerdict(invocation, id, {
    decision: 'answer',
    comment: words,
    ...(insist ? { insist } : {}),
  })
}

async function answerQuery(invocation: Invocation, id: string, words: string): Promise<number> {
  const { configFile } = invocation.location
  const from = invocation.option('from')
  return await sendCommand('answer', [
    ...['--in-response-to', id],
    ...(from === undefined ? [] : ['--from', from]),
    ...(invocation.json ? ['--json'] : []),
    ...(configFile === undefined ? [] : ['--config', configFile]),
    ...['--', words],
  ])
}

/** Shows a question on the terminal and prompts until an answer is accepted (S2.12). */
async function askAndAnswer(invocation: Invocation, id: string): Promise<number> {
  const request = await (await openClient(invocation.location)).humanRequest(id)
  if (!request.decisions.includes('answer')) {
    throw new AppError('CONFLICT', `${id} is ${request.state}; you cannot answer it`, {
      hint: 'orc inbox shows what you can decide.',
    })
  }
  print([`${request.asker} asks: ${plain(request.question)}`, ...choiceLines(request)].join('\n'))
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' })
  lines.once('SIGINT', () => lines.close())
  try {
    lines.prompt()
    // Share one reader between attempts, so that lines typed ahead aren't lost.
    for await (const said of lines) {
      const code = await tryAnswer(invocation, id, said)
      if (code !== undefined) return code
      lines.prompt()
    }
  } finally {
    lines.close()
  }
  complain('')
  return exitCode('interrupted')
}

/** Undefined for an answer that was refused, after printing why. */
async function tryAnswer(invocation: Invocation, id: string, said: string): Promise<number | undefined> {
  const insist = invocation.flag('insist')
  try {
    return await giveVerdict(invocation, id, {
      decision: 'answer',
      comment: said,
      ...(insist ? { insist } : {}),
    })
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_COMMAND') throw error
    const { code, message, hint } = error
    reportError({ code, message, ...(hint === undefined ? {} : { hint }) }, false)
    return undefined
  }
}
