import { createInterface } from 'node:readline'
import { isatty } from 'node:tty'
import type { BodyOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Receipt } from '../../../protocol/receipt.ts'
import { openClient } from '../../connection/client.ts'
import { sendFields } from '../../connection/send-command.ts'
import { exitCode, reportError, usage } from '../../errors.ts'
import { complain, paint, plain, print, printJson } from '../../output/print.ts'
import { showAnyReceipt } from '../../output/receipt-text.ts'
import { choiceLines, type HumanRequest, missingText } from '../../output/request-text.ts'
import { readText } from '../../standard-input.ts'
import type { Invocation, Option, Verb } from '../../verb.ts'

/** Sends a person's decision. The exit code says whether it was accepted, not how the held command ended. */
async function giveVerdict(
  { location, json }: Pick<Invocation, 'location' | 'json'>,
  id: string,
  verdict: BodyOf<'decide'>,
): Promise<number> {
  const client = await openClient(location)
  const answer = await client.decide(id, verdict)
  if (json) printJson(answer)
  else {
    print(outcomeText(answer.request))
    const receipt = answer.receipt as Receipt | undefined
    if (receipt !== undefined && !isOnlyAnswered(answer.request)) showAnyReceipt(receipt, false)
  }
  return 0
}

/** An answered question that no task waits for: the first line already says that the asker is notified. */
function isOnlyAnswered({ kind, state, task_id }: HumanRequest): boolean {
  return kind === 'input' && state === 'answered' && task_id === undefined
}

function outcomeText(request: HumanRequest): string {
  const { id, state, asker } = request
  if (state === 'open') return `${id} is still ${paint('yellow', 'open')}: ${missingText(request)}`
  return `${id} is ${state}; ${asker} is notified`
}

const COMMENT: Option = { name: 'comment', value: 'TEXT', summary: 'a comment for the asker' }
const HASH: Option = {
  name: 'hash',
  value: 'HASH',
  summary: 'the hash of the command you saw; needed if somebody has changed it',
}

export const approve: Verb = {
  name: 'approve',
  summary: 'approve a request: run the held command or accept the result',
  arguments: [{ name: 'ID' }],
  options: [COMMENT, HASH],
  examples: ['orc approve req_3', 'orc approve req_3 --comment "go ahead, but slowly"'],
  run(invocation) {
    const verdict = { decision: 'approve', ...invocation.given('comment', 'hash') } as const
    return giveVerdict(invocation, invocation.words[0]!, verdict)
  },
}

export const reject: Verb = {
  name: 'reject',
  summary: 'reject a request: refuse the held command',
  arguments: [{ name: 'ID' }],
  options: [COMMENT],
  examples: ['orc reject req_3', 'orc reject req_3 --comment "not before Monday"'],
  run(invocation) {
    return giveVerdict(invocation, invocation.words[0]!, {
      decision: 'reject',
      ...invocation.given('comment'),
    })
  },
}

export const modify: Verb = {
  name: 'modify',
  summary: 'change fields of a held command and approve it; the asker sees the change',
  details:
    "The changed command must be valid and is checked again by the asker's rules. If several people must approve, this is\n" +
    'the first approval of the changed command. FIELD= clears an optional field.',
  arguments: [{ name: 'ID' }, { name: 'FIELD=VALUE', rest: true }],
  options: [COMMENT, HASH],
  examples: [
    'orc modify req_3 content="Please review it today."',
    'orc modify req_3 priority=normal title= --comment "no need to hurry"',
  ],
  run(invocation) {
    const [id, ...changes] = invocation.words
    return giveVerdict(invocation, id!, {
      decision: 'modify',
      fields: Object.fromEntries(changes.map(readChange)),
      ...invocation.given('comment', 'hash'),
    })
  },
}

/** `in-reply-to` and `in_reply_to` name the same field, as everywhere. */
function readChange(word: string): [field: string, value: string] {
  const [, name, value] = /^([A-Za-z][\w-]*)=(.*)$/s.exec(word) ?? []
  if (name !== undefined) return [name.replaceAll('-', '_').toLowerCase(), value!]
  throw usage(
    `"${word}" is not a change`,
    'Write FIELD=VALUE, such as priority=normal; orc inbox shows the fields.',
  )
}

export const answer: Verb = {
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
    const words = await readText(text)
    if (isRequest) return await answerRequest(invocation, id!, words)
    const fields = { in_response_to: id!, ...invocation.given('from'), answer: words }
    return await sendFields({ type: 'answer', ...fields }, invocation)
  },
}

async function answerRequest(invocation: Invocation, id: string, words: string): Promise<number> {
  const insist = invocation.flag('insist') ? { insist: true } : {}
  return await giveVerdict(invocation, id, { decision: 'answer', comment: words, ...insist })
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
    for await (const line of lines) {
      const code = await tryAnswer(invocation, id, line)
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
async function tryAnswer(invocation: Invocation, id: string, line: string): Promise<number | undefined> {
  try {
    return await answerRequest(invocation, id, line)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_COMMAND') throw error
    const { code, message, hint } = error
    reportError({ code, message, ...(hint === undefined ? {} : { hint }) }, false)
    return undefined
  }
}
