import { beginning } from '../base/excerpt.ts'
import { authorOf, type GitHubEvent, isNewcomer, type Subject } from './core/event.ts'
import { isPaused } from './core/policy.ts'
import type { TaskDelegation } from './core/protocol.ts'
import { type EventFacts, readSlashCommands, type SlashName, touchesDocs } from './core/routing.ts'
import type { GithubDependencies } from './dependencies.ts'
import { type GitHubResult, isRecoverable } from './port.ts'
import { mentionsIn, numbersIn, type RelatedThread, searchDocuments, searchWords } from './search-index.ts'

/** Everything the service reads from GitHub and its own index for the agents that work on an event (S3.6, S3.7, S3.18). */
export interface EventContext extends EventFacts {
  readonly user: TaskDelegation['context']['user']
  readonly additional: NonNullable<TaskDelegation['context']['additionalContext']>
  readonly repository: NonNullable<TaskDelegation['repositoryContext']>
}

/** GitHub is rate-limited or unavailable, so the event waits. */
export class TryLater extends Error {
  readonly waitMs: number | undefined
  constructor(message: string, waitMs: number | undefined) {
    super(message)
    this.waitMs = waitMs
  }
}

const DAY_MS = 24 * 3600_000
const GOVERNANCE =
  /^(?:README|CONTRIBUTING|CODE_OF_CONDUCT|GOVERNANCE|SECURITY|SUPPORT|MAINTAINERS|CODEOWNERS)(?:\.\w+)?$/i
/** The most informative files first. Files beyond READ are only listed by name. */
const GOVERNANCE_ORDER = ['CONTRIBUTING', 'CODE_OF_CONDUCT', 'GOVERNANCE', 'SECURITY', 'README']
const READ = { governance: 4, workflows: 3 }
const DOCS_CACHE_MS = 10 * 60_000
const MAX_RELATED = 8
const MAX_STALE = 30
const MAX_COMMENTS = 30
const MAX_ISSUES = 30
/** The limit of the protocol. */
const MAX_EXCERPTS = 50
const EXCERPT = {
  governance: 1500,
  workflow: 500,
  related: 500,
  opening: 2000,
  comment: 600,
  issue: 200,
}
const RECENT_DAYS = 30
/** The labels that GitHub creates in new repositories. */
const NEWCOMER_LABELS = ['good first issue', 'help wanted']

type ContextExcerpt = NonNullable<
  NonNullable<TaskDelegation['context']['additionalContext']>['excerpts']
>[number]

interface RepositoryDocs {
  readonly found: EventContext['repository']
  readonly excerpts: readonly ContextExcerpt[]
}

export function createContextReader({ store, github, clock, redact }: GithubDependencies) {
  const docsCache = new Map<string, { at: number; docs: RepositoryDocs }>()
  // Redacted before the cut, which could otherwise split a secret and leave half of it.
  const cut = (text: string, length: number) => shortened(redact(text), length)

  async function docsOf(repository: string): Promise<RepositoryDocs> {
    const cached = docsCache.get(repository)
    if (cached !== undefined && clock.now() - cached.at < DOCS_CACHE_MS) return cached.docs
    const [root, hidden, workflows] = await Promise.all(
      ['', '.github', '.github/workflows'].map(
        async (folder) => valueOrUnknown(await github.filesAt(repository, folder)) ?? [],
      ),
    )
    const isGovernance = (path: string) => GOVERNANCE.test(path.split('/').at(-1)!)
    const governanceDocs = [...root!, ...hidden!].filter(isGovernance)
    const ciWorkflows = workflows!.filter((path) => /\.ya?ml$/.test(path))
    const excerpts = await Promise.all([
      ...governanceDocs
        .toSorted((one, other) => governanceRank(one) - governanceRank(other))
        .slice(0, READ.governance)
        .map((path) => readFile(repository, path, EXCERPT.governance)),
      ...ciWorkflows.slice(0, READ.workflows).map((path) => readFile(repository, path, EXCERPT.workflow)),
    ])
    const docs = { found: { ragAvailable: true, governanceDocs, ciWorkflows }, excerpts: excerpts.flat() }
    docsCache.set(repository, { at: clock.now(), docs })
    return docs
  }

  async function readFile(repository: string, path: string, length: number): Promise<ContextExcerpt[]> {
    const text = valueOrUnknown(await github.textOf(repository, path))
    return text === undefined ? [] : [{ source: path, text: cut(text, length) }]
  }

  /** Threads without activity, for a scheduled trigger with `stale_days`. */
  async function staleThreads(
    repository: string,
    days: number,
  ): Promise<{ numbers: number[]; excerpts: ContextExcerpt[] }> {
    const since = clock.now() - days * DAY_MS
    const found = (valueOrUnknown(await github.untouchedSince(repository, since)) ?? [])
      .filter(({ labels }) => !isPaused(labels, []))
      .slice(0, MAX_STALE)
    return {
      numbers: found.map(({ number }) => number),
      excerpts: found.map(({ number, title, labels, updatedAt, comments }) => ({
        source: `#${number}`,
        text: `${title}\nlabels: ${labels.join(', ') || 'none'}; ${comments} comments; last activity ${updatedAt ?? 'long ago'}`,
      })),
    }
  }

  async function relatedTo(event: GitHubEvent): Promise<RelatedThread[]> {
    const { subject, repository } = event
    if (subject === undefined || repository === undefined) return []
    const words = searchWords(`${subject.title} ${subject.body.slice(0, 4000)}`)
    return await searchDocuments(store, { repository, words, except: subject.number, limit: MAX_RELATED })
  }

  async function comments(repository: string, number: number): Promise<ContextExcerpt[]> {
    const found = valueOrUnknown(await github.commentsOf(repository, number)) ?? []
    return found.slice(-MAX_COMMENTS).map(({ author, body, at }) => ({
      source: `comment by ${author} at ${at}`,
      text: cut(body, EXCERPT.comment),
    }))
  }

  /** Issues with a label for newcomers, or all open issues if no issue has one. */
  async function firstIssues(repository: string): Promise<ContextExcerpt[]> {
    const labelled: Subject[] = []
    for (const label of NEWCOMER_LABELS)
      labelled.push(...(valueOrUnknown(await github.openIssues(repository, label)) ?? []))
    const all = labelled.length > 0 ? labelled : (valueOrUnknown(await github.openIssues(repository)) ?? [])
    const unique = [...new Map(all.map((one) => [one.number, one])).values()]
    return unique.slice(0, MAX_ISSUES).map(({ number, title, labels, comments: count }) => ({
      source: `#${number} (issue, open)`,
      text: `${cut(title, EXCERPT.issue)}\nlabels: ${labels.join(', ') || 'none'}; ${count} comments`,
    }))
  }

  async function figures(repository: string): Promise<ContextExcerpt[]> {
    const found = valueOrUnknown(await github.figuresOf(repository, clock.now() - RECENT_DAYS * DAY_MS))
    if (found === undefined) return []
    const lines = Object.entries(found).map(([name, value]) => `${name.replaceAll('_', ' ')}: ${value}`)
    return [{ source: `figures, recent is the last ${RECENT_DAYS} days`, text: lines.join('\n') }]
  }

  const COMMAND_EXCERPTS: Readonly<
    Partial<Record<SlashName, (repository: string, number: number) => Promise<ContextExcerpt[]>>>
  > = {
    summarize: comments,
    'draft-docs': comments,
    'find-gfi': firstIssues,
    'repo-stats': figures,
  }

  /** The thread that a comment belongs to, and the data that its slash commands need. */
  async function threadExcerpts(
    event: GitHubEvent,
    commands: readonly SlashName[],
  ): Promise<ContextExcerpt[]> {
    const { repository, subject, comment } = event
    if (comment === undefined || repository === undefined || subject === undefined) return []
    const opening = {
      source: `#${subject.number}, as ${subject.author} opened it`,
      text: cut(`${subject.title}\n${subject.body}`, EXCERPT.opening),
    }
    const readers = new Set(commands.flatMap((name) => COMMAND_EXCERPTS[name] ?? []))
    const more = await Promise.all([...readers].map((read) => read(repository, subject.number)))
    return [opening, ...more.flat()]
  }

  return async (
    event: GitHubEvent,
    commands: readonly SlashName[],
    staleDays?: number,
  ): Promise<EventContext> => {
    const { subject, repository, comment } = event
    const author = authorOf(event)
    const number = subject?.number ?? 0
    const isPull = subject?.kind === 'pull_request'
    const has = repository !== undefined
    const [files, contributions, created, docs, related, stale, thread] = await Promise.all([
      has && isPull ? github.filesOf(repository, number).then(valueOrUnknown) : [],
      has && author !== undefined
        ? github.contributionsOf(repository, author.login, number).then(valueOrUnknown)
        : undefined,
      has && author !== undefined
        ? github.accountCreated(author.login, repository).then(valueOrUnknown).then(isoTime)
        : undefined,
      has ? docsOf(repository) : { found: { ragAvailable: false }, excerpts: [] },
      relatedTo(event),
      has && staleDays !== undefined ? staleThreads(repository, staleDays) : { numbers: [], excerpts: [] },
      threadExcerpts(event, commands),
    ])
    const firstTimer = author !== undefined && isNewcomer(author.association, contributions)
    const text = comment?.body ?? `${subject?.title ?? ''}\n${subject?.body ?? ''}`
    const relatedNumbers = (kind: string) =>
      related.filter((one) => one.kind === kind).map((one) => one.number)
    const referred = numbersIn(text).filter((one) => one !== number)
    return {
      firstTimer,
      touchesDocs: touchesDocs(files ?? []),
      user: author && {
        login: author.login,
        authorAssociation: author.association,
        isFirstTimeContributor: firstTimer,
        contributionCount: contributions,
        accountCreated: created,
      },
      additional: {
        relatedIssues: [...new Set([...relatedNumbers('issue'), ...referred, ...stale.numbers])].slice(
          0,
          100,
        ),
        relatedPrs: relatedNumbers('pull_request'),
        mentions: mentionsIn(text),
        commands: readSlashCommands(comment?.body ?? '').flatMap(({ name }) =>
          name === undefined ? [] : [`/agent ${name}`],
        ),
        excerpts: [...thread, ...related.map(relatedExcerpt), ...stale.excerpts, ...docs.excerpts].slice(
          0,
          MAX_EXCERPTS,
        ),
      },
      repository: docs.found,
    }
  }
}

/** The body comes from the index, which stores redacted text. */
function relatedExcerpt({ kind, number, title, state, body }: RelatedThread): ContextExcerpt {
  const what = kind === 'issue' ? 'issue' : 'pull request'
  return { source: `#${number} (${what}, ${state})`, text: shortened(`${title}\n${body}`, EXCERPT.related) }
}

function shortened(text: string, length: number): string {
  const whole = text.toWellFormed()
  return whole.length <= length ? whole : `${beginning(whole, length)}…`
}

function governanceRank(path: string): number {
  const name = path.split('/').at(-1)!.toUpperCase()
  const at = GOVERNANCE_ORDER.findIndex((one) => name.startsWith(one))
  return at < 0 ? GOVERNANCE_ORDER.length : at
}

/** The time format of the protocol (S3.17); undefined if the text is not a time. */
export function isoTime(text: string | undefined): string | undefined {
  const at = Date.parse(text ?? '')
  return Number.isNaN(at) ? undefined : new Date(at).toISOString()
}

/** Undefined when GitHub refuses to answer. Throws TryLater when the same request may succeed later. */
function valueOrUnknown<Value>(answer: GitHubResult<Value>): Value | undefined {
  if (answer.ok) return answer.value
  if (isRecoverable(answer.error)) throw new TryLater(answer.error.message, answer.error.retryAfterMs)
  return undefined
}
