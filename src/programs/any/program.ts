/** Any program with a prompt: a command line, and patterns for its output. */
import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findExecutable } from '../executable.ts'
import type { AgentProgram, ProgramLaunchOptions } from '../program.ts'
import { positionFile } from './pane-log.ts'
import { AnySettings, checkAny } from './patterns.ts'
import { type AnySavedState, followAny, PROMPT_FILE } from './session.ts'

const LOG_FILE = 'pane.log'

export function createAnyProgram(): AgentProgram {
  return {
    name: 'any',
    resumes: false,
    check: checkAny,
    async launch(options) {
      const settings = AnySettings.parse(options.settings)
      await mkdir(options.folder, { recursive: true, mode: 0o700 })
      const stale = [
        join(options.folder, LOG_FILE),
        join(options.folder, PROMPT_FILE),
        positionFile(options.folder),
      ]
      await Promise.all(stale.map((path) => rm(path, { force: true })))
      if (settings.prompt === 'paste') {
        await writeFile(join(options.folder, PROMPT_FILE), options.prompt, { mode: 0o600 })
      }
      return {
        argv: await argvOf(settings, options),
        env: {
          // For programs that write their commands themselves, such as scripts.
          ORC_NONCE: options.nonce,
          ...(settings.model === undefined ? {} : { ORC_MODEL: settings.model }),
          ...settings.env,
        },
        savedState: { run: randomBytes(8).toString('hex') } satisfies AnySavedState,
        isLogged: true,
      }
    },
    follow: followAny,
  }
}

async function argvOf(settings: AnySettings, { cwd, prompt }: ProgramLaunchOptions): Promise<string[]> {
  const words = typeof settings.command === 'string' ? [settings.command] : settings.command
  // Checked before the start, since a failed start says too little; it runs under the name its user gave it.
  await findExecutable({ command: words[0]!, cwd, path: settings.env.PATH ?? process.env.PATH })
  return [...words, ...settings.args, ...(settings.prompt === 'argument' ? [prompt] : [])]
}
