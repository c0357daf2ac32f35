import { existsSync } from 'node:fs'
import { AppError } from '../../base/errors.ts'
import type { Config, LoadedConfig } from '../../config/config.ts'
import type { OfflineStore } from '../../main.ts'
import { noTeam } from '../errors.ts'
import type { TeamLocation } from './team-location.ts'

/** Loads the team's configuration; throws an error that lists the mistakes with their lines. */
export async function loadTeam({ configFile }: TeamLocation, how: Loading = {}): Promise<Config> {
  if (configFile === undefined || !existsSync(configFile)) throw noTeam(configFile)
  const { formatProblems, readConfig } = await import('../../config/config.ts')
  const loaded = (how.read ?? readConfig)(configFile)
  if (!loaded.ok) {
    const problems = formatProblems(loaded.error, configFile)
    throw new AppError('CONFIG_INVALID', `The configuration has mistakes\n\n${problems}\n`, {
      hint: `orc rules check ${configFile} shows them again.`,
    })
  }
  if (loaded.value.warnings.length > 0) how.onWarnings?.(formatProblems(loaded.value.warnings, configFile))
  return loaded.value.config
}

interface Loading {
  /** `readTeam` of main.ts also checks the settings of runtimes and programs, but takes longer to load. */
  read?: (file: string) => LoadedConfig
  onWarnings?: (text: string) => void
}

export type Offline = OfflineStore & { config: Config }

/** Opens the store directly while no service runs. Access to the file makes the caller the operator, unless ORC_TOKEN is set. */
export async function withStore<T>(
  location: TeamLocation,
  use: (offline: Offline) => Promise<T>,
): Promise<T> {
  if (process.env.ORC_TOKEN !== undefined) {
    throw new AppError('FORBIDDEN', 'Only the operator may do this, and ORC_TOKEN makes you an agent', {
      hint: 'Unset ORC_TOKEN to act as the operator.',
    })
  }
  const config = await loadTeam(location)
  const { openOffline } = await import('../../main.ts')
  const offline = await openOffline(config)
  try {
    return await use({ ...offline, config })
  } finally {
    await offline.close()
  }
}
