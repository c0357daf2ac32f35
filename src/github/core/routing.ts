/** Which roles get an event, and the slash commands in its comment. */
import type { EventRoutes, RouteStep } from '../team-settings.ts'
import { authorOf, type GitHubEvent } from './event.ts'

const step = (to: string, ...when: string[]): RouteStep => ({ to, when, on: 'success' })

const ON_PULL_REQUEST = [step('lifecycle'), step('scribe', 'touches_docs')]

/** Routes in orc.yaml replace these by event, or add to them. */
const DEFAULT_ROUTES: EventRoutes = {
  'issues.opened': [step('triage'), step('concierge', 'first_timer')],
  'issues.reopened': [step('triage')],
  'pull_request.opened': ON_PULL_REQUEST,
  'pull_request.synchronize': ON_PULL_REQUEST,
  'pull_request.reopened': ON_PULL_REQUEST,
  'pull_request.ready_for_review': ON_PULL_REQUEST,
  'issue_comment.created': [step('community'), step('concierge', 'first_timer')],
  'pull_request_review_comment.created': [step('community')],
  // A review without text only groups line comments, which arrive as events of their own.
  'pull_request_review.submitted': [
    step('community', 'has_words'),
    step('concierge', 'has_words', 'first_timer'),
  ],
}

export function routesOf({ routes }: { readonly routes: EventRoutes }): EventRoutes {
  return { ...DEFAULT_ROUTES, ...routes }
}

/** The steps of orc.yaml or the defaults for this event; undefined if it isn't routed. */
export function stepsFor(
  settings: { readonly routes: EventRoutes },
  { type }: GitHubEvent,
): readonly RouteStep[] | undefined {
  const routes = routesOf(settings)
  return Object.hasOwn(routes, type) ? routes[type] : undefined
}

/** Facts that the service reads from GitHub; false if GitHub does not report them. */
export interface EventFacts {
  readonly firstTimer: boolean
  readonly touchesDocs: boolean
}

/** The steps whose conditions hold, each role once. A step doesn't wait for a step that was dropped. */
export function routeEvent(steps: readonly RouteStep[], event: GitHubEvent, facts: EventFacts): RouteStep[] {
  const taken = steps.filter((one) => one.when.every((condition) => holds(condition, event, facts)))
  const once = taken
    .filter((one, index) => taken.findIndex(({ to }) => to === one.to) === index)
    // The strictest step of a role decides whether people approve.
    .map((one) => {
      const isForPeople = taken.some(({ to, requiresHitl }) => to === one.to && requiresHitl === true)
      return isForPeople ? { ...one, requiresHitl: true } : one
    })
  const names = new Set(once.map(({ to }) => to))
  return once.map((one) => {
    if (one.after === undefined || names.has(one.after)) return one
    const { after: _, ...unbound } = one
    return unbound
  })
}

/** `first_timer`, `touches_docs`, `has_words`, `draft`, `bot`, `label:NAME`, `association:NAME`, `command:NAME`; a leading `!` negates it. */
export function holds(condition: string, event: GitHubEvent, facts: EventFacts): boolean {
  if (condition.startsWith('!')) return !holds(condition.slice(1), event, facts)
  const [name, ...rest] = condition.split(':')
  const value = rest.join(':')
  switch (name) {
    case 'first_timer':
      return facts.firstTimer
    case 'touches_docs':
      return facts.touchesDocs
    case 'has_words':
      return (event.comment?.body ?? event.subject?.body ?? '').trim() !== ''
    case 'draft':
      return event.subject?.draft ?? false
    case 'bot':
      return event.sender?.isBot ?? false
    case 'label':
      return event.subject?.labels.some((label) => label.toLowerCase() === value.toLowerCase()) ?? false
    case 'association':
      return authorOf(event)?.association === value.toUpperCase()
    case 'command':
      return readSlashCommands(event.comment?.body ?? '').some(({ name }) => name === value.toLowerCase())
    default:
      return false
  }
}

const DOCS = /(?:^|\/)docs?\/|\.(?:md|mdx|rst|adoc)$|^(?:README|CONTRIBUTING|CHANGELOG)/i

export function touchesDocs(files: readonly string[]): boolean {
  return files.some((file) => DOCS.test(file))
}

/** Why the team ignores an event; undefined if nothing in the event says so. */
export function whyIgnored(
  { type, repository, sender, comment }: GitHubEvent,
  repositories: readonly string[] | undefined,
): string | undefined {
  if (repository === undefined) return `${type} names no repository`
  const isListed = repositories?.some((one) => one.toLowerCase() === repository.toLowerCase()) ?? true
  if (!isListed) return `${repository} is not among github.repositories`
  return sender?.isBot && comment !== undefined ? 'a bot wrote the comment' : undefined
}

interface SlashDefinition {
  /** The association that the command requires. `people`: only people listed in orc.yaml. */
  readonly for: 'anyone' | 'people' | 'CONTRIBUTOR' | 'COLLABORATOR'
  /** Completes `| /agent NAME | … |`. */
  readonly help?: string
  /** The role that gets the command as a task; the service itself handles the others. */
  readonly role?: string
  /** Completed by the number of the thread. */
  readonly task?: string
}

export type SlashName = 'help' | 'summarize' | 'find-gfi' | 'draft-docs' | 'repo-stats' | 'approve' | 'reject'

export const SLASH_COMMANDS: Readonly<Record<SlashName, SlashDefinition>> = {
  help: { for: 'anyone' },
  summarize: {
    for: 'CONTRIBUTOR',
    help: 'a summary of this thread',
    role: 'triage',
    task: 'Summarize the thread for a new reader, as one comment, on',
  },
  'find-gfi': {
    for: 'anyone',
    help: 'issues for newcomers',
    role: 'concierge',
    task: 'Name up to five open issues that are good for a newcomer, as one comment, on',
  },
  'draft-docs': {
    for: 'COLLABORATOR',
    help: 'a draft of documentation for this',
    role: 'scribe',
    task: 'Draft documentation for the topic of this thread, as one comment, on',
  },
  'repo-stats': {
    for: 'CONTRIBUTOR',
    help: 'how this repository is doing',
    role: 'community',
    task: 'Describe how the repository is doing, as one comment, on',
  },
  approve: { for: 'people' },
  reject: { for: 'people' },
}

export interface SlashCommand {
  readonly name: SlashName
  readonly words: string
}

/** `name` is undefined for an unknown command. */
type ParsedSlash = SlashCommand | { readonly name: undefined; readonly text: string }

const LINE = /^\/agent(?:[ \t]+(\S+)(?:[ \t]+(.*))?)?$/i
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/
/** Further commands in one comment are ignored. */
const MAX_COMMANDS = 5

/** A command starts at the beginning of a line. Quotes, indented lines and code blocks don't count. */
export function readSlashCommands(body: string): ParsedSlash[] {
  const found: ParsedSlash[] = []
  let fence: string | undefined
  for (const line of body.split(/\r\n|\r|\n/)) {
    const mark = FENCE.exec(line)
    if (fence !== undefined) {
      if (mark !== null && mark[1]!.startsWith(fence) && mark[2]!.trim() === '') fence = undefined
      continue
    }
    if (mark) {
      fence = mark[1]!
      continue
    }
    const match = LINE.exec(line.trimEnd())
    if (match !== null && found.length < MAX_COMMANDS)
      found.push(toCommand(match[1] ?? 'help', match[2] ?? ''))
  }
  return found
}

function toCommand(text: string, words: string): ParsedSlash {
  const name = text.toLowerCase()
  return Object.hasOwn(SLASH_COMMANDS, name)
    ? { name: name as SlashName, words: words.trim() }
    : { name: undefined, text: text.slice(0, 40) }
}

/** Author associations in ascending order of trust; unknown ones rank lowest (C19). */
const RANKS: readonly string[] = ['CONTRIBUTOR', 'COLLABORATOR', 'MEMBER', 'OWNER']

interface SlashAuthor {
  readonly association: string
  /** The person of orc.yaml with this login. */
  readonly person: string | undefined
}

export function mayUse(name: SlashName, { association, person }: SlashAuthor): boolean {
  const needed = SLASH_COMMANDS[name].for
  if (needed === 'anyone') return true
  if (needed === 'people') return person !== undefined
  return person !== undefined || RANKS.indexOf(association) >= RANKS.indexOf(needed)
}

/** `req_7` and the comment after it. */
export function readVerdict(text: string): { request: string; comment: string } | undefined {
  const match = /^(req_[1-9]\d{0,15})(?:\s+([\s\S]*))?$/i.exec(text)
  return match === null ? undefined : { request: match[1]!.toLowerCase(), comment: match[2]?.trim() ?? '' }
}

export function helpText(): string {
  return [
    '| command | |',
    '|---|---|',
    ...Object.entries(SLASH_COMMANDS).flatMap(([name, { help }]) =>
      help === undefined ? [] : [`| \`/agent ${name}\` | ${help} |`],
    ),
    '| `/agent approve ID`, `/agent reject ID` | decide on a proposal, for its approvers |',
  ].join('\n')
}
