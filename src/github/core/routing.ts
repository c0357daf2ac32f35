import type { RouteStep, Routes } from '../terms.ts'
import { authorOf, type GitHubEvent } from './event.ts'
import { readSlashCommands, type SlashName } from './slash.ts'

const step = (to: string, ...when: string[]): RouteStep => ({ to, when, on: 'success' })

const ON_PULL_REQUEST = [step('lifecycle'), step('scribe', 'touches_docs')]

/** As the documents have it; orc.yaml replaces or adds by event. */
export const DEFAULT_ROUTES: Routes = {
  'issues.opened': [step('triage'), step('concierge', 'first_timer')],
  'issues.reopened': [step('triage')],
  'pull_request.opened': ON_PULL_REQUEST,
  'pull_request.synchronize': ON_PULL_REQUEST,
  'pull_request.reopened': ON_PULL_REQUEST,
  'pull_request.ready_for_review': ON_PULL_REQUEST,
  'issue_comment.created': [step('community'), step('concierge', 'first_timer')],
  'pull_request_review_comment.created': [step('community')],
  // A review without words only holds comments, each of which comes by itself; a newcomer is welcomed once for all of them.
  'pull_request_review.submitted': [
    step('community', 'has_words'),
    step('concierge', 'has_words', 'first_timer'),
  ],
}

export const COMMAND_ROLES: Readonly<Partial<Record<SlashName, string>>> = {
  summarize: 'triage',
  'find-gfi': 'concierge',
  'draft-docs': 'scribe',
  'repo-stats': 'community',
}

/** What conditions are asked of; what is not known is not so. */
export interface Facts {
  readonly firstTimer: boolean
  readonly touchesDocs: boolean
}

/** Steps whose conditions hold, in their order, each agent once. Whoever a dropped step would have waited for is not waited for. */
export function routeEvent(routes: Routes, event: GitHubEvent, facts: Facts): RouteStep[] {
  const steps = Object.hasOwn(routes, event.type) ? routes[event.type]! : []
  const taken = steps.filter((one) => one.when.every((condition) => holds(condition, event, facts)))
  const once = taken
    .filter((one, index) => taken.findIndex(({ to }) => to === one.to) === index)
    // Of steps of one role, the strictest says whether people decide.
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

/** `first_timer`, `touches_docs`, `has_words`, `draft`, `bot`, `label:NAME`, `association:NAME`, `command:NAME`; `!` in front turns it round. */
export function holds(condition: string, event: GitHubEvent, facts: Facts): boolean {
  if (condition.startsWith('!')) return !holds(condition.slice(1), event, facts)
  const [name, value] = splitOnce(condition)
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
      return readSlashCommands(event.comment?.body ?? '').some((said) => said.name === value.toLowerCase())
    default:
      return false
  }
}

function splitOnce(condition: string): [name: string, value: string] {
  const at = condition.indexOf(':')
  return at < 0 ? [condition, ''] : [condition.slice(0, at), condition.slice(at + 1)]
}

const DOCS = /(?:^|\/)docs?\/|\.(?:md|mdx|rst|adoc)$|^(?:README|CONTRIBUTING|CHANGELOG)/i

export function touchesDocs(files: readonly string[]): boolean {
  return files.some((file) => DOCS.test(file))
}
