import { AppError } from '../../../base/errors.ts'
import { createTeam } from '../../../commands/team.ts'
import type { GithubSetup } from '../../../github/api.ts'
import { checkSetup, type SetupFinding } from '../../../github/setup.ts'
import { loadTeam, openClientIfRunning } from '../../connection/client.ts'
import type { TeamLocation } from '../../connection/connection.ts'
import { exitCode } from '../../errors.ts'
import { showWorking, table } from '../../output/layout.ts'
import { paint, plainLine, print, printJson, type Style } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'github setup',
  summary: 'check what the team needs on GitHub, and how to fix what is missing',
  details:
    'Asks GitHub with the credentials of the running service or, if none is running, with those in the environment.\n' +
    'Changes nothing. Exits with 1 if something is missing.',
  examples: ['orc github setup', 'orc github setup --json'],
  async run({ location, json }) {
    const working = showWorking('checking GitHub')
    const setup = await setupOf(location).finally(working.end)
    const isMissing = setup.findings.some(({ level }) => level === 'missing')
    if (json) printJson({ ok: !isMissing, ...setup })
    else show(setup)
    return exitCode(isMissing ? 'error' : 'ok')
  },
}

async function setupOf(location: TeamLocation): Promise<GithubSetup> {
  const config = await loadTeam(location)
  if (config.github === undefined) {
    throw new AppError('NOT_FOUND', `${config.file ?? 'orc.yaml'} has no "github"`, {
      hint: 'A minimal one: github: { secret_env: ORC_GITHUB_SECRET, token_env: ORC_GITHUB_TOKEN, repositories: [OWNER/NAME] }',
    })
  }
  const client = await openClientIfRunning(location)
  try {
    if (client !== undefined) return await client.githubSetup()
  } catch (error) {
    const { code } = error as { code?: unknown }
    // The service started before "github:" was added, or was killed.
    if (code !== 'NOT_FOUND' && code !== 'SERVICE_UNREACHABLE') throw error
  }
  const { openGithub } = await import('../../../main.ts')
  return await checkSetup(createTeam(config), openGithub(config.github).survey, process.env)
}

const STYLES: Record<SetupFinding['level'], Style> = {
  ok: 'green',
  missing: 'red',
  note: 'yellow',
  unknown: 'cyan',
}

function show({ needs, findings }: GithubSetup) {
  print(paint('bold', 'Required'))
  print(
    table(
      needs.permissions.map(({ name, level, why }) => [name, level, why]),
      '  ',
    ),
  )
  print(`  webhook to ${needs.webhook}, application/json, with a secret`)
  print(`  events ${needs.events.join(', ')}`)
  print('')
  print(paint('bold', 'Found'))
  let about: string | undefined
  for (const { level, repository, text, fix } of findings) {
    if (repository !== about && repository !== undefined) print(`  ${paint('bold', repository)}`)
    about = repository
    print(`  ${paint(STYLES[level], level.padEnd(7))}  ${plainLine(text)}`)
    if (fix !== undefined) print(`           ${paint('dim', plainLine(fix))}`)
  }
  const missing = findings.filter(({ level }) => level === 'missing').length
  print('')
  print(missing === 0 ? paint('green', 'Nothing is missing.') : paint('red', `${missing} missing.`))
}
