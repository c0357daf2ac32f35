import { authorOf, type GitHubEvent, isNewcomer } from '../core/event.ts'
import { type Answer, isRecoverable } from '../core/failure.ts'
import { isPaused } from '../core/pause.ts'
import { type Facts, touchesDocs } from '../core/routing.ts'
import { readSlashCommands, type SlashName } from '../core/slash.ts'
import { mentionsIn, numbersIn, searchWords } from '../core/words.ts'
import { type Related, searchDocuments } from '../store/documents.ts'
import type { TaskDelegation } from '../wire/codec.ts'
import { createAskedFor } from './asked-for.ts'
import { type Excerpt, shortened } from './excerpt.ts'
import type { GithubParts } from './settings.ts'

/** What the service found out for whoever works on an event (S3.6, S3.7, S3.18). */
export interface Gathered extends Facts {
  readonly user: TaskDelegation['context']['user']
  readonly additional: NonNullable<TaskDelegation['context']['additionalContext']>
  readonly repository: NonNullable<TaskDelegation['repositoryContext']>
}

/** GitHub asks to be left alone, or is away: it is worth a wait. */
export class TryLater extends Error {
  readonly waitMs: number | undefined
  constructor(message: string, waitMs: number | undefined) {
    super(message)
    this.waitMs = waitMs
  }
}

const GOVERNANCE =
  /^(?:README|CONTRIBUTING|CODE_OF_CONDUCT|GOVERNANCE|SECURITY|SUPPORT|MAINTAINERS|CODEOWNERS)(?:\.\w+)?$/i
const RELATED = 8
const KEPT_MS = 10 * 60_000
/** The most telling first: of more, an agent is told the names. */
const READ = { governance: 4, workflows: 3 }
const EXCERPT = { governance: 1500, workflow: 500, related: 500 }
const ORDER = ['CONTRIBUTING', 'CODE_OF_CONDUCT', 'GOVERNANCE', 'SECURITY', 'README']
const STALE_SHOWN = 30
const MOST_ACCOUNTS = 10_000
/** Of the protocol's. */
const MOST_EXCERPTS = 50

interface Rules {
  readonly found: Gathered['repository']
  readonly excerpts: readonly Excerpt[]
}

export function createGathering({
  store,
  github,
  clock,
  redact,
}: Pick<GithubParts, 'store' | 'github' | 'clock' | 'redact'>) {
  const known = new Map<string, { at: number; rules: Rules }>()
  const accounts = new Map<string, string>()
  const askedFor = createAskedFor({ github, clock, redact }, orUnknown)

  async function rulesOf(repository: string): Promise<Rules> {
    const kept = known.get(repository)
    if (kept !== undefined && clock.now() - kept.at < KEPT_MS) return kept.rules
    const [root, hidden, workflows] = await Promise.all(
      ['', '.github', '.github/workflows'].map(
        async (folder) => orUnknown(await github.filesAt(repository, folder)) ?? [],
      ),
    )
    const isGovernance = (path: string) => GOVERNANCE.test(path.split('/').at(-1)!)
    const governanceDocs = [...root!, ...hidden!].filter(isGovernance)
    const ciWorkflows = workflows!.filter((path) => /\.ya?ml$/.test(path))
    const excerpts = await Promise.all([
      ...governanceDocs
        .toSorted((one, other) => rank(one) - rank(other))
        .slice(0, READ.governance)
        .map((path) => read(repository, path, EXCERPT.governance)),
      ...ciWorkflows.slice(0, READ.workflows).map((path) => read(repository, path, EXCERPT.workflow)),
    ])
    const rules = { found: { ragAvailable: true, governanceDocs, ciWorkflows }, excerpts: excerpts.flat() }
    known.set(repository, { at: clock.now(), rules })
    return rules
  }

  async function read(repository: string, path: string, most: number): Promise<Excerpt[]> {
    const text = orUnknown(await github.textOf(repository, path))
    return text === undefined ? [] : [{ source: path, text: shortened(redact(text), most) }]
  }

  /** For a trigger that is about them. */
  async function stale(
    repository: string,
    days: number,
  ): Promise<{ numbers: number[]; excerpts: Excerpt[] }> {
    const since = clock.now() - days * 24 * 3600_000
    const found = (orUnknown(await github.untouchedSince(repository, since)) ?? [])
      .filter(({ labels }) => !isPaused(labels, []))
      .slice(0, STALE_SHOWN)
    return {
      numbers: found.map(({ number }) => number),
      excerpts: found.map(({ number, title, labels, updatedAt, comments }) => ({
        source: `#${number}`,
        text: `${title}\nlabels: ${labels.join(', ') || 'none'}; ${comments} comments; last touched ${updatedAt ?? 'long ago'}`,
      })),
    }
  }

  /** It never changes, so that it is asked once; undefined for an account that is gone. */
  async function accountCreated(login: string, repository: string): Promise<string | undefined> {
    const kept = accounts.get(login)
    if (kept !== undefined) return kept
    const created = isoTime(orUnknown(await github.accountCreated(login, repository)))
    if (created === undefined) return undefined
    if (accounts.size >= MOST_ACCOUNTS) accounts.clear()
    accounts.set(login, created)
    return created
  }

  async function relatedTo(event: GitHubEvent): Promise<Related[]> {
    const { subject, repository } = event
    if (subject === undefined || repository === undefined) return []
    const words = searchWords(`${subject.title} ${subject.body.slice(0, 4000)}`)
    return await searchDocuments(store, { repository, words, except: subject.number, limit: RELATED })
  }

  /** `commands`: those in it that count. */
  return async (
    event: GitHubEvent,
    commands: readonly SlashName[],
    staleDays?: number,
  ): Promise<Gathered> => {
    const { subject, repository, comment } = event
    const author = authorOf(event)
    const number = subject?.number ?? 0
    const isPull = subject?.kind === 'pull_request'
    const has = repository !== undefined
    const [files, contributions, created, rules, related, untouched, unsaid] = await Promise.all([
      has && isPull ? github.filesOf(repository, number).then(orUnknown) : [],
      has && author !== undefined
        ? github.contributionsOf(repository, author.login, number).then(orUnknown)
        : undefined,
      has && author !== undefined ? accountCreated(author.login, repository) : undefined,
      has ? rulesOf(repository) : { found: { ragAvailable: false }, excerpts: [] },
      relatedTo(event),
      has && staleDays !== undefined ? stale(repository, staleDays) : { numbers: [], excerpts: [] },
      askedFor(event, commands),
    ])
    const firstTimer = author !== undefined && isNewcomer(author.association, contributions)
    const text = comment?.body ?? `${subject?.title ?? ''}\n${subject?.body ?? ''}`
    const numbers = (kind: string) => related.filter((one) => one.kind === kind).map((one) => one.number)
    const referred = numbersIn(text).filter((one) => one !== number)
    return {
      firstTimer,
      touchesDocs: touchesDocs(files ?? []),
      user:
        author === undefined
          ? undefined
          : {
              login: author.login,
              authorAssociation: author.association,
              isFirstTimeContributor: firstTimer,
              ...(contributions === undefined ? {} : { contributionCount: contributions }),
              ...(created === undefined ? {} : { accountCreated: created }),
            },
      additional: {
        relatedIssues: [...new Set([...numbers('issue'), ...referred, ...untouched.numbers])].slice(0, 100),
        relatedPrs: numbers('pull_request'),
        mentions: mentionsIn(text),
        commands: readSlashCommands(comment?.body ?? '').flatMap(({ name }) =>
          name === undefined ? [] : [`/agent ${name}`],
        ),
        excerpts: [...unsaid, ...related.map(shown), ...untouched.excerpts, ...rules.excerpts].slice(
          0,
          MOST_EXCERPTS,
        ),
      },
      repository: rules.found,
    }
  }
}

function shown({ kind, number, title, state, body }: Related): Excerpt {
  const what = kind === 'issue' ? 'issue' : 'pull request'
  return { source: `#${number} (${what}, ${state})`, text: shortened(`${title}\n${body}`, EXCERPT.related) }
}

function rank(path: string): number {
  const name = path.split('/').at(-1)!.toUpperCase()
  const at = ORDER.findIndex((one) => name.startsWith(one))
  return at < 0 ? ORDER.length : at
}

/** As the protocol writes times (S3.17); undefined for what is none. */
export function isoTime(text: string | undefined): string | undefined {
  const at = Date.parse(text ?? '')
  return Number.isNaN(at) ? undefined : new Date(at).toISOString()
}

/** What GitHub refuses to tell is not known; what it will tell later is waited for. */
function orUnknown<Value>(answer: Answer<Value>): Value | undefined {
  if (answer.ok) return answer.value
  if (isRecoverable(answer.failure)) throw new TryLater(answer.failure.message, answer.failure.retryAfterMs)
  return undefined
}
