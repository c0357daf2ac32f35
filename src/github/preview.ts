import type { Team } from '../commands/team.ts'
import type { GithubConfig } from '../config/config.ts'
import { describeAction, numberOf } from './core/action.ts'
import { partConduct } from './core/conduct.ts'
import { authorOf, type GitHubEvent, isNewcomer, saidIn } from './core/event.ts'
import { isPaused } from './core/pause.ts'
import { DEFAULT_POLICIES, judge } from './core/policy.ts'
import { parseResult, readReport } from './core/report.ts'
import { isConfidentialRole } from './core/roles.ts'
import { COMMAND_ROLES, DEFAULT_ROUTES, holds } from './core/routing.ts'
import { maySay, readSlashCommands } from './core/slash.ts'
import { whyNotOurs } from './team/ours.ts'
import { agentFor, isForPeople, personOf } from './team/settings.ts'
import { ACTION_KINDS, type ActionPolicy, type RouteStep } from './terms.ts'

/** What an event would set in motion, found out without asking anybody: no model, no GitHub, no service. */
export interface Preview {
  event: {
    type: string
    repository?: string
    number?: number
    title?: string
    author?: string
    association?: string
  }
  /** Why nothing comes of it. */
  ignored?: string
  paused: boolean
  commands: { command: string; allowed: boolean; does: string }[]
  steps: PreviewStep[]
  /** What would become of a proposal of each kind. */
  policies: { kind: string; mode: string; text: string }[]
}

export interface PreviewStep {
  role: string
  agent?: string
  outcome: 'gets it' | 'perhaps' | 'left out'
  why: string
  after?: string
}

/** Facts that only GitHub knows. */
const ASKED: ReadonlySet<string> = new Set(['first_timer', 'touches_docs'])

export function previewEvent(team: Team, event: GitHubEvent): Preview {
  const settings = team.config.github!
  const { subject } = event
  const author = authorOf(event)
  const ignored = whyNotOurs(event, settings.repositories)
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
  const routes = { ...DEFAULT_ROUTES, ...settings.routes }
  const written = Object.hasOwn(routes, event.type) ? routes[event.type]! : []
  const asked = commands.flatMap(({ allowed, role }) => (allowed && role !== undefined ? [role] : []))
  const steps = [
    ...[...new Set(asked)].map((role) => stepOf(team, settings, { to: role, when: [], on: 'any' }, event)),
    ...written.filter(({ to }) => !asked.includes(to)).map((step) => stepOf(team, settings, step, event)),
  ]
  const stopped = steps.map((step) => ({
    ...step,
    outcome: 'left out' as const,
    why: 'the team is paused there',
  }))
  return {
    event: about,
    paused,
    commands: commands.map(({ role: _, ...shown }) => shown),
    steps: paused ? stopped : steps,
    policies,
  }
}

function stepOf(team: Team, settings: GithubConfig, step: RouteStep, event: GitHubEvent): PreviewStep {
  const agent = agentFor(team, settings, step.to)
  const found = step.when.map((condition) => ({ condition, is: isSo(condition, event) }))
  const not = found.find(({ is }) => is === false)
  const open = found.filter(({ is }) => is === undefined).map(({ condition }) => condition)
  const common = {
    role: step.to,
    ...(agent === undefined ? {} : { agent }),
    ...(step.after === undefined ? {} : { after: step.after }),
  }
  if (agent === undefined) return { ...common, outcome: 'left out', why: 'nobody fills this role' }
  if (not !== undefined) return { ...common, outcome: 'left out', why: `not so: ${not.condition}` }
  if (open.length > 0)
    return { ...common, outcome: 'perhaps', why: `if ${open.join(' and ')}, which GitHub is asked` }
  const held = found.map(({ condition }) => condition)
  return { ...common, outcome: 'gets it', why: held.length === 0 ? 'always' : held.join(' and ') }
}

/** Undefined for what is not in the event itself. */
function isSo(condition: string, event: GitHubEvent): boolean | undefined {
  const name = condition.replace(/^!/, '')
  if (!ASKED.has(name)) return holds(condition, event, { firstTimer: false, touchesDocs: false })
  const { association } = authorOf(event) ?? {}
  const isTurned = condition.startsWith('!')
  if (name === 'first_timer' && association !== undefined && association !== 'NONE')
    return isNewcomer(association, undefined) !== isTurned
  if (name === 'touches_docs' && event.subject?.kind !== 'pull_request') return isTurned
  return undefined
}

function commandsIn(team: Team, event: GitHubEvent) {
  const comment = saidIn(event)
  if (comment === undefined) return []
  const author = { association: comment.association, person: personOf(team, comment.author)?.name }
  return readSlashCommands(comment.body).map((said) => {
    if (said.name === undefined)
      return {
        command: `/agent ${said.said}`,
        allowed: false,
        role: undefined,
        does: 'nothing: there is no such command',
      }
    const command = `/agent ${said.name}${said.words === '' ? '' : ` ${said.words}`}`
    const role = COMMAND_ROLES[said.name]
    const allowed = maySay(said.name, author)
    const does =
      role === undefined
        ? said.name === 'help'
          ? 'is answered with the list of commands'
          : `is ${author.person ?? comment.author}'s verdict, when it comes from GitHub itself`
        : `goes to ${role}`
    return {
      command,
      allowed,
      role,
      does: allowed ? does : `nothing: it is not for ${comment.author} (${comment.association})`,
    }
  })
}

function policyText({ mode, confidence, quorum }: ActionPolicy, settings: GithubConfig): string {
  const least = Math.max(confidence ?? 0, settings.confidence)
  const people = quorum === 1 ? 'a person is' : `${quorum} people are`
  const by = settings.approvers === undefined ? '' : ` (${settings.approvers.join(', ')})`
  switch (mode) {
    case 'prohibited':
      return 'refused'
    case 'approval':
      return `${people} asked each time${by}`
    case 'notice':
      return `done at confidence ${least} or more, with a notice in the inbox; below, ${people} asked${by}`
    case 'autonomous':
      return `done at confidence ${least} or more; below, ${people} asked${by}`
  }
}

export interface PreviewedReport {
  role: string
  problem?: string
  proposals: { what: string; verdict: 'done' | 'asked' | 'refused'; why: string }[]
  /** They would go to moderators, and nowhere else. */
  flags: number
}

/** What would become of a report of that role about this event. */
export function previewReport(team: Team, event: GitHubEvent, role: string, said: string): PreviewedReport {
  const settings = team.config.github!
  const parted = partConduct(parseResult(said), isConfidentialRole(role))
  const flags = parted?.flags.length ?? 0
  const read = readReport(parted?.rest ?? said, {
    delegation: `${event.id}/${role}`,
    task: 'task_0',
    agent: agentFor(team, settings, role) ?? role,
    role,
    at: new Date(0).toISOString(),
    ...(event.subject === undefined ? {} : { number: event.subject.number }),
  })
  if (!read.ok) return { role, problem: read.problem, proposals: [], flags }
  const { completion, proposals, byApproval, refused } = read.report
  const routes = { ...DEFAULT_ROUTES, ...settings.routes }
  const isCommanded = commandsIn(team, event).some((said) => said.allowed && said.role === role)
  const written = Object.hasOwn(routes, event.type) ? routes[event.type]! : []
  const isAsked = isForPeople(team, settings, role, isCommanded ? Object.values(routes).flat() : written)
  const all = [
    ...proposals.map((proposal) => ({ proposal, requiresHitl: isAsked })),
    ...byApproval.map((proposal) => ({ proposal, requiresHitl: true })),
  ]
  return {
    role,
    flags,
    proposals: [
      ...all.map(({ proposal, requiresHitl }) => {
        const policy = settings.actions[proposal.action.kind] ?? DEFAULT_POLICIES[proposal.action.kind]
        const judged = judge(proposal, policy, {
          threshold: settings.confidence,
          requiresHitl,
          isElsewhere:
            event.subject !== undefined &&
            (numberOf(proposal.action) ?? event.subject.number) !== event.subject.number,
          wantsReview: completion.requiresHumanReview,
        })
        return {
          what: describeAction(proposal.action),
          verdict: VERDICTS[judged.verdict],
          why: judged.reason,
        }
      }),
      ...refused.map(({ type, why }) => ({ what: type, verdict: 'refused' as const, why })),
    ],
  }
}

const VERDICTS = { act: 'done', ask: 'asked', refuse: 'refused' } as const
