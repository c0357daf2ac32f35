import { Cron } from 'croner'
import { z } from 'zod'
import { didYouMean } from '../base/suggestion.ts'
import {
  ACTION_KINDS,
  ACTION_MODES,
  type ActionKind,
  type ActionPolicy,
  CONDITION,
  CONFIDENTIAL_ROLES,
  type EventRoutes,
  type RouteStep,
  TEAM_ROLES,
  type Trigger,
} from '../github/team-settings.ts'
import type { Report } from '../yaml/problem.ts'
import { findCycles } from './cycles.ts'
import { envVariable, httpUrl } from './fields.ts'
import { leadsToLoopback } from './loopback.ts'

/** The GitHub team. Secrets appear only as names of environment variables. */
export interface GithubConfig {
  readonly secretEnv: string
  readonly tokenEnv?: string
  readonly app?: { readonly id: number; readonly keyEnv: string }
  readonly apiUrl: string
  /** Repositories whose webhooks count; undefined: every repository that knows the secret. */
  readonly repositories?: readonly string[]
  readonly dryRun: boolean
  readonly eventsPerMinute: number
  /** Roles by the agent that fills them. */
  readonly team: Readonly<Record<string, string>>
  /** Members that are called at a URL of their own, by registered agent name. */
  readonly callbacks: Readonly<Record<string, { readonly urlEnv: string; readonly secretEnv?: string }>>
  readonly confidence: number
  readonly actions: Readonly<Partial<Record<ActionKind, ActionPolicy>>>
  /** Names of people whose approval counts; undefined: everyone who may decide. */
  readonly approvers?: readonly string[]
  /** Logins to notify on GitHub when an agent fails. */
  readonly maintainers: readonly string[]
  /** Names the variable with the URL that notifies moderators only. */
  readonly moderatorsUrlEnv?: string
  /** Roles or agents, in any case, whose proposals always need a person's decision. */
  readonly requiresHitl: readonly string[]
  readonly routes: EventRoutes
  readonly schedule: readonly Trigger[]
}

const GITHUB_API = 'https://api.github.com'
/** The default task for stale threads. */
const STALE_TASK =
  'Look after stale threads: propose the label stale and one friendly comment that asks whether it is still wanted; propose close_issue only for threads that already have the label.'
const CONFIDENCE = 0.95
/** C18. */
const EVENTS_PER_MINUTE = 100

const login = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:\[bot\])?$/, { error: 'is not a valid GitHub login' })
const repository = z
  .string()
  .regex(/^[\w.-]{1,100}\/[\w.-]{1,100}$/, { error: 'must have the form OWNER/NAME' })
const role = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, { error: 'is not a valid role or agent name' })
const confidence = z.number().min(0).max(1)
const condition = z.string().regex(CONDITION, { error: 'is not a known condition' })

const requiresHitl = z
  .boolean()
  .optional()
  .describe('true: people decide on all proposals. Default: the policy decides.')

/** For `people`. */
export const GithubLogin = login
  .optional()
  .describe('Their login on GitHub: approvals by this login count as theirs.')

const StepSchema = z.union([
  role,
  z.strictObject({
    to: role.describe('A role, such as triage, or an agent.'),
    if: z
      .union([condition, z.array(condition).min(1).max(10)])
      .optional()
      .describe(
        'Conditions: first_timer, touches_docs, has_words, draft, bot, label:NAME, association:NAME, command:NAME; a leading ! negates one. All must hold.',
      ),
    after: role.optional().describe('Starts after that step has ended. Default: at once, in parallel.'),
    on: z
      .enum(['success', 'failure', 'any'])
      .optional()
      .describe('The outcome of "after" that starts this step. Default: success.'),
    requires_hitl: requiresHitl,
  }),
])

const PolicySchema = z.union([
  z.enum(ACTION_MODES),
  z.strictObject({
    mode: z.enum(ACTION_MODES).describe('autonomous, notice, approval or prohibited.'),
    confidence: confidence
      .optional()
      .describe('Performed without approval from this confidence on. Default: the confidence of the team.'),
    quorum: z.int().min(1).max(100).optional().describe('How many people must approve. Default: 1.'),
  }),
])

export const GithubSchema = z
  .strictObject({
    secret_env: envVariable.describe('The environment variable with the webhook secret.'),
    token_env: envVariable.optional().describe('The environment variable with a token. Alternative: "app".'),
    app: z
      .strictObject({
        id: z.int().min(1).describe('The id of the App.'),
        key_env: envVariable.describe('The environment variable with its private key (PEM).'),
      })
      .optional()
      .describe('A GitHub App: { id: 12345, key_env: NAME }.'),
    api_url: httpUrl
      .max(500)
      .optional()
      .describe(`The URL of the API, for GitHub Enterprise: https://HOST/api/v3. Default: ${GITHUB_API}.`),
    repositories: z
      .array(repository)
      .min(1)
      .max(1000)
      .optional()
      .describe('Only these repositories, as OWNER/NAME. Default: every repository with the secret.'),
    dry_run: z
      .boolean()
      .optional()
      .describe('true: only log the actions, without performing them on GitHub. Default: false.'),
    events_per_minute: z
      .int()
      .min(1)
      .max(100_000)
      .optional()
      .describe('The number of events processed per minute; others wait. Default: 100.'),
    team: z
      .record(role, role)
      .nullish()
      .describe(
        'Which agent fills a role: { triage: Sorter }. Default: the agent of that name, whatever its case.',
      ),
    callbacks: z
      .record(
        role,
        z.strictObject({
          url_env: envVariable.describe('The environment variable with its URL.'),
          secret_env: envVariable
            .optional()
            .describe('The environment variable with the secret that signs requests.'),
        }),
      )
      .nullish()
      .describe(
        'Agents without a runtime that get their tasks by HTTP callback in the JSON of the team protocol: { Sorter: { url_env: SORTER_URL } }. Others poll for tasks.',
      ),
    confidence: confidence
      .optional()
      .describe('The confidence from which actions need no approval. Default: 0.95.'),
    requires_hitl: z
      .array(role)
      .max(100)
      .optional()
      .describe('Roles or agents whose proposals always need approval, whatever the policy: [scribe].'),
    actions: z
      .partialRecord(z.enum(ACTION_KINDS), PolicySchema)
      .nullish()
      .describe(
        'The policy for proposals: { label: autonomous, comment: { mode: notice, confidence: 0.9 }, close: { mode: approval, quorum: 2 } }.',
      ),
    approvers: z
      .array(z.string().min(1).max(64))
      .min(1)
      .max(100)
      .optional()
      .describe('Names of "people" whose approval counts. Default: everyone who may decide.'),
    maintainers: z
      .array(login)
      .max(100)
      .nullish()
      .describe('Logins to mention on GitHub when an agent fails.'),
    moderators_url_env: envVariable
      .optional()
      .describe(
        'The environment variable with a URL of the moderators, such as a chat: it learns that there is a flag, not what it says.',
      ),
    routes: z
      .record(
        z.string().regex(/^[a-z_]+(?:\.[a-z_]+)?$/, { error: 'is not a valid GitHub event' }),
        z.array(StepSchema).max(20),
      )
      .nullish()
      .describe(
        'The steps for each event, in addition to the defaults: { issues.opened: [triage, { to: concierge, if: first_timer }] }. An empty list disables the event.',
      ),
    schedule: z
      .record(
        role,
        z.strictObject({
          cron: z.string().min(1).max(100).describe('When: "0 6 * * 1" is every Monday at 6.'),
          timezone: z.string().max(64).optional().describe('The time zone of "cron". Default: UTC.'),
          to: role.describe('A role, or an agent.'),
          task: z.string().min(1).max(2000).optional().describe('The task; optional with stale_days.'),
          stale_days: z
            .int()
            .min(1)
            .max(3650)
            .optional()
            .describe('Adds open threads without activity for this many days.'),
          requires_hitl: requiresHitl,
          repository: repository.describe('OWNER/NAME.'),
        }),
      )
      .nullish()
      .describe('Scheduled tasks, by a name of your choice.'),
  })
  .nullish()

type GithubInput = z.input<typeof GithubSchema>

export function resolveGithub(
  written: GithubInput,
  agents: readonly string[],
  approvers: readonly string[] | undefined,
  report: Report,
  warn: Report,
): GithubConfig | undefined {
  if (written === undefined || written === null) return undefined
  if ((written.token_env === undefined) === (written.app === undefined)) {
    report(
      ['github'],
      '"github" needs either "token_env" or "app"',
      'Add "token_env: NAME" or "app: { id, key_env }", not both.',
    )
  }
  const api = written.api_url === undefined ? null : URL.parse(written.api_url)
  if (api?.protocol === 'http:' && !leadsToLoopback(api)) {
    warn(['github', 'api_url'], 'The token is sent to this URL unencrypted', 'Use https.')
  }
  const routes = routesOf(written.routes ?? {}, report)
  const schedule = triggersOf(written.schedule ?? {}, report)
  return {
    secretEnv: written.secret_env,
    ...(written.token_env === undefined ? {} : { tokenEnv: written.token_env }),
    ...(written.app === undefined ? {} : { app: { id: written.app.id, keyEnv: written.app.key_env } }),
    apiUrl: written.api_url ?? GITHUB_API,
    ...(written.repositories === undefined ? {} : { repositories: written.repositories }),
    dryRun: written.dry_run ?? false,
    eventsPerMinute: written.events_per_minute ?? EVENTS_PER_MINUTE,
    team: written.team ?? {},
    callbacks: callbacksOf(written.callbacks ?? {}, agents, report),
    confidence: written.confidence ?? CONFIDENCE,
    actions: policiesOf(written.actions ?? {}),
    ...(approvers === undefined ? {} : { approvers }),
    maintainers: written.maintainers ?? [],
    ...(written.moderators_url_env === undefined ? {} : { moderatorsUrlEnv: written.moderators_url_env }),
    requiresHitl: checkedNames(
      written.requires_hitl ?? [],
      [
        ...[...TEAM_ROLES, ...Object.keys(written.team ?? {}), ...agents],
        ...[...Object.values(routes).flat(), ...schedule].map(({ to }) => to),
      ],
      report,
    ),
    routes,
    schedule,
  }
}

/** Names, as written, of the agents that fill a confidential role. */
export function confidentialAgents(github: GithubConfig | undefined): readonly string[] {
  return github === undefined ? [] : CONFIDENTIAL_ROLES.map((role) => github.team[role] ?? role)
}

type GithubSection = NonNullable<GithubInput>

/** Reports unknown names: a typo must not let a proposal pass without its approval. */
function checkedNames(written: readonly string[], known: readonly string[], report: Report) {
  const folded = new Set(known.map((name) => name.toLowerCase()))
  for (const [index, name] of written.entries()) {
    if (folded.has(name.toLowerCase())) continue
    const hint = didYouMean(name, known, 'Use a role of the team or an agent.')
    report(['github', 'requires_hitl', index], `There is no role or agent "${name}"`, hint)
  }
  return written
}

function callbacksOf(
  written: NonNullable<GithubSection['callbacks']>,
  agents: readonly string[],
  report: Report,
): GithubConfig['callbacks'] {
  const entries = Object.entries(written).map(([name, { url_env, secret_env }]) => {
    const agent = agents.find((one) => one.toLowerCase() === name.toLowerCase())
    if (agent === undefined)
      report(['github', 'callbacks', name], `There is no agent "${name}"`, 'Add it to "agents".', 'key')
    return [
      agent ?? name,
      { urlEnv: url_env, ...(secret_env === undefined ? {} : { secretEnv: secret_env }) },
    ]
  })
  return Object.fromEntries(entries) as GithubConfig['callbacks']
}

function policiesOf(written: NonNullable<GithubSection['actions']>): GithubConfig['actions'] {
  const entries = Object.entries(written).map(([kind, entry]) => {
    if (typeof entry === 'string') return [kind, { mode: entry, quorum: 1 }]
    const { mode, confidence: least, quorum = 1 } = entry!
    return [kind, { mode, quorum, ...(least === undefined ? {} : { confidence: least }) }]
  })
  return Object.fromEntries(entries) as GithubConfig['actions']
}

function routesOf(written: NonNullable<GithubSection['routes']>, report: Report): EventRoutes {
  const routes: Record<string, RouteStep[]> = {}
  for (const [event, entry] of Object.entries(written)) {
    const steps = entry.map(stepOf)
    routes[event] = steps
    const [cycle] = findCycles(new Map(steps.map(({ to, after }) => [to, after])))
    if (cycle !== undefined) {
      const message = `These steps wait for each other: ${[...cycle, cycle[0]].join(' → ')}`
      report(['github', 'routes', event], message, 'Remove one "after".')
    }
    for (const [index, { after }] of steps.entries()) {
      if (after !== undefined && !steps.some(({ to }) => to === after)) {
        report(
          ['github', 'routes', event, index],
          `"${after}" is not a step of this event`,
          'Add it, or remove "after".',
        )
      }
    }
  }
  return routes
}

function stepOf(entry: z.input<typeof StepSchema>): RouteStep {
  if (typeof entry === 'string') return { to: entry, when: [], on: 'success' }
  const when = entry.if === undefined ? [] : [entry.if].flat()
  return {
    to: entry.to,
    when,
    on: entry.on ?? 'success',
    ...(entry.after === undefined ? {} : { after: entry.after }),
    ...(entry.requires_hitl === undefined ? {} : { requiresHitl: entry.requires_hitl }),
  }
}

function triggersOf(written: NonNullable<GithubSection['schedule']>, report: Report): Trigger[] {
  return Object.entries(written).map(([name, { timezone = 'UTC', ...entry }]) => {
    const problem = cronProblem(entry.cron, timezone)
    if (problem !== undefined) {
      report(
        ['github', 'schedule', name, 'cron'],
        `"cron" ${problem}`,
        'For example "0 6 * * 1": every Monday at 6.',
      )
    }
    const { task, stale_days: staleDays, requires_hitl: asks, ...rest } = entry
    if (task === undefined && staleDays === undefined)
      report(
        ['github', 'schedule', name],
        'The schedule entry has no task',
        'Add "task", or "stale_days: 60".',
      )
    return {
      ...{ name, timezone, ...rest },
      task: task ?? STALE_TASK,
      ...(staleDays === undefined ? {} : { staleDays }),
      ...(asks === undefined ? {} : { requiresHitl: asks }),
    }
  })
}

function cronProblem(cron: string, timezone: string): string | undefined {
  try {
    return new Cron(cron, { timezone, paused: true }).nextRun() === null ? 'never matches' : undefined
  } catch (error) {
    return `is not understood: ${error instanceof Error ? error.message : String(error)}`
  }
}
