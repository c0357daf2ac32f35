import { z } from 'zod'

/** An issue or a pull request. */
export interface Subject {
  readonly kind: 'issue' | 'pull_request'
  readonly number: number
  readonly title: string
  readonly body: string
  readonly labels: readonly string[]
  readonly state: string
  readonly author: string
  readonly association: string
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly comments: number
  readonly draft: boolean
}

/** A comment, a comment on a line of a pull request, or the text of a review. */
interface Comment {
  readonly id: number
  readonly kind: 'comment' | 'review_comment' | 'review'
  readonly body: string
  readonly author: string
  readonly association: string
}

/** A decoded webhook. All fields are optional, because GitHub may add events and leave out fields (C19). */
export interface GitHubEvent {
  /** X-GitHub-Delivery. */
  readonly id: string
  /** `issues.opened`, or only `push` where there is no action. */
  readonly type: string
  readonly repository?: string
  /** The topics of the repository; AI-PAUSE among them pauses the team. */
  readonly topics: readonly string[]
  readonly subject?: Subject
  readonly comment?: Comment
  readonly sender?: { readonly login: string; readonly isBot: boolean }
  /** By our clock. */
  readonly receivedAt?: number
}

const person = z.object({ login: z.string(), type: z.string().optional() }).nullish()
const text = z.string().nullish()

const Thread = z.object({
  number: z.int().positive(),
  title: text,
  body: text,
  labels: z
    .array(z.union([z.string(), z.object({ name: text })]))
    .nullish()
    .catch(null),
  state: text,
  user: person.catch(null),
  author_association: text,
  created_at: text,
  updated_at: text,
  comments: z.number().nullish().catch(null),
  draft: z.boolean().nullish().catch(null),
  pull_request: z.unknown().optional(),
})

const Words = z.object({
  id: z.int(),
  body: text,
  user: person.catch(null),
  author_association: text,
})

const Payload = z.object({
  action: text.catch(null),
  repository: z
    .object({ full_name: z.string(), topics: z.array(z.string()).nullish() })
    .nullish()
    .catch(null),
  issue: Thread.nullish().catch(null),
  pull_request: Thread.nullish().catch(null),
  comment: Words.nullish().catch(null),
  review: Words.nullish().catch(null),
  sender: person.catch(null),
})

/** GitHub's login for deleted accounts. */
const GHOST = 'ghost'

/** Undefined if the payload is not an object. */
export function readEvent(id: string, name: string, payload: unknown): GitHubEvent | undefined {
  const parsed = Payload.safeParse(payload)
  if (!parsed.success) return undefined
  const { action, repository, issue, pull_request, sender } = parsed.data
  const subject = readSubject(issue, pull_request)
  const comment = readComment(name, parsed.data)
  return {
    id,
    type: action ? `${name}.${action}` : name,
    ...(repository ? { repository: repository.full_name } : {}),
    topics: repository?.topics ?? [],
    ...(subject === undefined ? {} : { subject }),
    ...(comment === undefined ? {} : { comment }),
    ...(sender ? { sender: { login: sender.login, isBot: sender.type === 'Bot' } } : {}),
  }
}

/** Events about reviews have no `comment`, events about line comments have no `review`. */
function readComment(
  name: string,
  { comment, review }: Pick<z.output<typeof Payload>, 'comment' | 'review'>,
): Comment | undefined {
  const words = comment ?? review
  if (!words) return undefined
  return {
    id: words.id,
    kind: comment ? (name === 'pull_request_review_comment' ? 'review_comment' : 'comment') : 'review',
    body: words.body ?? '',
    author: words.user?.login ?? GHOST,
    association: words.author_association ?? 'NONE',
  }
}

/** Edits are left out, so that a command doesn't run twice. */
const NEW_COMMENTS: ReadonlySet<string> = new Set([
  'issue_comment.created',
  'pull_request_review_comment.created',
  'pull_request_review.submitted',
])

/** The comment of an event that may contain slash commands; a review may come without text. */
export function newComment({ type, comment }: GitHubEvent): Comment | undefined {
  return NEW_COMMENTS.has(type) && comment !== undefined && comment.body.trim() !== '' ? comment : undefined
}

type ThreadPayload = z.output<typeof Thread>

function readSubject(
  issue: ThreadPayload | null | undefined,
  pull: ThreadPayload | null | undefined,
): Subject | undefined {
  if (pull) return toSubject('pull_request', pull)
  // Comments on a pull request refer to it as an issue with a `pull_request` field.
  if (issue) return toSubject(issue.pull_request ? 'pull_request' : 'issue', issue)
  return undefined
}

function toSubject(kind: Subject['kind'], thread: ThreadPayload): Subject {
  const labels = (thread.labels ?? []).map((label) => (typeof label === 'string' ? label : label.name))
  return {
    kind,
    number: thread.number,
    title: thread.title ?? '',
    body: thread.body ?? '',
    labels: labels.filter((label) => typeof label === 'string'),
    state: thread.state ?? 'open',
    author: thread.user?.login ?? GHOST,
    association: thread.author_association ?? 'NONE',
    ...(thread.created_at ? { createdAt: thread.created_at } : {}),
    ...(thread.updated_at ? { updatedAt: thread.updated_at } : {}),
    comments: thread.comments ?? 0,
    draft: thread.draft ?? false,
  }
}

/** The API answers with the same objects as webhooks contain. */
export function readThread(kind: Subject['kind'], value: unknown): Subject | undefined {
  const parsed = Thread.safeParse(value)
  if (!parsed.success) return undefined
  return toSubject(parsed.data.pull_request ? 'pull_request' : kind, parsed.data)
}

const NEWCOMERS: ReadonlySet<string> = new Set(['FIRST_TIMER', 'FIRST_TIME_CONTRIBUTOR'])

/** The author of the comment or thread. On issues GitHub reports newcomers as NONE, so their history decides. */
export function authorOf({
  subject,
  comment,
}: GitHubEvent): { login: string; association: string } | undefined {
  const author = comment ?? subject
  return author === undefined ? undefined : { login: author.author, association: author.association }
}

export function isNewcomer(association: string, contributions: number | undefined): boolean {
  return NEWCOMERS.has(association) || (association === 'NONE' && contributions === 0)
}
