import type { Config } from '../../config.ts'
import { AppError } from '../../model/errors.ts'
import { LOG_LEVELS, openLog } from '../log.ts'
import { loadTeam } from '../offline.ts'
import { complain, ifTaken, paint, plain, print, printJson } from '../output.ts'
import { stopSignal } from '../stop-signal.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'serve',
  group: 'Run',
  summary: 'run the service for the team in orc.yaml, until Ctrl-C',
  details:
    'orc.yaml is read again when it changes; with mistakes in it, the rules before them stay in force.\n' +
    'Ctrl-C and SIGTERM end it properly, with exit code 0.',
  options: [
    { name: 'port', value: 'N', summary: 'listen on this port; 0 takes a free one' },
    { name: 'host', value: 'H', summary: 'listen on this address instead of 127.0.0.1' },
    {
      name: 'log-level',
      value: 'LEVEL',
      summary: `${LOG_LEVELS.join(', ')}; info unless said`,
      choices: LOG_LEVELS,
    },
  ],
  examples: ['orc serve', 'orc serve --config team/orc.yaml --port 0', 'orc serve --log-level debug'],

  async run({ place, option, json, program }) {
    const { readTeam, startOrchub } = await import('../../main.ts')
    const config = await loadTeam(place, { read: readTeam, onWarnings })
    const port = portOf(option('port'))
    const host = option('host')
    const log = await openLog(option('log-level') ?? 'info')
    const orchub = await startOrchub({
      config,
      log,
      watch: true,
      ...(port === undefined ? {} : { port }),
      ...(host === undefined ? {} : { host }),
    })
    // From here on the signals end it properly, whatever happens to the lines below.
    const stopped = stopSignal()
    const version = await program.version()
    const facts = {
      url: orchub.url,
      pid: process.pid,
      version,
      config: config.file,
      state: config.stateFolder,
    }
    // Whoever started it may have read enough: that is no reason to end.
    ifTaken(() => (json ? printJson(facts) : print(banner(config, facts))))
    await stopped
    await orchub.close()
    return 0
  },
}

function banner({ agents }: Config, { version, url, config, state }: Record<string, unknown>): string {
  return [
    `${paint('bold', `Orchub ${version}`)} listens at ${paint('cyan', String(url))}`,
    `  team   ${agents.map(({ name }) => name).join(', ')}`,
    `  config ${config}`,
    `  state  ${state}`,
    paint('dim', 'Ctrl-C stops it.'),
  ].join('\n')
}

function onWarnings(text: string): void {
  complain(`${paint('yellow', 'warning:', 'err')} ${plain(text)}`)
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new AppError('USAGE', `"${text}" is no port`, {
    hint: 'A number from 0 to 65535; 0 takes a free one.',
  })
}
