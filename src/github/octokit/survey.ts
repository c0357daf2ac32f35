import type { AccountIdentity, GitHubResult, RepositoryFacts, SetupSurvey, WebhookFacts } from '../port.ts'
import { mapped, ownerAndName } from './responses.ts'

export interface ApiResponse<Data> {
  readonly data: Data
  readonly headers: Readonly<Record<string, string | number | undefined>>
}

export type ApiRequest = <Data>(
  repository: string | undefined,
  route: string,
  params?: Record<string, unknown>,
) => Promise<GitHubResult<ApiResponse<Data>>>

interface Installation {
  permissions?: Record<string, string>
  events?: string[]
  suspended_at?: string | null
}

interface HookConfig {
  url?: string
  content_type?: string
}

/** Requests without a repository use the credentials of the App itself. */
export function createSurvey(kind: AccountIdentity['kind'], request: ApiRequest): SetupSurvey {
  async function self(): Promise<GitHubResult<AccountIdentity>> {
    if (kind === 'app') {
      const answer = await request<{ slug?: string; name: string }>(undefined, 'GET /app')
      if (!answer.ok) return answer
      const { slug, name } = answer.value.data
      return { ok: true, value: { kind, login: `${slug ?? name}[bot]` } }
    }
    const answer = await request<{ login: string }>(undefined, 'GET /user')
    if (!answer.ok) return answer
    const { data, headers } = answer.value
    const scopes = headers['x-oauth-scopes']
    return {
      ok: true,
      value: {
        kind,
        login: data.login,
        ...(typeof scopes === 'string' ? { scopes: scopes.split(/,\s*/).filter((one) => one !== '') } : {}),
      },
    }
  }

  async function repository(name: string): Promise<GitHubResult<RepositoryFacts>> {
    const installation =
      kind === 'app'
        ? await request<Installation>(undefined, 'GET /repos/{owner}/{repo}/installation', ownerAndName(name))
        : undefined
    if (installation?.ok === false) return installation
    const answer = await request<{
      private?: boolean
      archived?: boolean
      has_issues?: boolean
      permissions?: Record<string, boolean>
    }>(name, 'GET /repos/{owner}/{repo}')
    if (!answer.ok) return answer
    const { data } = answer.value
    const granted = installation?.value.data
    const roles = Object.entries(data.permissions ?? {}).flatMap(([role, has]) => (has ? [role] : []))
    return {
      ok: true,
      value: {
        isPrivate: data.private === true,
        isArchived: data.archived === true,
        hasIssues: data.has_issues !== false,
        ...(kind === 'token' && data.permissions !== undefined ? { roles } : {}),
        ...(granted === undefined
          ? {}
          : {
              permissions: granted.permissions ?? {},
              events: granted.events ?? [],
              isSuspended: typeof granted.suspended_at === 'string',
            }),
      },
    }
  }

  async function hooks(name: string): Promise<GitHubResult<WebhookFacts[]>> {
    if (kind === 'app') {
      const config = request<HookConfig>(undefined, 'GET /app/hook/config')
      return await mapped(config, ({ data }) => [hookOf(data, true)])
    }
    const answer = await request<
      {
        active: boolean
        events: string[]
        config: HookConfig
        last_response?: { code?: number | null }
      }[]
    >(name, 'GET /repos/{owner}/{repo}/hooks', { per_page: 100 })
    if (!answer.ok) return answer
    const found = answer.value.data.map(({ active, events, config, last_response }) => ({
      ...hookOf(config, active),
      events,
      ...(typeof last_response?.code === 'number' ? { lastStatus: last_response.code } : {}),
    }))
    return { ok: true, value: found }
  }

  return { self, repository, hooks }
}

function hookOf({ url = '', content_type = 'form' }: HookConfig, isActive: boolean): WebhookFacts {
  return { url, contentType: content_type, isActive }
}
