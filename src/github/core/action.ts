import { hash } from 'node:crypto'
import { z } from 'zod'
import { ACTION_KINDS, type ActionKind } from '../terms.ts'

/** Proposed or not, allowed or not: nobody gets these done (issue 6, §3). */
export const NEVER = ['merge', 'force_push', 'delete', 'settings', 'ban'] as const

const number = z
  .int()
  .min(1)
  .max(2 ** 31)
const line = z.string().min(1).max(256)
const body = z.string().min(1).max(60_000)
/** A branch that git takes and that is no trick with paths. */
const branch = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9](?!.*(?:\.\.|\/\/|\.lock$|[./]$))[A-Za-z0-9._/-]*$/, {
    error: 'is not a name for a branch',
  })

/** Enough for a page of documentation; what is larger is written by people. */
const MOST_FILES = 20
const MOST_FILE_BYTES = 60_000
const file = z.object({
  path: z
    .string()
    .max(200)
    .regex(/^(?!.*(?:^|\/)(?:\.{1,2}|\.git)?(?:\/|$))[^\p{C}\\:*?"<>|]+$/isu, {
      error: 'is no path of a file in the repository',
    })
    // What runs in the repository's name is no agent's to write.
    .refine((path) => !/^\.github\/(?:workflows|actions)\//i.test(path), {
      error: 'is a workflow, and agents change none',
    }),
  content: z.string(),
})
const files = z
  .array(file)
  .min(1)
  .max(MOST_FILES, { error: `are more than ${MOST_FILES}` })
  .refine((all) => all.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0) <= MOST_FILE_BYTES, {
    error: `are larger than ${MOST_FILE_BYTES} bytes together`,
  })
  .refine((all) => new Set(all.map(({ path }) => path)).size === all.length, { error: 'name a path twice' })
  .optional()

const ACTIONS = {
  label: z.object({ number, label: z.string().min(1).max(50) }),
  comment: z.object({ number, body }),
  /** An agent neither approves nor blocks: that is for people. */
  review: z.object({ number, body }),
  /** With files it holds one commit. */
  branch: z.object({ branch, base: branch.optional(), message: line.optional(), files }),
  /** With files the branch is made for it. */
  pull_request: z.object({ head: branch, base: branch.optional(), title: line, body, files }),
  close: z
    .object({ number, duplicate_of: number.optional(), reason: z.string().max(1000).optional() })
    .refine((close) => close.duplicate_of !== close.number, {
      error: 'is the very thread that would be closed',
      path: ['duplicate_of'],
    }),
} as const

export type ActionOf<Kind extends ActionKind> = { kind: Kind } & z.output<(typeof ACTIONS)[Kind]>
export type Action = { [Kind in ActionKind]: ActionOf<Kind> }[ActionKind]

export interface Proposal {
  readonly action: Action
  readonly confidence: number | undefined
  /** Of a proposal with a message of its own (S3.13): why, where that is not said for all of them. */
  readonly rationale?: string
  /** How long people have to decide. */
  readonly timeoutHours?: number
}

/** The protocol's words for actions, and words that models use for them. */
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

export type ReadAction = { ok: true; action: Action } | { ok: false; problem: string }

/** What an agent proposes, in the protocol's words. `number`: the thread it was asked about, where it names none. */
export function readAction(
  type: string,
  details: Readonly<Record<string, unknown>>,
  about: number | undefined,
): ReadAction {
  const kind = Object.hasOwn(KIND_OF, type) ? KIND_OF[type]! : undefined
  if (kind === undefined) {
    return {
      ok: false,
      problem: `"${type.slice(0, 60)}" is nothing that can be done; there is ${ACTION_KINDS.join(', ')}`,
    }
  }
  const said = details.number ?? details.issue_number ?? details.pr_number ?? about
  const words = details.body ?? details.comment ?? details.text
  return checkAction(kind, {
    ...details,
    ...(said === undefined ? {} : { number: said }),
    ...(words === undefined ? {} : { body: words }),
  })
}

/** Keeps what belongs to the kind and drops everything else. */
export function checkAction(kind: ActionKind, fields: Readonly<Record<string, unknown>>): ReadAction {
  const parsed = ACTIONS[kind].safeParse(fields)
  if (parsed.success) return { ok: true, action: { kind, ...parsed.data } as Action }
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  return { ok: false, problem: `${kind}: ${problems.join('; ')}` }
}

/**
 * The same proposal out of the same work has the same key, whoever says it again after whatever crash (C25); in the
 * order of its parts there is no meaning.
 */
export function actionKey(work: string, action: Action): string {
  const parts = Object.entries(action).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return hash('sha256', JSON.stringify([work, parts])).slice(0, 32)
}

/** The thread an action is on; none for a branch or a new pull request. */
export function numberOf(action: Action): number | undefined {
  return 'number' in action ? action.number : undefined
}

/** For people, the audit and the log: one line. */
export function describeAction(action: Action): string {
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

function withFiles(given: readonly { path: string }[] | undefined): string {
  if (given === undefined) return ''
  const names = given.slice(0, 5).map(({ path }) => path)
  return ` with ${names.join(', ')}${given.length > names.length ? ` and ${given.length - names.length} more` : ''}`
}
