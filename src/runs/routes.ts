import { setTimeout } from 'node:timers/promises'
import { feedEvent } from '../api/audit-feed.ts'
import { type ApiCall, type ApiContext, isInTeam, type RouteHandler, SENT } from '../api/handle-request.ts'
import { send } from '../api/http-response.ts'
import { formatEvent, startEventStream } from '../api/sse.ts'
import { FEED_PAGE, resumePoint, streamFeed } from '../api/stream-feed.ts'
import { lastOfRun, readRunEntries } from '../audit/store.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import { readOutput } from '../workspaces/outbox.ts'
import type { FilePart } from '../workspaces/workspaces.ts'
import { htmlReport, markdownReport, reportOf } from './report.ts'
import { isRunOpen, type RunNode } from './run.ts'
import { readRunLog, watchRunLog, workspaceOf } from './run-folder.ts'
import { endOfRun, noticeOfRun, runEventOf, wireRun, wireWholeRun } from './run-view.ts'
import { noSuchRun, readRunHead, type SeenRun } from './store.ts'

export const listRuns: RouteHandler<'runs'> = async ({ engine }, { query }) => {
  const { runs, clock } = engine
  const seen = await runs.list(query.state, query.limit)
  return { runs: seen.map((one) => wireRun(one, clock.now())) }
}

/** The run that the path names. */
export async function namedRun({ engine }: ApiContext, { params }: ApiCall): Promise<SeenRun> {
  const seen = await engine.runs.see(params.id!)
  if (seen !== undefined) return seen
  throw noSuchRun(params.id!)
}

export const showRun: RouteHandler<'run'> = async (context, call) => {
  const { runs, clock } = context.engine
  const seen = await namedRun(context, call)
  return await wireWholeRun(seen, clock.now(), async ({ name, state, asks }) => {
    const asked = state === 'asking' ? await runs.requestOf(seen.id, name, asks) : undefined
    const blockedBy = runs.blockedBy(seen, name)
    return {
      ...(asked === undefined ? {} : { requestId: formatId('req', asked.id) }),
      ...(blockedBy === undefined ? {} : { blockedBy }),
    }
  })
}

export const reportRun: RouteHandler<'runReport'> = async (context, call) => {
  const { run } = await namedRun(context, call)
  const report = reportOf(run, context.engine.clock.now())
  if (call.query.format === 'html') send(call.outgoing, 200, 'text/html; charset=utf-8', htmlReport(report))
  else send(call.outgoing, 200, 'text/markdown; charset=utf-8', markdownReport(report))
  return SENT
}

export const proposePlan: RouteHandler<'proposePlan'> = async ({ engine }, { body }) => {
  const { plan, problems, model } = await engine.planner.propose(body.goal, body.model)
  return { plan, problems: [...problems], model }
}

/** Streams the events of a run until its report is written. */
export const streamRun: RouteHandler<'runEvents'> = async (context, call) => {
  const { store, runs, clock } = context.engine
  const { id } = await namedRun(context, call)
  const key = parseId('run', id)!
  const begun = call.query.round === 'all' ? 0 : await lastOfRun(store, key, 'run.begun')
  await streamFeed(context, call, {
    after: resumePoint(call) ?? Math.max(0, begun - 1),
    read: async (after) => (await readRunEntries(store, key, { after, limit: FEED_PAGE })).map(feedEvent),
    render(events) {
      let text = ''
      for (const { entry } of events) {
        if (entry.data?.run_id !== id) continue
        const event = runEventOf(entry)
        text += formatEvent(event.type, event.seq, JSON.stringify(event))
      }
      return text
    },
    // A full disk allows no stored events, so send a notice.
    notices(say) {
      const tell = (text: string) =>
        say((position) => {
          const notice = noticeOfRun(id, text, position, clock.now())
          return formatEvent(notice.type, position, JSON.stringify(notice))
        })
      const now = runs.troubles().find(({ run }) => run === id)
      if (now !== undefined) tell(now.text)
      return runs.onTrouble((run, text) => {
        if (run === id) tell(text ?? 'the run continues')
      })
    },
    ending: {
      isNear: (events) =>
        events.some(({ entry }) => entry.type === 'run.reported' && entry.data?.run_id === id),
      async finalEvent() {
        const head = await readRunHead(store, id)
        if (head === undefined || isRunOpen(head)) return undefined
        return (position) => formatEvent('end', position, JSON.stringify(endOfRun(head, position)))
      },
    },
  })
  return SENT
}

/** Limit for one response; the whole file is in the workspace. */
const MOST_BYTES = 256 * 1024

export const showRunLog: RouteHandler<'runLog'> = async (context, call) => {
  const { runFolder, node } = await namedNode(context, call)
  const attempt = call.query.attempt ?? node.attempt
  return shown(context, readRunLog(runFolder, node.name, attempt, MOST_BYTES), `${node.name} has no log yet`)
}

/** Shortest interval between two events: a program may print line by line. */
const CALM_MS = 200

export const streamRunLog: RouteHandler<'runLogEvents'> = async (context, call) => {
  const { runFolder, node } = await namedNode(context, call)
  const open = context.openCalls.open('events', call.caller, call.outgoing)
  let printed = 0
  let isBroken = false
  let wake = () => {}
  const stopWatching = watchRunLog(runFolder, node.name, call.query.attempt ?? node.attempt, {
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
  const { runFolder, node } = await namedNode(context, call)
  const { path } = call.query
  if (!(node.result?.outputs ?? []).some((output) => output.path === path))
    throw new AppError('NOT_FOUND', `${node.name} has no output ${path.slice(0, 200)}`)
  return shown(
    context,
    readOutput(workspaceOf(runFolder, node.name), path, MOST_BYTES),
    `${path} no longer exists`,
  )
}

async function namedNode(context: ApiContext, call: ApiCall): Promise<{ runFolder: string; node: RunNode }> {
  const { run, runFolder } = await namedRun(context, call)
  const node = run.nodes.get(call.params.agent!)
  if (node !== undefined) return { runFolder, node }
  throw new AppError('NOT_FOUND', `The run has no agent ${call.params.agent!.slice(0, 100)}`)
}

function shown({ engine }: ApiContext, end: FilePart | undefined, otherwise: string) {
  if (end === undefined) throw new AppError('NOT_FOUND', otherwise)
  return { text: engine.redact(end.text), bytes: end.bytes, cut: end.isCut }
}
