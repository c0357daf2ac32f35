import type { createAppAuth } from '@octokit/auth-app'
import { Octokit } from '@octokit/core'
import { AppError } from '../../model/errors.ts'
import type { Credentials } from './credentials.ts'

type Basic = NonNullable<ConstructorParameters<typeof Octokit>[0]>

/** Clients of a GitHub App: one for itself, one for the installation of each repository. */
export function createApp(
  basic: Basic,
  credentials: Extract<Credentials, { kind: 'app' }>,
  authStrategy: typeof createAppAuth,
) {
  const byRepository = new Map<string, Promise<Octokit>>()

  function authenticated(installationId?: number): Octokit {
    const privateKey = credentials.key()
    if (privateKey === undefined)
      throw new AppError('CONFIG_INVALID', 'The key of the GitHub App is not in the environment')
    return new Octokit({
      ...basic,
      authStrategy,
      auth: {
        appId: credentials.id,
        privateKey,
        ...(installationId === undefined ? {} : { installationId }),
      },
    })
  }

  async function find(repository: string): Promise<Octokit> {
    const [owner, repo] = repository.split('/')
    const { data } = await authenticated().request('GET /repos/{owner}/{repo}/installation', {
      owner: owner!,
      repo: repo!,
    })
    return authenticated(data.id)
  }

  return {
    asApp: () => authenticated(),
    /** False: there is nothing to forget. */
    forget: (repository: string): boolean => byRepository.delete(repository),
    forRepository(repository: string): Promise<Octokit> {
      const known = byRepository.get(repository)
      if (known !== undefined) return known
      const client = find(repository)
      byRepository.set(repository, client)
      // The App may be installed there yet.
      client.catch(() => {
        if (byRepository.get(repository) === client) byRepository.delete(repository)
      })
      return client
    },
  }
}
