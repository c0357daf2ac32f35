import { setTimeout } from 'node:timers/promises'
import { type ApiCall, type ApiContext, isInTeam, type RouteHandler, SENT } from '../../api/http/call.ts'
import { formatEvent, startEventStream } from '../../api/http/event-streams.ts'
import { AppError } from '../../base/errors.ts'
import { readOutput } from '../../workspaces/outbox.ts'
import type { FilePart } from '../../workspaces/workspaces.ts'
import type { RunNode } from '../run.ts'
import { readRunLog, watchRunLog, workspaceOf } from '../run-folder.ts'
import { namedRun } from './runs.ts'

/** Limit for one response; the whole file is in the workspace. */
const MOST_BYTES = 256 * 1024

export const showRunLog: RouteHandler<'runLog'> = async (context, call) => {
  const { place, node } = await namedNode(context, call)
  const attempt = call.query.attempt ?? node.attempt
  return shown(context, readRunLog(place, node.name, attempt, MOST_BYTES), `${node.name} has no log yet`)
}

/** Shortest interval between two events: a program may print line by line. */
const CALM_MS = 200

export const streamRunLog: RouteHandler<'runLogEvents'> = async (context, call) => {
  const { place, node } = await namedNode(context, call)
  const open = context.openCalls.open('events', call.caller, call.outgoing)
  let printed = 0
  let isBroken = false
  let wake = () => {}
  const stopWatching = watchRunLog(place, node.name, call.query.attempt ?? node.attempt, {
    onSize(bytes) {
      printed = bytes
      wake()
    },
    onFault() {
      isBroken = true
      wake()
    },
  })
  if (stopWatching === undefined) {
    open.done()
    throw new AppError('NOT_FOUND', `${node.name} has no log yet`)
  }
  const stream = startEventStream(call.outgoing, open)
  stream.signal.addEventListener('abort', () => wake(), { once: true })
  let told = -1
  try {
    // After a fault the client reconnects and gets the current size.
    while (!stream.signal.aborted && !isBroken && isInTeam(context, call)) {
      if (printed !== told) stream.send(formatEvent('printed', printed, JSON.stringify({ bytes: printed })))
      told = printed
      await stream.drained()
      await pause(CALM_MS, stream.signal)
      if (printed !== told || isBroken || stream.signal.aborted) continue
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  } finally {
    stopWatching()
    stream.end()
  }
  return SENT
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return setTimeout(ms, undefined, { signal }).catch(() => {})
}

export const showRunOutput: RouteHandler<'runOutput'> = async (context, call) => {
  const { place, node } = await namedNode(context, call)
  const { path } = call.query
  if (!(node.result?.outputs ?? []).some((output) => output.path === path))
    throw new AppError('NOT_FOUND', `${node.name} has no output ${path.slice(0, 200)}`)
  return shown(
    context,
    readOutput(workspaceOf(place, node.name), path, MOST_BYTES),
    `${path} no longer exists`,
  )
}

async function namedNode(context: ApiContext, call: ApiCall): Promise<{ place: string; node: RunNode }> {
  const { run, place } = await namedRun(context, call)
  const node = run.nodes.get(call.params.agent!)
  if (node !== undefined) return { place, node }
  throw new AppError('NOT_FOUND', `The run has no agent ${call.params.agent!.slice(0, 100)}`)
}

function shown({ engine }: ApiContext, end: FilePart | undefined, otherwise: string) {
  if (end === undefined) throw new AppError('NOT_FOUND', otherwise)
  return { text: engine.redact(end.text), bytes: end.bytes, cut: end.isCut }
}
