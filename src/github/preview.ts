import { emitterEventNames } from '@octokit/webhooks'
import type { Team } from '../commands/team.ts'
import type { GithubConfig } from '../config/config.ts'
import { describeAction } from './core/action.ts'
import { authorOf, type GitHubEvent, isNewcomer, newComment, readEvent } from './core/event.ts'
import { DEFAULT_POLICIES, isElsewhere, isPaused, judgeProposal } from './core/policy.ts'
import { parseResult, readReport, separateConduct } from './core/report.ts'
import {
  holds,
  mayUse,
  readSlashCommands,
  routesOf,
  SLASH_COMMANDS,
  stepsFor,
  whyIgnored,
} from './core/routing.ts'
import { agentFor, isConfidentialRole, personWithLogin, requiresApproval } from './roles.ts'
import { ACTION_KINDS, type ActionPolicy, type RouteStep } from './team-settings.ts'

/** The effects of an event, computed offline: without a model, GitHub or the service. */
export interface Preview {
  event: {
    type: string
    repository?: string
    number?: number
    title?: string
    author?: string
    association?: string
  }
  /** Why the team ignores the event. */
  ignored?: string
  paused: boolean
  commands: { command: string; allowed: boolean; does: string }[]
  steps: PreviewStep[]
  /** The policy for each kind of proposal. */
  policies: { kind: string; mode: string; text: string }[]
}

interface PreviewStep {
  role: string
  agent?: string
  outcome: 'gets it' | 'perhaps' | 'left out'
  why: string
  after?: string
}

/** Facts that only GitHub knows. */
const UNKNOWN_FACTS: ReadonlySet<string> = new Set(['first_timer', 'touches_docs'])

export function previewEvent(team: Team, event: GitHubEvent): Preview {
  const settings = team.config.github!
  const { subject } = event
  const author = authorOf(event)
  const ignored = whyIgnored(event, settings.repositories)
  const about = {
    type: event.type,
    ...(event.repository === undefined ? {} : { repository: event.repository }),
    ...(subject === undefined ? {} : { number: subject.number, title: subject.title }),
    ...(author === undefined ? {} : { author: author.login, association: author.association }),
  }
  const policies = ACTION_KINDS.map((kind) => {
    const policy = settings.actions[kind] ?? DEFAULT_POLICIES[kind]
    return { kind, mode: policy.mode, text: policyText(policy, settings) }
  })
  const paused = isPaused(subject?.labels ?? [], event.topics)
  const commands = commandsIn(team, event)
  if (ignored !== undefined) return { event: about, ignored, paused, commands: [], steps: [], policies }
  const requested = commands.flatMap(({ allowed, role }) => (allowed && role !== undefined ? [role] : []))
  const steps = [
    ...[...new Set(requested)].map((to): RouteStep => ({ to, when: [], on: 'any' })),
    ...(stepsFor(settings, event) ?? []).filter(({ to }) => !requested.includes(to)),
  ].map((step) => stepOf(team, step, event))
  const pause = { outcome: 'left out', why: 'the team is paused there' } as const
  return {
    event: about,
    paused,
    commands: commands.map(({ role: _, ...shown }) => shown),
    steps: paused ? steps.map((step) => ({ ...step, ...pause })) : steps,
    policies,
  }
}

function stepOf(team: Team, step: RouteStep, event: GitHubEvent): PreviewStep {
  const agent = agentFor(team, step.to)
  const found = step.when.map((condition) => ({ condition, is: conditionHolds(condition, event) }))
  const not = found.find(({ is }) => is === false)
  const open = found.filter(({ is }) => is === undefined).map(({ condition }) => condition)
  const common = {
    role: step.to,
    ...(agent === undefined ? {} : { agent }),
    ...(step.after === undefined ? {} : { after: step.after }),
  }
  if (agent === undefined) return { ...common, outcome: 'left out', why: 'no agent fills this role' }
  if (not !== undefined) return { ...common, outcome: 'left out', why: `condition not met: ${not.condition}` }
  if (open.length > 0)
    return { ...common, outcome: 'perhaps', why: `if ${open.join(' and ')}, which only GitHub knows` }
  const held = found.map(({ condition }) => condition)
  return { ...common, outcome: 'gets it', why: held.length === 0 ? 'always' : held.join(' and ') }
}

/** Undefined if the event itself does not tell. */
function conditionHolds(condition: string, event: GitHubEvent): boolean | undefined {
  const name = condition.replace(/^!/, '')
  if (!UNKNOWN_FACTS.has(name)) return holds(condition, event, { firstTimer: false, touchesDocs: false })
  const { association } = authorOf(event) ?? {}
  const isNegated = condition.startsWith('!')
  if (name === 'first_timer' && association !== undefined && association !== 'NONE')
    return isNewcomer(association, undefined) !== isNegated
  if (name === 'touches_docs' && event.subject?.kind !== 'pull_request') return isNegated
  return undefined
}

function commandsIn(team: Team, event: GitHubEvent) {
  const comment = newComment(event)
  if (comment === undefined) return []
  const author = { association: comment.association, person: personWithLogin(team, comment.author)?.name }
  return readSlashCommands(comment.body).map((parsed) => {
    if (parsed.name === undefined)
      return {
        command: `/agent ${parsed.text}`,
        allowed: false,
        role: undefined,
        does: 'nothing: unknown command',
      }
    const command = `/agent ${parsed.name}${parsed.words === '' ? '' : ` ${parsed.words}`}`
    const role = SLASH_COMMANDS[parsed.name].role
    const allowed = mayUse(parsed.name, author)
    const does =
      role === undefined
        ? parsed.name === 'help'
          ? 'posts the list of commands'
          : `counts as ${author.person ?? comment.author}'s verdict if GitHub sends it`
        : `goes to ${role}`
    return {
      command,
      allowed,
      role,
      does: allowed ? does : `nothing: ${comment.author} (${comment.association}) may not use it`,
    }
  })
}

function policyText({ mode, confidence, quorum }: ActionPolicy, settings: GithubConfig): string {
  const least = Math.max(confidence ?? 0, settings.confidence)
  const approval = quorum === 1 ? 'needs an approval' : `needs ${quorum} approvals`
  const by = settings.approvers === undefined ? '' : ` (${settings.approvers.join(', ')})`
  switch (mode) {
    case 'prohibited':
      return 'refused'
    case 'approval':
      return `always ${approval}${by}`
    case 'notice':
      return `done at confidence ${least} or more, with a notice in the inbox; otherwise ${approval}${by}`
    case 'autonomous':
      return `done at confidence ${least} or more; otherwise ${approval}${by}`
  }
}

export interface PreviewedReport {
  role: string
  problem?: string
  proposals: { what: string; verdict: 'done' | 'asked' | 'refused'; why: string }[]
  /** The number of flags for moderators. */
  flags: number
}

/** The policy decisions on a report of that role about this event. */
export function previewReport(team: Team, event: GitHubEvent, role: string, report: string): PreviewedReport {
  const settings = team.config.github!
  const conduct = separateConduct(parseResult(report), isConfidentialRole(role))
  const flags = conduct?.flags.length ?? 0
  const read = readReport(conduct?.rest ?? report, {
    delegation: `${event.id}/${role}`,
    task: 'task_0',
    agent: agentFor(team, role) ?? role,
    role,
    at: new Date(0).toISOString(),
    ...(event.subject === undefined ? {} : { number: event.subject.number }),
  })
  if (!read.ok) return { role, problem: read.error, proposals: [], flags }
  const { completion, proposals, refused } = read.value
  const isCommanded = commandsIn(team, event).some((command) => command.allowed && command.role === role)
  const steps = isCommanded ? Object.values(routesOf(settings)).flat() : (stepsFor(settings, event) ?? [])
  const isAsked = requiresApproval(team, role, steps)
  return {
    role,
    flags,
    proposals: [
      ...proposals.map((proposal) => {
        const decision = judgeProposal(settings, (text) => text, proposal, {
          requiresHitl: isAsked || proposal.needsApproval === true,
          isElsewhere: isElsewhere(proposal.action, event.subject?.number),
          wantsReview: completion.requiresHumanReview,
        })
        return {
          what: describeAction(proposal.action),
          verdict: VERDICTS[decision.verdict],
          why: decision.reason,
        }
      }),
      ...refused.map(({ type, why }) => ({ what: type, verdict: 'refused' as const, why })),
    ],
  }
}

const VERDICTS = { act: 'done', ask: 'asked', refuse: 'refused' } as const

/** Decodes a payload from a file; undefined if it is not an event. */
export function eventFromFile(name: string, payload: unknown): GitHubEvent | undefined {
  return readEvent('dry-run', name, payload)
}

/** Known values of X-GitHub-Event, without actions: `issues`, not `issues.opened`. */
export const EVENT_NAMES: readonly string[] = emitterEventNames.filter((name) => !name.includes('.'))
