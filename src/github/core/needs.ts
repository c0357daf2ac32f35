import { ACTION_KINDS, type ActionKind, type ActionPolicy, type Routes } from '../terms.ts'
import { DEFAULT_POLICIES } from './policy.ts'
import { DEFAULT_ROUTES } from './routing.ts'

export interface NeededPermission {
  /** As GitHub names it in the settings of an App or a fine-grained token. */
  readonly name: string
  readonly level: 'read' | 'write'
  readonly why: string
}

const LEVELS = ['none', 'read', 'write', 'admin']

export function suffices(granted: string | undefined, needed: 'read' | 'write'): boolean {
  return LEVELS.indexOf(granted ?? 'none') >= LEVELS.indexOf(needed)
}

/** By what may be done at all: nobody should grant more than that. */
export function neededPermissions(
  actions: Readonly<Partial<Record<ActionKind, ActionPolicy>>>,
): NeededPermission[] {
  const can = (kind: ActionKind) => (actions[kind] ?? DEFAULT_POLICIES[kind]).mode !== 'prohibited'
  const kinds = ACTION_KINDS.filter(can)
  const onIssues = kinds.filter((kind) => ['label', 'comment', 'close'].includes(kind))
  const onPulls = kinds.filter((kind) => ['label', 'comment', 'review', 'pull_request'].includes(kind))
  const onContents = kinds.filter((kind) => ['branch', 'pull_request'].includes(kind))
  const doing = (list: readonly string[], else_: string) =>
    list.length === 0 ? else_ : list.join(', ').replaceAll('_', ' ')
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

/** Names of events as the settings of a webhook have them. */
export function neededEvents(routes: Routes): string[] {
  const all = { ...DEFAULT_ROUTES, ...routes }
  const routed = Object.entries(all)
    .filter(([, steps]) => steps.length > 0)
    .map(([event]) => event.split('.')[0]!)
  // Commands and verdicts come in what people write, whoever works on it.
  const names = new Set([...routed, 'issue_comment', 'pull_request_review', 'pull_request_review_comment'])
  return [...names].filter((name) => name !== 'periodic_trigger').toSorted()
}

/** Of classic tokens: `repo` holds all of it, `public_repo` where the repository is public. */
export function scopeSuffices(scopes: readonly string[], isPrivate: boolean): boolean {
  return scopes.includes('repo') || (!isPrivate && scopes.includes('public_repo'))
}
