import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { complain, paint, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { proposeTeam } from './team-file.ts'

export const verb: Verb = {
  name: 'init',
  summary: 'write an orc.yaml for the agent programs installed here',
  arguments: [{ name: 'FOLDER', optional: true }],
  options: [
    { name: 'force', summary: 'replace an existing orc.yaml' },
    { name: 'print', summary: 'print it without writing a file' },
  ],
  examples: ['orc init', 'orc init --print', 'orc init my-project && cd my-project && orc up'],
  async run({ words, flag, json }) {
    const folder = resolve(words[0] ?? '.')
    if (!existsSync(folder)) {
      throw new AppError('NOT_FOUND', `There is no folder ${folder}`, {
        hint: 'Create it first, or name another folder.',
      })
    }
    const file = join(folder, 'orc.yaml')
    const { text, facts } = proposeTeam(folder)
    if (flag('print')) {
      if (json) printJson({ file, text })
      else print(text.trimEnd())
      return 0
    }
    try {
      writeFileSync(file, text, { flag: flag('force') ? 'w' : 'wx' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      throw new AppError('CONFLICT', `${file} already exists`, {
        hint: 'orc init --print shows what it would write; --force replaces the file.',
      })
    }
    const programs = facts.programs.map((found) => found.program)
    if (json) {
      printJson({ file, programs, tmux: facts.hasTmux })
      return 0
    }
    print(`Wrote ${file}`)
    print(
      programs.length === 0
        ? 'Found no agent program. Set one for each agent, or connect your own program with a token.'
        : `Found ${facts.programs.map((found) => found.title).join(', ')}.`,
    )
    if (!facts.hasTmux && programs.length > 0) {
      complain(
        `${paint('yellow', 'warning:', 'err')} tmux is missing. Agents in terminals need it; install it first.`,
      )
    }
    print(paint('dim', 'Next: review the file, then run orc up.'))
    return 0
  },
}
