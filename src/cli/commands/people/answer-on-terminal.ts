import { createInterface } from 'node:readline'
import { AppError } from '../../../model/errors.ts'
import { openClient } from '../../connection/client.ts'
import { exitCode } from '../../exit-code.ts'
import { complain, plain, print } from '../../output/print.ts'
import { choiceLines } from '../../output/request-text.ts'
import { reportError } from '../../print-error.ts'
import type { Invocation } from '../../verb.ts'
import { giveVerdict } from './decide.ts'

/** Shows a question on the terminal and takes the answer there, asking again until there is one that fits (S2.12). */
export async function askAndAnswer(invocation: Invocation, id: string): Promise<number> {
  const request = await (await openClient(invocation.place)).humanRequest(id)
  if (!request.decisions.includes('answer')) {
    throw new AppError('CONFLICT', `${id} is ${request.state} and takes no answer from you`, {
      hint: 'orc inbox shows what can be said to it.',
    })
  }
  print([`${request.asker} asks: ${plain(request.question)}`, ...choiceLines(request)].join('\n'))
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' })
  lines.once('SIGINT', () => lines.close())
  try {
    lines.prompt()
    // One reader for all of it: what is typed ahead is not lost.
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

/** Undefined for an answer that does not fit: the person is told why. */
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
