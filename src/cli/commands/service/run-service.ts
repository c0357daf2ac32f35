import { isatty } from 'node:tty'
import { AppError } from '../../../base/errors.ts'
import type { Halted } from '../../../commands/halt-state.ts'
import type { Config } from '../../../config/config.ts'
import type { Orchub } from '../../../main.ts'
import { loadTeam } from '../../connection/offline.ts'
import { createNotifier, wayOf } from '../../output/notification.ts'
import { complain, ifTaken, paint, plain, plainLine, print, printJson, printRaw } from '../../output/print.ts'
import { watchStopSignal } from '../../signals.ts'
import type { Invocation } from '../../verb.ts'
import { openLog } from './log.ts'

interface RunServiceOptions {
  /** Whether a signal also ends the agents. A closed terminal never does. */
  agents: 'end' | 'leave'
  /** The last line of the banner. */
  farewell: string
}

/** Runs the service in this process until a signal or `orc down` ends it. */
export async function runService(
  { location, option, flag, json, program }: Invocation,
  { agents, farewell }: RunServiceOptions,
): Promise<number> {
  // Watch signals first, so that a service that is still starting also stops properly.
  const stopping = watchStopSignal()
  const { readTeam, startOrchub } = await import('../../../main.ts')
  const config = await loadTeam(location, { read: readTeam, onWarnings })
  const port = portOf(option('port'))
  const host = option('host')
  const log = await openLog(option('log-level') ?? 'info')
  if (stopping.signal.aborted) return 0
  const orchub = await startOrchub({
    config,
    log,
    watch: true,
    gone: stopping.signal,
    autostart: !flag('for-runs'),
    forRuns: flag('for-runs'),
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
  })
  const version = await program.version()
  const facts = {
    url: orchub.url,
    pid: process.pid,
    version,
    config: config.file,
    state: config.stateFolder,
  }
  const notifying = notifyOn(orchub, flag, config.notify)
  // The reader of the banner may have exited; keep running.
  if (!stopping.signal.aborted)
    ifTaken(() => (json ? printJson(facts) : print(banner(config, facts, farewell))))
  const halted = orchub.engine.halt.current()
  if (halted !== undefined && !json) ifTaken(() => complain(haltWarning(halted)))
  const byReason = { asked: agents, hangup: 'leave' } as const
  const runs = flag('for-runs') ? watchRuns(orchub) : undefined
  const wanted = await Promise.race([
    stopping.promise.then((reason) => byReason[reason]),
    orchub.stopAsked,
    ...(runs === undefined ? [] : [runs.over]),
  ])
  runs?.close()
  notifying?.close()
  await orchub.close(wanted)
  return 0
}

/** Idle time before the first run, and after the last one, until a service for runs ends. */
const NO_RUN_MS = 60_000
const NO_RUN_LEFT_MS = 10_000

/** Ends a service that `orc run` started once it is idle, because nobody else would stop it. */
function watchRuns({ engine: { runs, store } }: Orchub) {
  const { promise: over, resolve } = Promise.withResolvers<'end'>()
  let timer = setTimeout(look, NO_RUN_MS)
  function look() {
    runs.list('open', 1).then(
      (open) => open.length === 0 && resolve('end'),
      () => again(NO_RUN_LEFT_MS),
    )
  }
  function again(ms: number) {
    clearTimeout(timer)
    timer = setTimeout(look, ms)
  }
  const stop = store.onCommit((entries) => {
    if (entries.some(({ type }) => type === 'run.reported')) again(NO_RUN_LEFT_MS)
  })
  return {
    over,
    close() {
      clearTimeout(timer)
      stop()
    },
  }
}

/** Entries that need a person's attention. */
const CALLS: ReadonlySet<string> = new Set(['human.asked'])

/** Notifies on a terminal, where a person may see it. */
function notifyOn({ engine }: Orchub, flag: Invocation['flag'], notify: Config['notify']) {
  if (notify === 'off' || flag('quiet') || !isatty(1)) return undefined
  const notifier = createNotifier({
    way: notify === 'bell' ? 'bell' : wayOf(process.env),
    write: (text) => ifTaken(() => printRaw(text)),
    after: engine.clock.after,
  })
  const stop = engine.store.onCommit((entries) => {
    for (const { type, actor, text } of entries) if (CALLS.has(type)) notifier.asked(`${actor}: ${text}`)
  })
  return {
    close() {
      stop()
      notifier.close()
    },
  }
}

function banner(
  { agents }: Config,
  { version, url, config, state }: Record<string, unknown>,
  farewell: string,
): string {
  return [
    `${paint('bold', `Orchub ${version}`)} listens at ${paint('cyan', String(url))}`,
    '  room   orc open',
    `  team   ${agents.map(({ name }) => name).join(', ')}`,
    `  config ${config}`,
    `  state  ${state}`,
    paint('dim', farewell),
  ].join('\n')
}

function haltWarning({ by, reason, at }: Halted): string {
  const why = reason === undefined ? '' : `: ${plainLine(reason)}`
  const since = new Date(at).toISOString()
  return paint('yellow', `Halted by ${by} at ${since}${why}. Resume with orc go.`, 'err')
}

function onWarnings(text: string): void {
  complain(`${paint('yellow', 'warning:', 'err')} ${plain(text)}`)
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new AppError('USAGE', `"${text}" is not a valid port`, {
    hint: 'Use a number from 0 to 65535; 0 picks a free one.',
  })
}
