import { hash } from 'node:crypto'
import { z } from 'zod'
import type { Result } from '../../base/result.ts'
import { ACTION_KINDS, type ActionKind } from '../team-settings.ts'

const number = z
  .int()
  .min(1)
  .max(2 ** 31)
const line = z.string().min(1).max(256)
const body = z.string().min(1).max(60_000)
/** A valid branch name that cannot be misread as a path. */
const branch = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9](?!.*(?:\.\.|\/\/|\.lock$|[./]$))[A-Za-z0-9._/-]*$/, {
    error: 'is not a valid branch name',
  })

/** Enough for a page of documentation; larger changes are for people. */
const MAX_FILES = 20
const MAX_FILE_BYTES = 60_000
const file = z.object({
  path: z
    .string()
    .max(200)
    .regex(/^(?!.*(?:^|\/)(?:\.{1,2}|\.git)?(?:\/|$))[^\p{C}\\:*?"<>|]+$/isu, {
      error: 'is not a valid path in the repository',
    })
    // Workflows run with the rights of the repository.
    .refine((path) => !/^\.github\/(?:workflows|actions)\//i.test(path), {
      error: 'is a workflow, which agents must not change',
    }),
  content: z.string(),
})
const files = z
  .array(file)
  .min(1)
  .max(MAX_FILES, { error: `must be at most ${MAX_FILES} files` })
  .refine((all) => all.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0) <= MAX_FILE_BYTES, {
    error: `must be at most ${MAX_FILE_BYTES} bytes in total`,
  })
  .refine((all) => new Set(all.map(({ path }) => path)).size === all.length, {
    error: 'contain a path twice',
  })
  .optional()

const ACTIONS = {
  label: z.object({ number, label: z.string().min(1).max(50) }),
  comment: z.object({ number, body }),
  /** Always a plain comment: only people approve or block. */
  review: z.object({ number, body }),
  /** With files, the branch gets one commit. */
  branch: z.object({ branch, base: branch.optional(), message: line.optional(), files }),
  /** With files, the branch is created too. */
  pull_request: z.object({ head: branch, base: branch.optional(), title: line, body, files }),
  close: z
    .object({ number, duplicate_of: number.optional(), reason: z.string().max(1000).optional() })
    .refine((close) => close.duplicate_of !== close.number, {
      error: 'is the thread that would be closed',
      path: ['duplicate_of'],
    }),
} as const

type ActionOf<Kind extends ActionKind> = { kind: Kind } & z.output<(typeof ACTIONS)[Kind]>
export type RepositoryAction = { [Kind in ActionKind]: ActionOf<Kind> }[ActionKind]

export interface ActionProposal {
  readonly action: RepositoryAction
  readonly confidence: number | undefined
  /** The agent requests approval. */
  readonly needsApproval?: boolean
  /** From an approval request (S3.13); replaces the rationale of the whole report. */
  readonly rationale?: string
  /** After this time an undecided proposal is dropped. */
  readonly timeoutHours?: number
}

/** The action types of the protocol, and synonyms that models use. */
const KIND_OF: Readonly<Record<string, ActionKind>> = {
  label_applied: 'label',
  label: 'label',
  add_label: 'label',
  comment_posted: 'comment',
  comment: 'comment',
  review_posted: 'review',
  review: 'review',
  branch_created: 'branch',
  branch: 'branch',
  pr_created: 'pull_request',
  pull_request: 'pull_request',
  close_issue: 'close',
  issue_closed: 'close',
  close: 'close',
}

/** Reads a proposed action. `about`: the thread of the task, used if the proposal names no thread. */
export function readAction(
  type: string,
  details: Readonly<Record<string, unknown>>,
  about: number | undefined,
): Result<RepositoryAction, string> {
  const kind = Object.hasOwn(KIND_OF, type) ? KIND_OF[type]! : undefined
  if (kind === undefined) {
    return {
      ok: false,
      error: `unknown action "${type.slice(0, 60)}"; known actions: ${ACTION_KINDS.join(', ')}`,
    }
  }
  const thread = details.number ?? details.issue_number ?? details.pr_number ?? about
  const words = details.body ?? details.comment ?? details.text
  return checkAction(kind, {
    ...details,
    ...(thread === undefined ? {} : { number: thread }),
    ...(words === undefined ? {} : { body: words }),
  })
}

/** Validates the fields of the kind and drops all others. */
export function checkAction(
  kind: ActionKind,
  fields: Readonly<Record<string, unknown>>,
): Result<RepositoryAction, string> {
  const parsed = ACTIONS[kind].safeParse(fields)
  if (parsed.success) return { ok: true, value: { kind, ...parsed.data } as RepositoryAction }
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  return { ok: false, error: `${kind}: ${problems.join('; ')}` }
}

/** The same proposal of the same work always has the same key, so that it is performed once (C25). Field order is ignored. */
export function actionKey(work: string, action: RepositoryAction): string {
  const parts = Object.entries(action).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return hash('sha256', JSON.stringify([work, parts])).slice(0, 32)
}

/** The thread of an action; undefined for a branch or a new pull request. */
export function numberOf(action: RepositoryAction): number | undefined {
  return 'number' in action ? action.number : undefined
}

/** A single line for people, the audit and the log. */
export function describeAction(action: RepositoryAction): string {
  switch (action.kind) {
    case 'label':
      return `apply the label '${action.label}' to #${action.number}`
    case 'comment':
      return `comment on #${action.number}`
    case 'review':
      return `post a review on #${action.number}`
    case 'branch':
      return `create the branch ${action.branch}${withFiles(action.files)}`
    case 'pull_request':
      return `open a pull request from ${action.head}${withFiles(action.files)}: ${action.title}`
    case 'close':
      return `close #${action.number}${action.duplicate_of === undefined ? '' : ` as a duplicate of #${action.duplicate_of}`}`
  }
}

function withFiles(files: readonly { path: string }[] | undefined): string {
  if (files === undefined) return ''
  const names = files.slice(0, 5).map(({ path }) => path)
  return ` with ${names.join(', ')}${files.length > names.length ? ` and ${files.length - names.length} more` : ''}`
}
