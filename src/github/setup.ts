import type { Team } from '../commands/team.ts'
import type { GithubConfig } from '../config/config.ts'
import type { GitHubFailure } from './core/failure.ts'
import { neededEvents, neededPermissions, scopeSuffices, suffices } from './core/needs.ts'
import type { Hook, RepositoryFacts, Self, Survey } from './core/survey.ts'
import { agentFor, approversOf } from './team/settings.ts'
import { TEAM_ROLES } from './terms.ts'

/** `missing`: it will not work. `note`: worth knowing. `unknown`: GitHub does not say. */
export interface Finding {
  level: 'ok' | 'missing' | 'note' | 'unknown'
  /** The repository it is about, if any. */
  repository?: string
  text: string
  /** What to do about it. */
  mend?: string
}

export interface Setup {
  /** The account that everything is written under, where GitHub says. */
  login?: string
  needs: { permissions: { name: string; level: string; why: string }[]; events: string[]; webhook: string }
  findings: Finding[]
}

type Env = Readonly<Record<string, string | undefined>>

const HOOK_PATH = '/github/webhooks'
const SHORT_SECRET = 16

/** What the team needs of GitHub, and whether it has it. Nothing is changed by it. */
export async function checkSetup(team: Team, survey: Survey, env: Env): Promise<Setup> {
  const { github: settings, service } = team.config
  if (settings === undefined) throw new Error('orc.yaml has no "github"')
  const findings: Finding[] = []
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
    findings.push({ level: 'missing', ...saidNo(self.failure, settings, undefined) })
    return { needs, findings }
  }
  const { login, kind } = self.value
  findings.push({
    level: 'ok',
    text: `GitHub knows the ${kind === 'app' ? 'App' : 'token'}: it writes as ${login}`,
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
      text: 'orc.yaml names no repositories: every one that knows the secret is worked on, and none can be looked at here',
      mend: 'Add "repositories: [OWNER/NAME]" under "github".',
    })
  }
  return { login, needs, findings }
}

/** Says whether there is something to ask GitHub with. */
function checkVariables({ secretEnv, tokenEnv, app }: GithubConfig, env: Env, findings: Finding[]): boolean {
  const secret = env[secretEnv] ?? ''
  if (secret === '') {
    findings.push({
      level: 'missing',
      text: `${secretEnv} is not set: no webhook can be believed`,
      mend: `export ${secretEnv}="$(openssl rand -hex 32)", the same as in the settings of the webhook, and start the service again.`,
    })
  } else if (secret.length < SHORT_SECRET) {
    findings.push({
      level: 'note',
      text: `The secret in ${secretEnv} has only ${secret.length} characters`,
      mend: 'openssl rand -hex 32 makes a good one.',
    })
  } else findings.push({ level: 'ok', text: `The secret of the webhook is in ${secretEnv}` })
  const name = app?.keyEnv ?? tokenEnv!
  const held = env[name] ?? ''
  if (held === '') {
    findings.push({
      level: 'missing',
      text: `${name} is not set: the service cannot prove who it is`,
      mend:
        app === undefined
          ? `export ${name}=… with a token of GitHub.`
          : `export ${name}="$(cat key.pem)" with the private key of the App.`,
    })
    return false
  }
  if (app !== undefined && !held.includes('PRIVATE KEY')) {
    findings.push({
      level: 'missing',
      text: `${name} holds no private key in PEM`,
      mend: 'It begins with -----BEGIN … PRIVATE KEY-----. Give the text of the file, not its name.',
    })
    return false
  }
  findings.push({ level: 'ok', text: `The ${app === undefined ? 'token' : 'key of the App'} is in ${name}` })
  return true
}

function checkAddresses({ moderatorsUrlEnv, callbacks }: GithubConfig, env: Env, findings: Finding[]) {
  const named = [
    ...(moderatorsUrlEnv === undefined
      ? []
      : [{ name: moderatorsUrlEnv, what: 'moderators are not called' }]),
    ...Object.entries(callbacks).flatMap(([agent, { urlEnv, secretEnv }]) =>
      [urlEnv, secretEnv].flatMap((name) =>
        name === undefined ? [] : [{ name, what: `${agent} is not called` }],
      ),
    ),
  ]
  for (const { name, what } of named) {
    if (!env[name])
      findings.push({ level: 'missing', text: `${name} is not set: ${what}`, mend: `export ${name}=…` })
  }
}

function checkTeam(team: Team, settings: GithubConfig, findings: Finding[]) {
  const filled = TEAM_ROLES.filter((role) => agentFor(team, settings, role) !== undefined)
  const empty = TEAM_ROLES.filter((role) => !filled.includes(role))
  const shown = filled.map((role) => `${role}: ${agentFor(team, settings, role)}`)
  if (filled.length > 0) findings.push({ level: 'ok', text: `Roles: ${shown.join(', ')}` })
  if (empty.length > 0) {
    findings.push({
      level: filled.length === 0 ? 'missing' : 'note',
      text: `Nobody fills ${empty.join(', ')}: what would go there is left out`,
      mend: `Add an agent of that name to orc.yaml, or "team: { ${empty[0]}: NAME }" under "github".`,
    })
  }
  const deciders = approversOf(team, settings).filter(({ github }) => github !== undefined)
  if (deciders.length === 0) {
    findings.push({
      level: 'note',
      text: 'Nobody can approve on GitHub: no person who may has a login',
      mend: 'Under "people": ada: { github: LOGIN }. Until then: orc inbox.',
    })
  }
  if (deciders.length === 1) {
    findings.push({
      level: 'note',
      text: `Only ${deciders[0]!.name} can approve on GitHub; what is critical takes two`,
      mend: 'Name another person with a login under "people".',
    })
  }
  if (!team.config.people.some(({ role }) => role === 'moderator')) {
    findings.push({
      level: 'note',
      text: 'Nobody is a moderator: flags about conduct would be read by nobody',
      mend: 'Under "people": mo: { role: moderator }; then orc token mo.',
    })
  }
  if (settings.maintainers.length === 0) {
    findings.push({
      level: 'note',
      text: 'No maintainers are named: nobody is tagged when an agent fails',
      mend: 'Add "maintainers: [LOGIN]" under "github".',
    })
  }
  if (settings.dryRun) {
    findings.push({
      level: 'note',
      text: 'dry_run is on: nothing is done on GitHub',
      mend: 'Remove "dry_run" when the audit shows what you like.',
    })
  }
}

/** What the team's own account writes sets nothing in motion, or it would answer itself for ever. */
function checkLogin(team: Team, { maintainers }: GithubConfig, { kind, login }: Self, findings: Finding[]) {
  if (kind !== 'token') return
  const isTheirs = (one: string | undefined) => one?.toLowerCase() === login.toLowerCase()
  const person = team.config.people.find(({ github }) => isTheirs(github))
  if (person === undefined && !maintainers.some(isTheirs)) return
  findings.push({
    level: 'missing',
    text: `The token is ${person?.name ?? login}'s own: what ${login} writes on GitHub, approvals too, is not heard`,
    mend: 'Use a GitHub App, or the token of an account that nobody else writes with.',
  })
}

interface Subject {
  name: string
  settings: GithubConfig
  self: Self
  needs: Setup['needs']
  hosts: readonly string[]
}

async function checkRepository(subject: Subject, survey: Survey, findings: Finding[]): Promise<void> {
  const { name, settings } = subject
  const add = (finding: Omit<Finding, 'repository'>) => findings.push({ ...finding, repository: name })
  const facts = await survey.repository(name)
  if (!facts.ok) {
    add({ level: 'missing', ...saidNo(facts.failure, settings, name) })
    return
  }
  checkAccess(subject, facts.value, add)
  const hooks = await survey.hooks(name)
  if (hooks.ok) checkHook(subject, hooks.value, add)
  else {
    add({
      level: 'unknown',
      text: 'Its webhooks are not for this account to see',
      mend: `Look yourself: Settings → Webhooks of ${name}: ${subject.needs.webhook}, application/json, ${subject.needs.events.join(', ')}.`,
    })
  }
}

type Add = (finding: Omit<Finding, 'repository'>) => void

function checkAccess({ self, needs }: Subject, facts: RepositoryFacts, add: Add) {
  if (facts.isArchived) add({ level: 'missing', text: 'It is archived: nothing can be done there' })
  if (!facts.hasIssues) add({ level: 'note', text: 'It has no issues switched on' })
  if (facts.isSuspended)
    add({ level: 'missing', text: 'The App is suspended there', mend: 'Its owner can lift that.' })
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
    const unheard = needs.events.filter((event) => !facts.events!.includes(event))
    if (unheard.length > 0) {
      add({
        level: 'missing',
        text: `The App does not get ${unheard.join(', ')}`,
        mend: 'Settings of the App → Permissions & events → Subscribe to events.',
      })
    }
    if (lacking.length + unheard.length === 0)
      add({ level: 'ok', text: 'The App may do what it needs to, and gets its events' })
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
      text: 'GitHub does not tell what a fine-grained token may',
      mend: `Give it: ${needs.permissions.map(({ name, level }) => `${name} ${level}`).join(', ')}.`,
    })
  }
  if (facts.roles === undefined) return
  const canWrite = facts.roles.some((role) => ['push', 'maintain', 'admin'].includes(role))
  const canTriage = canWrite || facts.roles.includes('triage')
  const writes = needs.permissions.some(({ name, level }) => name === 'contents' && level === 'write')
  if (!canTriage) {
    add({
      level: 'missing',
      text: `${self.login} may not label or close there`,
      mend: 'Give the account the role triage, or write for branches.',
    })
  } else if (writes && !canWrite) {
    add({
      level: 'missing',
      text: `${self.login} may not make branches there`,
      mend: 'Give the account the role write; or say "branch: prohibited, pull_request: prohibited" under "actions".',
    })
  } else add({ level: 'ok', text: `${self.login} may ${canWrite ? 'write' : 'triage'} there` })
}

function checkHook({ needs, hosts, self }: Subject, hooks: readonly Hook[], add: Add) {
  const ours = hooks.filter(({ url }) => pathOf(url) === HOOK_PATH)
  const hook = ours.find(({ url }) => isAnswered(hostOf(url), hosts)) ?? ours[0]
  const where = self.kind === 'app' ? 'Settings of the App → Webhook' : 'Settings → Webhooks'
  if (hook === undefined) {
    const other = hooks.find(({ url }) => url !== '')
    add({
      level: 'missing',
      text:
        other === undefined
          ? 'There is no webhook'
          : `No webhook leads here; there is one to ${hostOf(other.url) || other.url}`,
      mend: `${where}: ${needs.webhook}, application/json, the same secret, ${needs.events.join(', ')}.`,
    })
    return
  }
  const problems: Omit<Finding, 'repository'>[] = []
  if (!hook.isActive)
    problems.push({ level: 'missing', text: 'Its webhook is switched off', mend: `${where}: Active.` })
  if (hook.contentType !== 'json') {
    problems.push({
      level: 'missing',
      text: `Its webhook sends ${hook.contentType}, which is not taken`,
      mend: `${where}: content type application/json.`,
    })
  }
  const unheard = hook.events?.includes('*')
    ? []
    : needs.events.filter((one) => !(hook.events?.includes(one) ?? true))
  if (unheard.length > 0)
    problems.push({
      level: 'missing',
      text: `Its webhook does not send ${unheard.join(', ')}`,
      mend: `${where}: Let me select individual events.`,
    })
  const host = hostOf(hook.url)
  if (!isAnswered(host, hosts)) {
    problems.push({
      level: 'missing',
      text: `Its webhook calls the service ${host}, and the service does not answer to that name`,
      mend: `Add "allowed_hosts: [${host}]" under "service".`,
    })
  }
  if (hook.lastStatus !== undefined && (hook.lastStatus < 200 || hook.lastStatus >= 300)) {
    problems.push({
      level: 'missing',
      text:
        hook.lastStatus === 0
          ? 'Its last webhook could not be delivered'
          : `Its last webhook was answered with ${hook.lastStatus}`,
      mend: LAST[hook.lastStatus] ?? 'Recent Deliveries there shows it.',
    })
  }
  if (problems.length === 0) add({ level: 'ok', text: `Its webhook leads to ${host}` })
  else for (const problem of problems) add(problem)
}

const LAST: Readonly<Record<number, string>> = {
  0: 'Can GitHub reach the service? A proxy with TLS must stand before it.',
  401: 'The secret on GitHub and the one that the service has are not the same.',
  403: 'The name under which GitHub calls it is not among service.allowed_hosts.',
  404: 'Was the service started with "github:" in orc.yaml?',
}

function saidNo(failure: GitHubFailure, settings: GithubConfig, repository: string | undefined) {
  const { kind, message } = failure
  const text = `GitHub says: ${message}`
  if (kind === 'unauthenticated')
    return {
      text,
      mend: `The ${settings.app === undefined ? 'token' : 'id or key of the App'} is wrong or was revoked.`,
    }
  if (kind === 'gone' && repository !== undefined) {
    return {
      text: `${repository} is not there for this account`,
      mend:
        settings.app === undefined
          ? 'Check its name, and whether the token is for it.'
          : 'Check its name, and install the App there.',
    }
  }
  if (kind === 'unavailable' || kind === 'timeout')
    return { text: message, mend: `Is ${settings.apiUrl} the address of the API? Is there a way to it?` }
  return { text }
}

/** The service answers to its own loopback names without being told. */
function isAnswered(host: string, hosts: readonly string[]): boolean {
  const name = host.replace(/:\d+$/, '')
  return hosts.includes(host) || hosts.includes(name) || /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(name)
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : ''
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname.replace(/\/+$/, '') : ''
}
