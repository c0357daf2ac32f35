import type { TaskStreamEvent } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import { newIdempotencyKey } from '../../../client/transport.ts'
import { isEnd } from '../../../tasks/task.ts'
import { noteHalt, openClient, throughRestarts } from '../../connection/client.ts'
import { checkIdempotencyKey, exitCode, usage } from '../../errors.ts'
import { showWorking } from '../../output/layout.ts'
import { complain, paint, plain, plainLine, print, printJson, remark } from '../../output/print.ts'
import { abortOnSignal } from '../../signals.ts'
import { readText } from '../../standard-input.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { type AnswerPrompt, canType, openAnswerPrompt } from './answer-prompt.ts'
import { createEchoFilter, progressLine } from './task-event-text.ts'

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
    const leaving = abortOnSignal()
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
  const isEcho = createEchoFilter()
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
