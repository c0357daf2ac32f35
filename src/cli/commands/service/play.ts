import { readFileSync } from 'node:fs'
import { AppError } from '../../../base/errors.ts'
import { openScript, ScriptSettings } from '../../../runtimes/script.ts'
import { noJson } from '../../errors.ts'
import type { Verb } from '../../verb.ts'
import { playOnTerminal } from './script-player.ts'

export const verb: Verb = {
  name: 'service play',
  summary: 'run a scripted agent in this terminal; for demos and tests',
  details:
    'The script is JSON: { "script": [{ "on": "start" | { "text": … }, "say": …, "after_ms": … }] }.\n' +
    'It runs as an agent with program: any. Its commands carry the nonce of its session, from ORC_NONCE.',
  arguments: [{ name: 'FILE' }],
  examples: ['orc service play worker.json'],
  async run({ words, json }) {
    if (json) throw noJson('play', 'Its output is in the audit: orc audit --follow --json')
    const [file] = words
    const parsed = ScriptSettings.safeParse(readScript(file!))
    if (!parsed.success) {
      const [problem] = parsed.error.issues
      throw new AppError('CONFIG_INVALID', `${file}: ${problem!.path.join('.')}: ${problem!.message}`, {
        hint: 'A script is { "script": [{ "on": "start", "say": "…" }] }.',
      })
    }
    await playOnTerminal(openScript(parsed.data), {
      name: process.env.ORC_AGENT ?? 'agent',
      nonce: process.env.ORC_NONCE ?? '',
    })
    return 0
  },
}

function readScript(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new AppError('NOT_FOUND', `Cannot read ${file} as JSON: ${(error as Error).message}`, {
      hint: 'Name a file that contains a script.',
    })
  }
}
