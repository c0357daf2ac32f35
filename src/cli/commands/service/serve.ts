import { isatty } from 'node:tty'
import type { Log } from '../../../base/log.ts'
import type { Halted } from '../../../commands/halt-state.ts'
import type { Config } from '../../../config/config.ts'
import type { Orchub } from '../../../main.ts'
import { loadTeam } from '../../connection/client.ts'
import { usage } from '../../errors.ts'
import { createNotifier, notificationMethod } from '../../output/notification.ts'
import {
  complain,
  paint,
  plain,
  plainLine,
  print,
  printJson,
  printRaw,
  type Style,
  tryWrite,
  warn,
} from '../../output/print.ts'
import { watchStopSignal } from '../../signals.ts'
import type { Invocation, Option, Verb } from '../../verb.ts'

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof LOG_LEVELS)[number]

export const SERVICE_OPTIONS: readonly Option[] = [
  { name: 'port', value: 'N', summary: 'listen on this port; 0 picks a free one' },
  { name: 'host', value: 'H', summary: 'listen on this address instead of 127.0.0.1' },
  {
    name: 'log-level',
    value: 'LEVEL',
    summary: `${LOG_LEVELS.join(', ')} (default: info)`,
    choices: LOG_LEVELS,
  },
  { name: 'quiet', summary: 'no bell and no notification when a request needs a person' },
]

export const verb: Verb = {
  name: 'service serve',
  summary: 'run the service in the foreground; agents in terminals survive it',
  details:
    'Reloads orc.yaml when it changes; if the new file has mistakes, the previous configuration stays in force.\n' +
    'Ctrl-C, SIGTERM and SIGHUP stop the service with exit code 0. Agents in terminals keep running, and the next start\n' +
    'reconnects to them; `orc down` stops them too.',
  options: [
    ...SERVICE_OPTIONS,
    {
      name: 'for-runs',
      summary: 'start agents on demand and exit after the last run; used by orc run',
    },
  ],
  examples: [
    'orc service serve',
    'orc service serve --config team/orc.yaml --port 0',
    'orc service serve --log-level debug',
  ],
  run: (invocation) =>
    runService(invocation, {
      agents: 'leave',
      lastLine: 'Ctrl-C stops the service; agents in terminals keep running. `orc down` stops them too.',
    }),
}

interface RunServiceOptions {
  /** Whether a signal also ends the agents. A closed terminal never does. */
  agents: 'end' | 'leave'
  /** The last line of the banner. */
  lastLine: string
}

/** Runs the service in this process until a signal or `orc down` ends it. */
export async function runService(
  { location, option, given, flag, json, program }: Invocation,
  { agents, lastLine }: RunServiceOptions,
): Promise<number> {
  // Watch signals first, so that a service that is still starting also stops properly.
  const stopping = watchStopSignal()
  const { readTeam, startOrchub } = await import('../../../main.ts')
  const config = await loadTeam(location, { read: readTeam, onWarnings })
  const port = portOf(option('port'))
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
    ...given('host'),
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
    tryWrite(() => (json ? printJson(facts) : print(banner(config, facts, lastLine))))
  const halted = orchub.engine.halt.current()
  if (halted !== undefined && !json) tryWrite(() => complain(haltWarning(halted)))
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

/** Notifies on a terminal, where a person may see it. */
function notifyOn({ engine }: Orchub, flag: Invocation['flag'], notify: Config['notify']) {
  if (notify === 'off' || flag('quiet') || !isatty(1)) return undefined
  const notifier = createNotifier({
    method: notify === 'bell' ? 'bell' : notificationMethod(process.env),
    write: (text) => tryWrite(() => printRaw(text)),
    after: engine.clock.after,
  })
  const stop = engine.store.onCommit((entries) => {
    for (const { type, actor, text } of entries)
      if (type === 'human.asked') notifier.asked(`${actor}: ${text}`)
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
  lastLine: string,
): string {
  return [
    `${paint('bold', `Orchub ${version}`)} listens at ${paint('cyan', String(url))}`,
    '  room   orc open',
    `  team   ${agents.map(({ name }) => name).join(', ')}`,
    `  config ${config}`,
    `  state  ${state}`,
    paint('dim', lastLine),
  ].join('\n')
}

function haltWarning({ by, reason, at }: Halted): string {
  const why = reason === undefined ? '' : `: ${plainLine(reason)}`
  const since = new Date(at).toISOString()
  return paint('yellow', `Halted by ${by} at ${since}${why}. Resume with orc service go.`, 'err')
}

function onWarnings(text: string): void {
  warn(plain(text))
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw usage(`"${text}" is not a valid port`, 'Use a number from 0 to 65535; 0 picks a free one.')
}

/** Log lines to buffer while the disk is full; further lines are dropped. */
const BUFFERED_BYTES = 1024 ** 2

/** Logs to standard error: readable lines on a terminal, otherwise JSON. */
async function openLog(level: string): Promise<Log> {
  if (!isatty(2)) {
    const { pino } = await import('pino')
    const destination = pino.destination({ dest: 2, sync: true, maxLength: BUFFERED_BYTES })
    // A full disk must not end the service; pino writes the buffered lines later.
    destination.on('error', () => {})
    const log: Log = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
    return log
  }
  const least = LOG_LEVELS.indexOf(level as Level)
  const at = (own: Level, style: Style) => (fields: Record<string, unknown>, text: string) => {
    if (LOG_LEVELS.indexOf(own) >= least) tryWrite(() => complain(logLine(own, style, fields, text)))
  }
  return {
    debug: at('debug', 'dim'),
    info: at('info', 'green'),
    warn: at('warn', 'yellow'),
    error: at('error', 'red'),
  }
}

function logLine(level: Level, style: Style, fields: Record<string, unknown>, text: string): string {
  const { err, ...others } = fields
  const more = Object.entries(others).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const cause = err instanceof Error ? `: ${err.message}` : ''
  const time = new Date().toISOString().slice(11, 19)
  const line = plain([`${text}${cause}`, ...more].join('  '))
  return `${paint('dim', time, 'err')} ${paint(style, level.padEnd(5), 'err')} ${line}`
}
