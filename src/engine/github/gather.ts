import { authorOf, type GitHubEvent, isNewcomer } from '../../github/event.ts'
import { type Answer, isRecoverable } from '../../github/failure.ts'
import { type Facts, touchesDocs } from '../../github/routing.ts'
import { readSlashCommands } from '../../github/slash.ts'
import { mentionsIn, numbersIn, searchWords } from '../../github/words.ts'
import { type Related, searchDocuments } from '../../store/github.ts'
import type { TaskDelegation } from '../../wire/github-team.ts'
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

export function createGathering({ store, github, clock }: Pick<GithubParts, 'store' | 'github' | 'clock'>) {
  const governance = new Map<string, { at: number; found: Gathered['repository'] }>()

  async function rulesOf(repository: string): Promise<Gathered['repository']> {
    const known = governance.get(repository)
    if (known !== undefined && clock.now() - known.at < KEPT_MS) return known.found
    const [root, hidden, workflows] = await Promise.all(
      ['', '.github', '.github/workflows'].map(
        async (folder) => orUnknown(await github.filesAt(repository, folder)) ?? [],
      ),
    )
    const isGovernance = (path: string) => GOVERNANCE.test(path.split('/').at(-1)!)
    const found = {
      ragAvailable: true,
      governanceDocs: [...root!, ...hidden!].filter(isGovernance),
      ciWorkflows: workflows!.filter((path) => /\.ya?ml$/.test(path)),
    }
    governance.set(repository, { at: clock.now(), found })
    return found
  }

  async function relatedTo(event: GitHubEvent): Promise<Related[]> {
    const { subject, repository } = event
    if (subject === undefined || repository === undefined) return []
    const words = searchWords(`${subject.title} ${subject.body.slice(0, 4000)}`)
    return await searchDocuments(store, { repository, words, except: subject.number, limit: RELATED })
  }

  return async (event: GitHubEvent): Promise<Gathered> => {
    const { subject, repository, comment } = event
    const author = authorOf(event)
    const number = subject?.number ?? 0
    const isPull = subject?.kind === 'pull_request'
    const has = repository !== undefined
    const [files, contributions, rules, related] = await Promise.all([
      has && isPull ? github.filesOf(repository, number).then(orUnknown) : [],
      has && author !== undefined
        ? github.contributionsOf(repository, author.login, number).then(orUnknown)
        : undefined,
      has ? rulesOf(repository) : { ragAvailable: false },
      relatedTo(event),
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
            },
      additional: {
        relatedIssues: [...new Set([...numbers('issue'), ...referred])],
        relatedPrs: numbers('pull_request'),
        mentions: mentionsIn(text),
        commands: readSlashCommands(comment?.body ?? '').flatMap(({ name }) =>
          name === undefined ? [] : [`/agent ${name}`],
        ),
      },
      repository: rules,
    }
  }
}

/** What GitHub refuses to tell is not known; what it will tell later is waited for. */
function orUnknown<Value>(answer: Answer<Value>): Value | undefined {
  if (answer.ok) return answer.value
  if (isRecoverable(answer.failure)) throw new TryLater(answer.failure.message, answer.failure.retryAfterMs)
  return undefined
}
