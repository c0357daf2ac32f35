import { existsSync } from 'node:fs'
import { noTeam } from '../../errors.ts'
import { exitCode } from '../../exit-code.ts'
import { counted } from '../../output/layout.ts'
import { complain, paint, plain, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'rules check',
  summary: 'check an orc.yaml and show its mistakes with line numbers',
  arguments: [{ name: 'FILE', optional: true }],
  examples: ['orc rules check', 'orc rules check new.yaml --json'],
  async run({ words, location, json }) {
    const file = words[0] ?? location.configFile
    if (file === undefined || !existsSync(file)) throw noTeam(file)
    const [{ formatProblems }, { readTeam }] = await Promise.all([
      import('../../../config/config.ts'),
      import('../../../main.ts'),
    ])
    const loaded = readTeam(file)
    const problems = loaded.ok ? [] : loaded.error
    const warnings = loaded.ok ? loaded.value.warnings : []
    if (json) printJson({ ok: loaded.ok, file, problems, warnings })
    else {
      if (problems.length > 0) complain(plain(formatProblems(problems, file)))
      if (warnings.length > 0)
        complain(`${paint('yellow', 'warning:', 'err')} ${plain(formatProblems(warnings, file))}`)
      if (loaded.ok)
        print(`${paint('green', 'ok')}  ${file}: ${counted(loaded.value.config.agents.length, 'agent')}`)
    }
    return exitCode(loaded.ok ? 'ok' : 'error')
  },
}
