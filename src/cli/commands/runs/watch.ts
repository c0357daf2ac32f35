import type { RunUpdate } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Client } from '../../../client/client.ts'
import { reachRuns, throughRestarts, type WhenUnreachable } from '../../connection/client.ts'
import type { TeamLocation } from '../../connection/connection.ts'
import { canRedraw, openLiveText, screenSize } from '../../output/layout.ts'
import { paint, print, printJson } from '../../output/print.ts'
import { eventLine, type RunShown, runView } from './run-text.ts'

interface WatchRunOptions {
  location: TeamLocation
  id: string
  json: boolean
  /** Last line of the live view: how to leave and how to return. */
  footer: string
  signal: AbortSignal
  /** Restarts the service if `orc run` started it; returns false otherwise. */
  startAgain(): Promise<boolean>
}

type RunEnd = Extract<RunUpdate, { type: 'end' }>

/** Shows a run until it ends, across restarts of the service. */
export async function watchRun(watched: WatchRunOptions): Promise<RunEnd> {
  const { location, id, json, footer, signal } = watched
  let last: number | undefined

  async function watch(client: Client): Promise<RunEnd> {
    const view = !json && canRedraw() ? openRunView(client, id, footer) : undefined
    try {
      const after = last === undefined ? {} : { after: last }
      for await (const event of client.runEvents(id, { ...after, signal, reconnect: false })) {
        last = event.seq
        if (json) printJson(event)
        else if (view === undefined) showLine(event)
        else view.changed()
        if (event.type === 'end') {
          await view?.last()
          return event
        }
      }
    } finally {
      view?.close()
    }
    signal.throwIfAborted()
    throw new AppError('SERVICE_UNREACHABLE', 'The service ended the stream')
  }

  /** The service may have ended the run and stopped while it was unreachable. The store then has the events. */
  async function whileAway(): Promise<WhenUnreachable<RunEnd>> {
    const stored = await readEnd(location, id, last)
    if (stored === undefined) return (await watched.startAgain()) ? 'again' : 'wait'
    const { run, missed, end } = stored
    if (json) for (const event of missed) printJson(event)
    else if (canRedraw()) print(runView(run, { ...screenSize(), sinceMs: 0 }))
    else for (const event of missed) showLine(event)
    return { value: end }
  }

  return await throughRestarts(location, signal, watch, whileAway)
}

/** Reads a run that has ended from the store, with the events after `after`; undefined while it is open. */
async function readEnd(location: TeamLocation, id: string, after: number | undefined) {
  const read = await reachRuns(
    location,
    async () => undefined,
    async (runs) => ({ run: await runs.show(id), missed: await runs.events(id, after) }),
    // On any error, keep waiting for the service.
  ).catch(() => undefined)
  const end = read?.missed.at(-1)
  return read !== undefined && end?.type === 'end' ? { ...read, end } : undefined
}

function showLine(event: RunUpdate) {
  const line = eventLine(event)
  if (line !== undefined) print(line)
}

/** Shortest interval between two redraws: people can't follow faster changes. */
const REST_MS = 100
/** Redraw at this interval without events, to advance the clocks. */
const TICK_MS = 1000

function openRunView(client: Client, id: string, footer: string) {
  const live = openLiveText()
  let run: RunShown | undefined
  let lookedAt = 0
  let isStale = true
  let looking: Promise<void> | undefined
  let isClosed = false

  function draw() {
    if (run === undefined || isClosed) return
    const { width, height } = screenSize()
    const sinceMs = run.state === 'running' ? performance.now() - lookedAt : 0
    const view = runView(run, { width, height: height - 1, sinceMs })
    live.draw(run.state === 'running' ? `${view}\n${paint('dim', footer)}` : view)
  }

  async function look() {
    run = await client.run(id)
    lookedAt = performance.now()
    draw()
  }

  async function lookWhileStale() {
    while (isStale && !isClosed) {
      isStale = false
      // A stopping service also ends the event stream, which reports it.
      await look().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, REST_MS))
    }
    looking = undefined
  }

  function changed() {
    isStale = true
    looking ??= lookWhileStale()
  }

  const ticking = setInterval(draw, TICK_MS)
  process.stdout.on('resize', draw)
  changed()
  return {
    changed,
    /** Draws the final state. */
    async last() {
      await looking
      await look()
    },
    close() {
      isClosed = true
      clearInterval(ticking)
      process.stdout.off('resize', draw)
    },
  }
}
