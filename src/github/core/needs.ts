import { ACTION_KINDS, type ActionKind, type ActionPolicy, type EventRoutes } from '../terms.ts'
import { DEFAULT_POLICIES } from './policy.ts'
import { DEFAULT_ROUTES } from './routing.ts'

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
