import { isatty } from 'node:tty'
import type { Log } from '../../../base/log.ts'
import { complain, ifTaken, paint, plain, type Style } from '../../output/print.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof LOG_LEVELS)[number]

/** Log lines to buffer while the disk is full; further lines are dropped. */
const BUFFERED_BYTES = 1024 ** 2

/** Logs to standard error: readable lines on a terminal, otherwise JSON. */
export async function openLog(level: string): Promise<Log> {
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
    if (LOG_LEVELS.indexOf(own) >= least) ifTaken(() => complain(logLine(own, style, fields, text)))
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
