import { spawnSync } from 'node:child_process'
import { AppError } from '../../../base/errors.ts'
import { openClient } from '../../connection/client.ts'
import { exitCode } from '../../exit-code.ts'
import { printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'attach',
  summary: "open an agent's terminal in yours; Ctrl-b d leaves it",
  details: 'While you type a draft, messages to that agent wait; Orchub never pastes into a draft.',
  arguments: [{ name: 'AGENT' }],
  options: [{ name: 'read-only', summary: 'watch without typing' }],
  examples: ['orc attach Worker', 'orc attach Worker --read-only', 'orc attach Worker --json'],
  async run({ location, words, flag, json }) {
    const [agent] = words
    const client = await openClient(location)
    const { view, ...about } = await client.terminal(agent!, { lines: 1 })
    if (view === undefined) {
      throw new AppError('CONFLICT', `${about.agent} has no terminal`, {
        hint: `Its messages are in the audit: orc audit --agent ${about.agent} --follow`,
      })
    }
    const argv = flag('read-only') ? [...view, '-r'] : view
    if (json) {
      printJson({ agent: about.agent, command: argv })
      return 0
    }
    if (process.stdin.isTTY !== true || process.stdout.isTTY !== true) {
      throw new AppError('USAGE', 'orc attach needs a terminal', {
        hint: `orc logs ${about.agent} prints its screen. In a terminal, run: ${argv.join(' ')}`,
      })
    }
    // tmux refuses to nest sessions while TMUX is set.
    const { TMUX: _, ...env } = process.env
    const { status, error } = spawnSync(argv[0]!, argv.slice(1), { stdio: 'inherit', env })
    if (error !== undefined) throw new AppError('RUNTIME_MISSING', error.message, { hint: 'Install tmux.' })
    return status ?? exitCode('error')
  },
}
