import type { Team } from '../commands/team.ts'
import type { GithubConfig } from '../config/config.ts'
import type { GithubSetup } from './api.ts'
import { DEFAULT_POLICIES } from './core/policy.ts'
import { DEFAULT_ROUTES } from './core/routing.ts'
import type { AccountIdentity, GitHubFailure, RepositoryFacts, SetupSurvey, WebhookFacts } from './port.ts'
import { agentFor, approversOf } from './roles.ts'
import {
  ACTION_KINDS,
  type ActionKind,
  type ActionPolicy,
  type EventRoutes,
  TEAM_ROLES,
} from './team-settings.ts'

export type SetupFinding = GithubSetup['findings'][number]

type Variables = Readonly<Record<string, string | undefined>>

const HOOK_PATH = '/github/webhooks'
const SHORT_SECRET = 16

/** Compares what the team needs on GitHub with what it has. Changes nothing. */
export async function checkSetup(team: Team, survey: SetupSurvey, env: Variables): Promise<GithubSetup> {
  const { github: settings, service } = team.config
  if (settings === undefined) throw new Error('orc.yaml has no "github"')
  const findings: SetupFinding[] = []
  const needs = {
    permissions: neededPermissions(settings.actions),
    events: neededEvents(settings.routes),
    webhook: `https://${service.allowedHosts[0] ?? 'YOUR-HOST'}${HOOK_PATH}`,
  }
  const canAsk = checkVariables(settings, env, findings)
  checkAddresses(settings, env, findings)
  checkTeam(team, settings, findings)
  if (!canAsk) return { needs, findings }
  const self = await survey.self()
  if (!self.ok) {
    findings.push({ level: 'missing', ...refusalText(self.error, settings, undefined) })
    return { needs, findings }
  }
  const { login, kind } = self.value
  findings.push({
    level: 'ok',
    text: `GitHub accepts the ${kind === 'app' ? 'App' : 'token'}: it writes as ${login}`,
  })
  checkLogin(team, settings, self.value, findings)
  for (const name of settings.repositories ?? []) {
    await checkRepository(
      { name, settings, self: self.value, needs, hosts: service.allowedHosts },
      survey,
      findings,
    )
  }
  if (settings.repositories === undefined) {
    findings.push({
      level: 'note',
      text: 'orc.yaml lists no repositories: webhooks of every repository with the secret count, and none can be checked here',
      mend: 'Add "repositories: [OWNER/NAME]" under "github".',
    })
  }
  return { login, needs, findings }
}

/** False without credentials for GitHub. */
function checkVariables(
  { secretEnv, tokenEnv, app }: GithubConfig,
  env: Variables,
  findings: SetupFinding[],
): boolean {
  const secret = env[secretEnv] ?? ''
  if (secret === '') {
    findings.push({
      level: 'missing',
      text: `${secretEnv} is not set: webhooks cannot be verified`,
      mend: `export ${secretEnv}="$(openssl rand -hex 32)", the same as in the webhook settings, and restart the service.`,
    })
  } else if (secret.length < SHORT_SECRET) {
    findings.push({
      level: 'note',
      text: `The secret in ${secretEnv} has only ${secret.length} characters`,
      mend: 'Create a longer one: openssl rand -hex 32',
    })
  } else findings.push({ level: 'ok', text: `The webhook secret is in ${secretEnv}` })
  const name = app?.keyEnv ?? tokenEnv!
  const held = env[name] ?? ''
  if (held === '') {
    findings.push({
      level: 'missing',
      text: `${name} is not set: the service has no credentials for GitHub`,
      mend:
        app === undefined
          ? `export ${name}=… with a GitHub token.`
          : `export ${name}="$(cat key.pem)" with the private key of the App.`,
    })
    return false
  }
  if (app !== undefined && !held.includes('PRIVATE KEY')) {
    findings.push({
      level: 'missing',
      text: `${name} contains no private key in PEM format`,
      mend: 'Set it to the content of the file, not to its name. The content starts with -----BEGIN … PRIVATE KEY-----.',
    })
    return false
  }
  findings.push({ level: 'ok', text: `The ${app === undefined ? 'token' : 'key of the App'} is in ${name}` })
  return true
}

function checkAddresses(
  { moderatorsUrlEnv, callbacks }: GithubConfig,
  env: Variables,
  findings: SetupFinding[],
) {
  const named = [
    ...(moderatorsUrlEnv === undefined
      ? []
      : [{ name: moderatorsUrlEnv, what: 'moderators are not notified' }]),
    ...Object.entries(callbacks).flatMap(([agent, { urlEnv, secretEnv }]) =>
      [urlEnv, secretEnv].flatMap((name) =>
        name === undefined ? [] : [{ name, what: `${agent} gets no callbacks` }],
      ),
    ),
  ]
  for (const { name, what } of named) {
    if (!env[name])
      findings.push({ level: 'missing', text: `${name} is not set: ${what}`, mend: `export ${name}=…` })
  }
}

function checkTeam(team: Team, settings: GithubConfig, findings: SetupFinding[]) {
  const filled = TEAM_ROLES.filter((role) => agentFor(team, settings, role) !== undefined)
  const empty = TEAM_ROLES.filter((role) => !filled.includes(role))
  const shown = filled.map((role) => `${role}: ${agentFor(team, settings, role)}`)
  if (filled.length > 0) findings.push({ level: 'ok', text: `Roles: ${shown.join(', ')}` })
  if (empty.length > 0) {
    findings.push({
      level: filled.length === 0 ? 'missing' : 'note',
      text: `No agent fills ${empty.join(', ')}: their steps are skipped`,
      mend: `Add an agent with that name to orc.yaml, or "team: { ${empty[0]}: NAME }" under "github".`,
    })
  }
  const deciders = approversOf(team, settings).filter(({ github }) => github !== undefined)
  if (deciders.length === 0) {
    findings.push({
      level: 'note',
      text: 'Nobody can approve on GitHub: no approver has a login',
      mend: 'Under "people": ada: { github: LOGIN }. Until then, use orc inbox.',
    })
  }
  if (deciders.length === 1) {
    findings.push({
      level: 'note',
      text: `Only ${deciders[0]!.name} can approve on GitHub; critical actions need two people`,
      mend: 'Add another person with a login under "people".',
    })
  }
  if (!team.config.people.some(({ role }) => role === 'moderator')) {
    findings.push({
      level: 'note',
      text: 'There is no moderator: nobody would read flags about conduct',
      mend: 'Under "people": mo: { role: moderator }; then orc token mo.',
    })
  }
  if (settings.maintainers.length === 0) {
    findings.push({
      level: 'note',
      text: 'There are no maintainers: nobody is mentioned when an agent fails',
      mend: 'Add "maintainers: [LOGIN]" under "github".',
    })
  }
  if (settings.dryRun) {
    findings.push({
      level: 'note',
      text: 'dry_run is on: the team performs no actions on GitHub',
      mend: 'Remove "dry_run" once the audit log looks right.',
    })
  }
}

/** The team ignores its own account, or it would answer itself forever. */
function checkLogin(
  team: Team,
  { maintainers }: GithubConfig,
  { kind, login }: AccountIdentity,
  findings: SetupFinding[],
) {
  if (kind !== 'token') return
  const isOwn = (one: string | undefined) => one?.toLowerCase() === login.toLowerCase()
  const person = team.config.people.find(({ github }) => isOwn(github))
  if (person === undefined && !maintainers.some(isOwn)) return
  findings.push({
    level: 'missing',
    text: `The token is ${person?.name ?? login}'s own: the team ignores everything that ${login} writes on GitHub, approvals too`,
    mend: 'Use a GitHub App, or the token of an account that no person uses.',
  })
}

interface RepositoryCheck {
  name: string
  settings: GithubConfig
  self: AccountIdentity
  needs: GithubSetup['needs']
  hosts: readonly string[]
}

async function checkRepository(
  check: RepositoryCheck,
  survey: SetupSurvey,
  findings: SetupFinding[],
): Promise<void> {
  const { name, settings } = check
  const add = (finding: Omit<SetupFinding, 'repository'>) => findings.push({ ...finding, repository: name })
  const facts = await survey.repository(name)
  if (!facts.ok) {
    add({ level: 'missing', ...refusalText(facts.error, settings, name) })
    return
  }
  checkAccess(check, facts.value, add)
  const hooks = await survey.hooks(name)
  if (hooks.ok) checkHook(check, hooks.value, add)
  else {
    add({
      level: 'unknown',
      text: 'This account cannot read the webhooks',
      mend: `Check them yourself: Settings → Webhooks of ${name}: ${check.needs.webhook}, application/json, ${check.needs.events.join(', ')}.`,
    })
  }
}

type AddFinding = (finding: Omit<SetupFinding, 'repository'>) => void

function checkAccess({ self, needs }: RepositoryCheck, facts: RepositoryFacts, add: AddFinding) {
  if (facts.isArchived) add({ level: 'missing', text: 'The repository is archived and read-only' })
  if (!facts.hasIssues) add({ level: 'note', text: 'Issues are disabled in the repository' })
  if (facts.isSuspended)
    add({ level: 'missing', text: 'The App is suspended there', mend: 'The owner can unsuspend it.' })
  if (facts.permissions !== undefined) {
    const lacking = needs.permissions.filter(
      ({ name, level }) => !suffices(facts.permissions![name], level as 'read' | 'write'),
    )
    for (const { name, level, why } of lacking) {
      add({
        level: 'missing',
        text: `The App has ${facts.permissions[name] ?? 'no'} access to ${name}; it needs ${level} (${why})`,
        mend: `Settings of the App → Permissions → ${name}: ${level}; then accept it in the installation.`,
      })
    }
    const missing = needs.events.filter((event) => !facts.events!.includes(event))
    if (missing.length > 0) {
      add({
        level: 'missing',
        text: `The App does not receive ${missing.join(', ')}`,
        mend: 'Settings of the App → Permissions & events → Subscribe to events.',
      })
    }
    if (lacking.length + missing.length === 0)
      add({ level: 'ok', text: 'The App has its permissions and receives its events' })
    return
  }
  if (self.scopes !== undefined) {
    const isEnough = scopeSuffices(self.scopes, facts.isPrivate)
    add(
      isEnough
        ? { level: 'ok', text: `The token has the scope ${self.scopes.join(', ')}` }
        : {
            level: 'missing',
            text: `The token has ${self.scopes.length === 0 ? 'no scope' : `the scope ${self.scopes.join(', ')}`}`,
            mend: `It needs ${facts.isPrivate ? 'repo' : 'public_repo'}; a fine-grained token or an App grants less.`,
          },
    )
  } else {
    add({
      level: 'unknown',
      text: 'GitHub does not report the permissions of a fine-grained token',
      mend: `It needs: ${needs.permissions.map(({ name, level }) => `${name} ${level}`).join(', ')}.`,
    })
  }
  if (facts.roles === undefined) return
  const canWrite = facts.roles.some((role) => ['push', 'maintain', 'admin'].includes(role))
  const canTriage = canWrite || facts.roles.includes('triage')
  const writes = needs.permissions.some(({ name, level }) => name === 'contents' && level === 'write')
  if (!canTriage) {
    add({
      level: 'missing',
      text: `${self.login} cannot label or close threads there`,
      mend: 'Give the account the role triage, or write if agents create branches.',
    })
  } else if (writes && !canWrite) {
    add({
      level: 'missing',
      text: `${self.login} cannot create branches there`,
      mend: 'Give the account the role write, or set "branch: prohibited, pull_request: prohibited" under "actions".',
    })
  } else add({ level: 'ok', text: `${self.login} has the role ${canWrite ? 'write' : 'triage'} there` })
}

function checkHook({ needs, hosts, self }: RepositoryCheck, hooks: readonly WebhookFacts[], add: AddFinding) {
  const ours = hooks.filter(({ url }) => pathOf(url) === HOOK_PATH)
  const hook = ours.find(({ url }) => isOwnHost(hostOf(url), hosts)) ?? ours[0]
  const where = self.kind === 'app' ? 'Settings of the App → Webhook' : 'Settings → Webhooks'
  if (hook === undefined) {
    const other = hooks.find(({ url }) => url !== '')
    add({
      level: 'missing',
      text:
        other === undefined
          ? 'There is no webhook'
          : `No webhook points to this service; there is one to ${hostOf(other.url) || other.url}`,
      mend: `${where}: ${needs.webhook}, application/json, the same secret, ${needs.events.join(', ')}.`,
    })
    return
  }
  const problems: Omit<SetupFinding, 'repository'>[] = []
  if (!hook.isActive)
    problems.push({ level: 'missing', text: 'The webhook is disabled', mend: `${where}: Active.` })
  if (hook.contentType !== 'json') {
    problems.push({
      level: 'missing',
      text: `The webhook sends ${hook.contentType}, which the service rejects`,
      mend: `${where}: content type application/json.`,
    })
  }
  const missing = hook.events?.includes('*')
    ? []
    : needs.events.filter((one) => !(hook.events?.includes(one) ?? true))
  if (missing.length > 0)
    problems.push({
      level: 'missing',
      text: `The webhook does not send ${missing.join(', ')}`,
      mend: `${where}: Let me select individual events.`,
    })
  const host = hostOf(hook.url)
  if (!isOwnHost(host, hosts)) {
    problems.push({
      level: 'missing',
      text: `The webhook calls the service as ${host}, which is not one of its names`,
      mend: `Add "allowed_hosts: [${host}]" under "service".`,
    })
  }
  if (hook.lastStatus !== undefined && (hook.lastStatus < 200 || hook.lastStatus >= 300)) {
    problems.push({
      level: 'missing',
      text:
        hook.lastStatus === 0
          ? 'The last webhook could not be delivered'
          : `The last webhook was answered with ${hook.lastStatus}`,
      mend: STATUS_HINTS[hook.lastStatus] ?? 'See Recent Deliveries there.',
    })
  }
  if (problems.length === 0) add({ level: 'ok', text: `The webhook points to ${host}` })
  else for (const problem of problems) add(problem)
}

const STATUS_HINTS: Readonly<Record<number, string>> = {
  0: 'GitHub cannot reach the service. Put a TLS proxy in front of it.',
  401: 'The secrets on GitHub and in the service differ.',
  403: 'Add the host name that GitHub calls to service.allowed_hosts.',
  404: 'Restart the service with "github:" in orc.yaml.',
}

function refusalText(failure: GitHubFailure, settings: GithubConfig, repository: string | undefined) {
  const { kind, message } = failure
  const text = `GitHub answers: ${message}`
  if (kind === 'unauthenticated')
    return {
      text,
      mend: `The ${settings.app === undefined ? 'token' : 'id or key of the App'} is wrong or was revoked.`,
    }
  if (kind === 'gone' && repository !== undefined) {
    return {
      text: `This account cannot see ${repository}`,
      mend:
        settings.app === undefined
          ? 'Check the name, and whether the token covers it.'
          : 'Check the name, and install the App there.',
    }
  }
  if (kind === 'unavailable' || kind === 'timeout')
    return {
      text: message,
      mend: `Check that ${settings.apiUrl} is the URL of the API and reachable from here.`,
    }
  return { text }
}

/** The service always accepts its loopback names. */
function isOwnHost(host: string, hosts: readonly string[]): boolean {
  const name = host.replace(/:\d+$/, '')
  return hosts.includes(host) || hosts.includes(name) || /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(name)
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : ''
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname.replace(/\/+$/, '') : ''
}

interface NeededPermission {
  /** GitHub's name in the settings of an App or a fine-grained token. */
  readonly name: string
  readonly level: 'read' | 'write'
  readonly why: string
}

const LEVELS = ['none', 'read', 'write', 'admin']

export function suffices(granted: string | undefined, needed: 'read' | 'write'): boolean {
  return LEVELS.indexOf(granted ?? 'none') >= LEVELS.indexOf(needed)
}

/** The least permissions for the actions that the policy allows. */
export function neededPermissions(
  actions: Readonly<Partial<Record<ActionKind, ActionPolicy>>>,
): NeededPermission[] {
  const can = (kind: ActionKind) => (actions[kind] ?? DEFAULT_POLICIES[kind]).mode !== 'prohibited'
  const kinds = ACTION_KINDS.filter(can)
  const onIssues = kinds.filter((kind) => ['label', 'comment', 'close'].includes(kind))
  const onPulls = kinds.filter((kind) => ['label', 'comment', 'review', 'pull_request'].includes(kind))
  const onContents = kinds.filter((kind) => ['branch', 'pull_request'].includes(kind))
  const doing = (list: readonly string[], otherwise: string) =>
    list.length === 0 ? otherwise : list.join(', ').replaceAll('_', ' ')
  return [
    { name: 'metadata', level: 'read', why: 'the repository itself' },
    { name: 'issues', level: onIssues.length > 0 ? 'write' : 'read', why: doing(onIssues, 'reading issues') },
    {
      name: 'pull_requests',
      level: onPulls.length > 0 ? 'write' : 'read',
      why: doing(onPulls, 'reading pull requests'),
    },
    {
      name: 'contents',
      level: onContents.length > 0 ? 'write' : 'read',
      why: doing(onContents, 'governance documents and workflows'),
    },
  ]
}

/** GitHub's names of events in the settings of a webhook. */
export function neededEvents(routes: EventRoutes): string[] {
  const all = { ...DEFAULT_ROUTES, ...routes }
  const routed = Object.entries(all)
    .filter(([, steps]) => steps.length > 0)
    .map(([event]) => event.split('.')[0]!)
  // Slash commands and verdicts come in comments, even if no role handles comments.
  const names = new Set([...routed, 'issue_comment', 'pull_request_review', 'pull_request_review_comment'])
  return [...names].filter((name) => name !== 'periodic_trigger').toSorted()
}

/** For classic tokens: `repo` covers everything, `public_repo` covers public repositories. */
export function scopeSuffices(scopes: readonly string[], isPrivate: boolean): boolean {
  return scopes.includes('repo') || (!isPrivate && scopes.includes('public_repo'))
}
