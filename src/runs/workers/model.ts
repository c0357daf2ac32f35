import { z } from 'zod'
import { costOf, type UsageTracker } from '../../agents/usage-and-limits.ts'
import { reasonOf } from '../../base/errors.ts'
import { excerpt } from '../../base/excerpt.ts'
import type { Log } from '../../base/log.ts'
import type { Team } from '../../commands/team.ts'
import { FENCE_RULE, fence } from '../../llm/fence-untrusted-text.ts'
import type { Models, ObjectCall, Spending } from '../../llm/llm.ts'
import { writeOutputs } from '../../workspaces/outbox.ts'
import { updateStatus } from '../../workspaces/status.ts'
import { readInbox } from '../../workspaces/workspaces.ts'
import type { Worker, WorkerKind, WorkOrder, WorkPort } from './worker.ts'

interface ModelWorkersOptions {
  log: Log
  team(): Team
  models: Models | undefined
  usageTracker: Pick<UsageTracker, 'ownCall'>
}

/** Sends the instructions and inputs to a model, and writes its answer into the outbox. */
export function createModelWorkers({ log, team, models, usageTracker }: ModelWorkersOptions): WorkerKind {
  async function work(order: WorkOrder, port: WorkPort, signal: AbortSignal): Promise<string | undefined> {
    const { runner, workspace } = order
    if (runner.kind !== 'model') throw new Error(`not a model: ${runner.kind}`)
    if (models === undefined || !Object.hasOwn(team().config.models, runner.model)) {
      return `orc.yaml no longer has the model "${runner.model}"`
    }
    const call = usageTracker.ownCall('run')
    if (call === undefined) return 'the spending limit of the service is reached (limits.spend)'
    const inbox = await readInbox(workspace)
    if (!inbox.ok) return inbox.error[0]!.message
    const { instructions, files } = inbox.value
    const all: Spending[] = []
    const { prompt } = runner.with
    const answer = await models.generateObject({
      model: runner.model,
      schema: FileWork,
      purpose: 'run',
      ...fileWorkPrompt(instructions, files, typeof prompt === 'string' ? prompt : ''),
      signal,
      spent(spending) {
        call.spent(spending)
        all.push(spending)
        port.metered(sumOf(all, (one) => costOf(team().config.prices, one.model, { key: '', ...one })))
      },
    })
    if (signal.aborted) return 'it was stopped'
    if (!answer.ok) return `${runner.model} failed (${answer.code}): ${answer.message}`
    const written = await writeOutputs(workspace, answer.value.files)
    if (!written.ok) return `its answer cannot be written: ${written.error[0]!.message}`
    port.reported('completed', answer.value.summary)
    return undefined
  }

  return {
    start(order, port) {
      let stopping = new AbortController()
      let isOver = false
      let isStopped = false
      let frozen = false
      const end = (code: number | null, why: string) => {
        if (isOver) return
        isOver = true
        port.ended({ code, signal: null, lost: false, why })
      }
      const begin = () => {
        const { signal } = stopping
        void work(order, port, signal)
          .catch((error: unknown) => {
            log.error({ err: error, run: order.run, node: order.node }, 'calling a model for a run failed')
            return reasonOf(error)
          })
          .then((why) => {
            // Aborted by a halt: the call is repeated after it.
            if (why !== undefined && signal.aborted && !isStopped) return
            end(why === undefined ? 0 : 1, why ?? '')
          })
      }
      port.started()
      updateStatus(order.workspace, { state: 'running', started: new Date().toISOString() })
      begin()
      const worker: Worker = {
        stop(finished) {
          if (finished || isOver) return
          isStopped = true
          stopping.abort()
          // No call is running that could report the end.
          if (frozen) end(1, 'it was stopped')
        },
        freeze(isHalted) {
          if (isOver || isStopped || isHalted === frozen) return
          frozen = isHalted
          if (isHalted) return stopping.abort()
          stopping = new AbortController()
          begin()
        },
        async close() {
          isOver = true
          stopping.abort()
        },
      }
      return worker
    },
    // A request does not outlive the service that made it.
    find: () => undefined,
  }
}

function sumOf(all: readonly Spending[], priceOf: (one: Spending) => number | undefined) {
  const prices = all.map(priceOf)
  return {
    inputTokens: all.reduce(
      (sum, { input, cacheRead, cacheWrite }) => sum + input + cacheRead + cacheWrite,
      0,
    ),
    outputTokens: all.reduce((sum, { output }) => sum + output, 0),
    cost: prices.every((price) => price === undefined)
      ? null
      : prices.reduce<number>((sum, price) => sum + (price ?? 0), 0),
  }
}

/** The answer of a model without tools: Orchub writes it into the outbox (S4.7). */
const FileWork = z.object({
  summary: z.string().trim().min(1).max(20_000).describe('The work in a few sentences; becomes summary.md.'),
  files: z
    .array(
      z.object({
        path: z
          .string()
          .min(1)
          .max(200)
          .describe('Relative path without "..", such as report.md or data/numbers.csv.'),
        content: z.string().max(400_000).describe('The whole content of the file.'),
      }),
    )
    .min(1)
    .max(50)
    .describe('The deliverables.'),
})

interface GivenFile {
  readonly path: string
  readonly content: string
}

const MOST = { instructions: 40_000, file: 40_000, files: 200_000 }

const SYSTEM = [
  'You do one step of a plan. You have no tools: you get only the text below, and you deliver only your answer.',
  'Return every deliverable as a file with its full content, and a summary of what you did.',
  FENCE_RULE,
].join('\n')

function fileWorkPrompt(
  instructions: string,
  files: readonly GivenFile[],
  more: string,
): Pick<ObjectCall, 'system' | 'prompt'> {
  let left = MOST.files
  const given = files.map(({ path, content }) => {
    const shown = excerpt(content, Math.max(0, Math.min(MOST.file, left)))
    left -= shown.length
    return `${path}:\n${fence('file', shown)}`
  })
  const prompt = [
    'The instructions:',
    excerpt(instructions, MOST.instructions),
    ...(given.length === 0 ? ['There are no input files.'] : ['The input files:', ...given]),
    'Do this work now.',
  ].join('\n\n')
  return { system: more === '' ? SYSTEM : `${SYSTEM}\n${more}`, prompt }
}
