import type { GitHubEvent, Subject } from '../core/event.ts'
import type { Answer } from '../core/failure.ts'
import type { SlashName } from '../core/slash.ts'
import { type Excerpt, shortened } from './excerpt.ts'
import type { GithubParts } from './settings.ts'

const DAY_MS = 24 * 3600_000
const RECENT_DAYS = 30
const MOST = { comments: 30, issues: 30 }
const EXCERPT = { opening: 2000, comment: 600, issue: 200 }
/** What GitHub itself calls them, in the repositories that it makes. */
const FOR_NEWCOMERS = ['good first issue', 'help wanted']

type Known = <Value>(answer: Answer<Value>) => Value | undefined

/**
 * What a comment leaves unsaid: the thread it stands in, and what its commands are about. `known`: what GitHub refuses to
 * tell is undefined, and what it will tell later is waited for.
 */
export function createAskedFor(
  { github, clock, redact }: Pick<GithubParts, 'github' | 'clock' | 'redact'>,
  known: Known,
) {
  const cut = (text: string, most: number) => shortened(redact(text), most)

  async function comments(repository: string, number: number): Promise<Excerpt[]> {
    const found = known(await github.commentsOf(repository, number)) ?? []
    return found.slice(-MOST.comments).map(({ author, body, at }) => ({
      source: `comment by ${author} at ${at}`,
      text: cut(body, EXCERPT.comment),
    }))
  }

  /** Those with a label for it, else those that there are. */
  async function goodFirst(repository: string): Promise<Excerpt[]> {
    const labelled: Subject[] = []
    for (const label of FOR_NEWCOMERS)
      labelled.push(...(known(await github.openIssues(repository, label)) ?? []))
    const all = labelled.length > 0 ? labelled : (known(await github.openIssues(repository)) ?? [])
    const once = [...new Map(all.map((one) => [one.number, one])).values()]
    return once.slice(0, MOST.issues).map(({ number, title, labels, comments }) => ({
      source: `#${number} (issue, open)`,
      text: `${cut(title, EXCERPT.issue)}\nlabels: ${labels.join(', ') || 'none'}; ${comments} comments`,
    }))
  }

  async function figures(repository: string): Promise<Excerpt[]> {
    const found = known(await github.figuresOf(repository, clock.now() - RECENT_DAYS * DAY_MS))
    if (found === undefined) return []
    const lines = Object.entries(found).map(([name, value]) => `${name.replaceAll('_', ' ')}: ${value}`)
    return [{ source: `figures, recent is the last ${RECENT_DAYS} days`, text: lines.join('\n') }]
  }

  const FOR: Readonly<
    Partial<Record<SlashName, (repository: string, number: number) => Promise<Excerpt[]>>>
  > = {
    summarize: comments,
    'draft-docs': comments,
    'find-gfi': goodFirst,
    'repo-stats': figures,
  }

  return async (event: GitHubEvent, commands: readonly SlashName[]): Promise<Excerpt[]> => {
    const { repository, subject, comment } = event
    if (comment === undefined || repository === undefined || subject === undefined) return []
    const opening = {
      source: `#${subject.number}, as ${subject.author} opened it`,
      text: cut(`${subject.title}\n${subject.body}`, EXCERPT.opening),
    }
    const wanted = new Set(commands.flatMap((name) => FOR[name] ?? []))
    const more = await Promise.all([...wanted].map((find) => find(repository, subject.number)))
    return [opening, ...more.flat()]
  }
}
