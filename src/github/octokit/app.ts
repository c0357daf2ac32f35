import type { createAppAuth } from '@octokit/auth-app'
import { Octokit } from '@octokit/core'
import { AppError } from '../../base/errors.ts'

type ClientOptions = NonNullable<ConstructorParameters<typeof Octokit>[0]>

/** Clients of a GitHub App: one for the App itself and one for each installation, which may cover many repositories. */
export function createApp(
  basic: ClientOptions,
  credentials: Extract<Credentials, { kind: 'app' }>,
  authStrategy: typeof createAppAuth,
) {
  const installations = new Map<string, Promise<number>>()
  const clients = new Map<number, Octokit>()

  function authenticated(installationId?: number): Octokit {
    const privateKey = credentials.key()
    if (privateKey === undefined)
      throw new AppError('CONFIG_INVALID', 'The private key of the GitHub App is not set in the environment')
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

  async function find(repository: string): Promise<number> {
    const [owner, repo] = repository.split('/')
    const { data } = await authenticated().request('GET /repos/{owner}/{repo}/installation', {
      owner: owner!,
      repo: repo!,
    })
    return data.id
  }

  return {
    asApp: () => authenticated(),
    asInstallation(id: number): Octokit {
      const client = clients.get(id) ?? authenticated(id)
      clients.set(id, client)
      return client
    },
    /** False if no installation was cached. */
    async forget(repository: string): Promise<boolean> {
      const known = await installations.get(repository)?.catch(() => undefined)
      if (known !== undefined) clients.delete(known)
      return installations.delete(repository)
    },
    knows: (repository: string): boolean => installations.has(repository),
    installationOf(repository: string): Promise<number> {
      const known = installations.get(repository)
      if (known !== undefined) return known
      const found = find(repository)
      installations.set(repository, found)
      // Failures aren't cached: the App may be installed later.
      found.catch(() => {
        if (installations.get(repository) === found) installations.delete(repository)
      })
      return found
    },
  }
}

/** The functions read secrets from the environment for each call, so that none is stored. */
export type Credentials =
  | { readonly kind: 'token'; token(): string | undefined }
  | { readonly kind: 'app'; readonly id: number; key(): string | undefined }
