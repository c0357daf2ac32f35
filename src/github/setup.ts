/** `orc github setup`: compares what the team needs on GitHub with what it has. Changes nothing. */
import type { Team } from '../commands/team.ts'
import type { GithubConfig } from '../config/config.ts'
import type { GithubSetup } from './api.ts'
import { DEFAULT_POLICIES } from './core/policy.ts'
import { routesOf } from './core/routing.ts'
import type { AccountIdentity, GitHubFailure, RepositoryFacts, SetupSurvey, WebhookFacts } from './port.ts'
import { agentFor, approversOf } from './roles.ts'
import { ACTION_KINDS, type ActionKind, type ActionPolicy, TEAM_ROLES } from './team-settings.ts'

export type SetupFinding = GithubSetup['findings'][number]

type Variables = Readonly<Record<string, string | undefined>>

const HOOK_PATH = '/github/webhooks'
const SHORT_SECRET = 16

export async function checkSetup(team: Team, survey: SetupSurvey, env: Variables): Promise<GithubSetup> {
  const { github: settings, service } = team.config
  if (settings === undefined) throw new Error('orc.yaml has no "github"')
  const needs = {
    permissions: neededPermissions(settings.actions),
    events: neededEvents(settings),
    webhook: `https://${service.allowedHosts[0] ?? 'YOUR-HOST'}${HOOK_PATH}`,
  }
  const findings: SetupFinding[] = []
  const adding =
    (repository?: string): AddFinding =>
    (level, text, fix) =>
      void findings.push({ level, repository, text, fix })
  const add = adding()
  const hasCredentials = checkVariables(settings, env, add)
  checkAddresses(settings, env, add)
  checkTeam(team, settings, add)
  if (!hasCredentials) return { needs, findings }
  const self = await survey.self()
  if (!self.ok) {
    add('missing', ...refusalText(self.error, settings, undefined))
    return { needs, findings }
  }
  const { login, kind } = self.value
  add('ok', `GitHub accepts the ${kind === 'app' ? 'App' : 'token'}: it writes as ${login}`)
  checkLogin(team, settings, self.value, add)
  for (const repository of settings.repositories ?? []) {
    const check = { name: repository, settings, self: self.value, needs, hosts: service.allowedHosts }
    await checkRepository(check, survey, adding(repository))
  }
  if (settings.repositories === undefined) {
    add(
      'note',
      'orc.yaml lists no repositories: the team accepts webhooks of every repository that knows the secret, and cannot check any of them here',
      'Add "repositories: [OWNER/NAME]" under "github".',
    )
  }
  return { login, needs, findings }
}

type AddFinding = (level: SetupFinding['level'], text: string, fix?: string) => void

/** Returns false without credentials for GitHub. */
function checkVariables(
  { secretEnv, tokenEnv, app }: GithubConfig,
  env: Variables,
  add: AddFinding,
): boolean {
  const secret = env[secretEnv] ?? ''
  if (secret === '') {
    add(
      'missing',
      `${secretEnv} is not set: webhooks cannot be verified`,
      `export ${secretEnv}="$(openssl rand -hex 32)", the same as in the webhook settings, and restart the service.`,
    )
  } else if (secret.length < SHORT_SECRET) {
    const text = `The secret in ${secretEnv} has only ${secret.length} characters`
    add('note', text, 'Create a longer one: openssl rand -hex 32')
  } else add('ok', `The webhook secret is in ${secretEnv}`)
  const name = app?.keyEnv ?? tokenEnv!
  const value = env[name] ?? ''
  if (value === '') {
    const fix =
      app === undefined
        ? `export ${name}=… with a GitHub token.`
        : `export ${name}="$(cat key.pem)" with the private key of the App.`
    add('missing', `${name} is not set: the service has no credentials for GitHub`, fix)
    return false
  }
  if (app !== undefined && !value.includes('PRIVATE KEY')) {
    add(
      'missing',
      `${name} contains no private key in PEM format`,
      'Set it to the content of the file, not to its name. The content starts with -----BEGIN … PRIVATE KEY-----.',
    )
    return false
  }
  add('ok', `The ${app === undefined ? 'token' : 'key of the App'} is in ${name}`)
  return true
}

function checkAddresses({ moderatorsUrlEnv, callbacks }: GithubConfig, env: Variables, add: AddFinding) {
  const check = (name: string | undefined, effect: string) => {
    if (name !== undefined && !env[name]) add('missing', `${name} is not set: ${effect}`, `export ${name}=…`)
  }
  check(moderatorsUrlEnv, 'moderators are not notified')
  for (const [agent, { urlEnv, secretEnv }] of Object.entries(callbacks)) {
    for (const name of [urlEnv, secretEnv]) check(name, `${agent} gets no callbacks`)
  }
}

function checkTeam(team: Team, settings: GithubConfig, add: AddFinding) {
  const filled = TEAM_ROLES.filter((role) => agentFor(team, role) !== undefined)
  const empty = TEAM_ROLES.filter((role) => !filled.includes(role))
  const shown = filled.map((role) => `${role}: ${agentFor(team, role)}`)
  if (filled.length > 0) add('ok', `Roles: ${shown.join(', ')}`)
  if (empty.length > 0) {
    add(
      filled.length === 0 ? 'missing' : 'note',
      `No agent fills ${empty.join(', ')}: their steps are skipped`,
      `Add an agent with that name to orc.yaml, or "team: { ${empty[0]}: NAME }" under "github".`,
    )
  }
  const deciders = approversOf(team).filter(({ github }) => github !== undefined)
  if (deciders.length === 0) {
    const fix = 'Under "people": ada: { github: LOGIN }. Until then, use orc inbox.'
    add('note', 'Nobody can approve on GitHub: no approver has a login', fix)
  }
  if (deciders.length === 1) {
    const text = `Only ${deciders[0]!.name} can approve on GitHub; critical actions need two people`
    add('note', text, 'Add another person with a login under "people".')
  }
  if (!team.config.people.some(({ role }) => role === 'moderator')) {
    const fix = 'Under "people": mo: { role: moderator }; then orc token create mo.'
    add('note', 'There is no moderator to read flags about conduct', fix)
  }
  if (settings.maintainers.length === 0) {
    const fix = 'Add "maintainers: [LOGIN]" under "github".'
    add('note', 'There are no maintainers to mention when an agent fails', fix)
  }
  if (settings.dryRun) {
    const fix = 'Remove "dry_run" once the audit log looks right.'
    add('note', 'dry_run is on: the team performs no actions on GitHub', fix)
  }
}

/** The team ignores its own account, or it would answer itself forever. */
function checkLogin(
  team: Team,
  { maintainers }: GithubConfig,
  { kind, login }: AccountIdentity,
  add: AddFinding,
) {
  if (kind !== 'token') return
  const isOwn = (one: string | undefined) => one?.toLowerCase() === login.toLowerCase()
  const person = team.config.people.find(({ github }) => isOwn(github))
  if (person === undefined && !maintainers.some(isOwn)) return
  add(
    'missing',
    `The token belongs to ${person?.name ?? login}: the team ignores everything that ${login} writes on GitHub, including approvals`,
    'Use a GitHub App, or the token of an account that no person uses.',
  )
}

interface RepositoryCheck {
  name: string
  settings: GithubConfig
  self: AccountIdentity
  needs: GithubSetup['needs']
  hosts: readonly string[]
}

async function checkRepository(check: RepositoryCheck, survey: SetupSurvey, add: AddFinding): Promise<void> {
  const { name, settings, needs } = check
  const facts = await survey.repository(name)
  if (!facts.ok) return add('missing', ...refusalText(facts.error, settings, name))
  checkAccess(check, facts.value, add)
  const hooks = await survey.hooks(name)
  if (hooks.ok) return checkHook(check, hooks.value, add)
  add(
    'unknown',
    'This account cannot read the webhooks',
    `Check them yourself: Settings → Webhooks of ${name}: ${needs.webhook}, application/json, ${needs.events.join(', ')}.`,
  )
}

function checkAccess(check: RepositoryCheck, facts: RepositoryFacts, add: AddFinding) {
  if (facts.isArchived) add('missing', 'The repository is archived and read-only')
  if (!facts.hasIssues) add('note', 'Issues are disabled in the repository')
  if (facts.isSuspended) add('missing', 'The App is suspended there', 'The owner can unsuspend it.')
  if (facts.permissions !== undefined) checkApp(check, facts, add)
  else checkToken(check, facts, add)
}

const LEVELS = ['none', 'read', 'write', 'admin']

function checkApp(
  { needs }: RepositoryCheck,
  { permissions = {}, events = [] }: RepositoryFacts,
  add: AddFinding,
) {
  const rank = (level = 'none') => LEVELS.indexOf(level)
  const lacking = needs.permissions.filter(({ name, level }) => rank(permissions[name]) < rank(level))
  for (const { name, level, why } of lacking) {
    add(
      'missing',
      `The App has ${permissions[name] ?? 'no'} access to ${name}; it needs ${level} (${why})`,
      `Settings of the App → Permissions → ${name}: ${level}; then accept it in the installation.`,
    )
  }
  const missing = needs.events.filter((event) => !events.includes(event))
  if (missing.length > 0) {
    const fix = 'Settings of the App → Permissions & events → Subscribe to events.'
    add('missing', `The App does not receive ${missing.join(', ')}`, fix)
  }
  if (lacking.length + missing.length === 0) add('ok', 'The App has its permissions and receives its events')
}

function checkToken(
  { self, needs }: RepositoryCheck,
  { isPrivate, roles }: RepositoryFacts,
  add: AddFinding,
) {
  const { login, scopes } = self
  if (scopes === undefined) {
    const fix = `It needs: ${needs.permissions.map(({ name, level }) => `${name} ${level}`).join(', ')}.`
    add('unknown', 'GitHub does not report the permissions of a fine-grained token', fix)
  } else if (scopes.includes('repo') || (!isPrivate && scopes.includes('public_repo'))) {
    add('ok', `The token has the scope ${scopes.join(', ')}`)
  } else {
    const fix = `It needs ${isPrivate ? 'repo' : 'public_repo'}; a fine-grained token or an App grants less.`
    add(
      'missing',
      `The token has ${scopes.length === 0 ? 'no scope' : `the scope ${scopes.join(', ')}`}`,
      fix,
    )
  }
  if (roles === undefined) return
  const canWrite = roles.some((role) => ['push', 'maintain', 'admin'].includes(role))
  const mustWrite = needs.permissions.some(({ name, level }) => name === 'contents' && level === 'write')
  if (!canWrite && !roles.includes('triage')) {
    const fix = 'Give the account the role triage, or write if agents create branches.'
    add('missing', `${login} cannot label or close threads there`, fix)
  } else if (mustWrite && !canWrite) {
    add(
      'missing',
      `${login} cannot create branches there`,
      'Give the account the role write, or set "branch: prohibited, pull_request: prohibited" under "actions".',
    )
  } else add('ok', `${login} has the role ${canWrite ? 'write' : 'triage'} there`)
}

function checkHook({ needs, hosts, self }: RepositoryCheck, hooks: readonly WebhookFacts[], add: AddFinding) {
  const ours = hooks.filter(({ url }) => URL.parse(url)?.pathname.replace(/\/+$/, '') === HOOK_PATH)
  const hook = ours.find(({ url }) => isOwnHost(hostOf(url), hosts)) ?? ours[0]
  const where = self.kind === 'app' ? 'Settings of the App → Webhook' : 'Settings → Webhooks'
  if (hook === undefined) {
    const other = hooks.find(({ url }) => url !== '')
    add(
      'missing',
      other === undefined
        ? 'There is no webhook'
        : `No webhook points to this service; there is one to ${hostOf(other.url) || other.url}`,
      `${where}: ${needs.webhook}, application/json, the same secret, ${needs.events.join(', ')}.`,
    )
    return
  }
  const host = hostOf(hook.url)
  const problems: [text: string, fix: string][] = []
  if (!hook.isActive) problems.push(['The webhook is disabled', `${where}: Active.`])
  if (hook.contentType !== 'json') {
    const text = `The webhook sends ${hook.contentType}, which the service rejects`
    problems.push([text, `${where}: content type application/json.`])
  }
  const { events = ['*'], lastStatus } = hook
  const missing = events.includes('*') ? [] : needs.events.filter((one) => !events.includes(one))
  if (missing.length > 0) {
    const text = `The webhook does not send ${missing.join(', ')}`
    problems.push([text, `${where}: Let me select individual events.`])
  }
  if (!isOwnHost(host, hosts)) {
    const text = `The webhook calls the service as ${host}, which is not one of its names`
    problems.push([text, `Add "allowed_hosts: [${host}]" under "service".`])
  }
  if (lastStatus !== undefined && (lastStatus < 200 || lastStatus >= 300)) {
    const text =
      lastStatus === 0
        ? 'The last webhook could not be delivered'
        : `The service answered the last webhook with ${lastStatus}`
    problems.push([text, STATUS_HINTS[lastStatus] ?? 'See Recent Deliveries there.'])
  }
  if (problems.length === 0) add('ok', `The webhook points to ${host}`)
  for (const [text, fix] of problems) add('missing', text, fix)
}

const STATUS_HINTS: Readonly<Record<number, string>> = {
  0: 'GitHub cannot reach the service. Put a TLS proxy in front of it.',
  401: 'The secrets on GitHub and in the service differ.',
  403: 'Add the host name that GitHub calls to service.allowed_hosts.',
  404: 'Restart the service with "github:" in orc.yaml.',
}

function refusalText(
  { kind, message }: GitHubFailure,
  { app, apiUrl }: GithubConfig,
  repository: string | undefined,
): [text: string, fix?: string] {
  if (kind === 'unauthenticated') {
    const fix = `The ${app === undefined ? 'token' : 'id or key of the App'} is wrong or was revoked.`
    return [`GitHub answers: ${message}`, fix]
  }
  if (kind === 'gone' && repository !== undefined) {
    const fix = app === undefined ? 'and whether the token covers it.' : 'and install the App there.'
    return [`This account cannot see ${repository}`, `Check the name, ${fix}`]
  }
  if (kind === 'unavailable' || kind === 'timeout')
    return [message, `Check that ${apiUrl} is the URL of the API and reachable from here.`]
  return [`GitHub answers: ${message}`]
}

/** The service always accepts its loopback names. */
function isOwnHost(host: string, hosts: readonly string[]): boolean {
  const name = host.replace(/:\d+$/, '')
  return hosts.includes(host) || hosts.includes(name) || /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(name)
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? ''
}

/** The least permissions for the actions that the policy allows, by GitHub's names in the settings of an App or token. */
function neededPermissions(
  actions: Readonly<Partial<Record<ActionKind, ActionPolicy>>>,
): GithubSetup['needs']['permissions'] {
  const allowed = (...kinds: ActionKind[]) =>
    ACTION_KINDS.filter(
      (kind) => kinds.includes(kind) && (actions[kind] ?? DEFAULT_POLICIES[kind]).mode !== 'prohibited',
    )
  const permission = (name: string, writes: readonly ActionKind[], reads: string) =>
    writes.length === 0
      ? { name, level: 'read', why: reads }
      : { name, level: 'write', why: writes.join(', ').replaceAll('_', ' ') }
  return [
    { name: 'metadata', level: 'read', why: 'the repository itself' },
    permission('issues', allowed('label', 'comment', 'close'), 'reading issues'),
    permission(
      'pull_requests',
      allowed('label', 'comment', 'review', 'pull_request'),
      'reading pull requests',
    ),
    permission('contents', allowed('branch', 'pull_request'), 'governance documents and workflows'),
  ]
}

/** GitHub's names of events in the settings of a webhook. */
function neededEvents(settings: GithubConfig): string[] {
  const routed = Object.entries(routesOf(settings))
    .filter(([, steps]) => steps.length > 0)
    .map(([event]) => event.split('.')[0]!)
  // Slash commands and verdicts come in comments, even if no role handles comments.
  const names = new Set([...routed, 'issue_comment', 'pull_request_review', 'pull_request_review_comment'])
  return [...names].filter((name) => name !== 'periodic_trigger').toSorted()
}
