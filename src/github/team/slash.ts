import { AppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import { readApprovals } from '../../people/store/approvals.ts'
import { findHumanRequest } from '../../people/store/human-requests.ts'
import { type GitHubEvent, saidIn } from '../core/event.ts'
import { COMMAND_ROLES } from '../core/routing.ts'
import {
  helpText,
  maySay,
  readSlashCommands,
  readVerdict,
  type SlashCommand,
  type SlashName,
} from '../core/slash.ts'
import { findAction } from '../store/actions.ts'
import type { RouteStep } from '../terms.ts'
import { isReplay } from './replay.ts'
import { type GithubParts, personOf } from './settings.ts'

export interface SlashOutcome {
  /** What agents are to do. */
  readonly steps: readonly (RouteStep & { task: string })[]
  /** Those that their author may say. */
  readonly commands: readonly SlashName[]
  /** What the service answers. */
  readonly replies: readonly string[]
}

const TASKS: Readonly<Record<string, string>> = {
  summarize: 'Summarize the thread for whoever comes to it now, as one comment, on',
  'find-gfi': 'Name up to five open issues that are good for a newcomer, as one comment, on',
  'draft-docs': 'Draft documentation for what this is about, as one comment, on',
  'repo-stats': 'Say how the repository is doing, as one comment, on',
}

/** `/agent …`: verdicts are given, tasks made; who may is a matter of who wrote the comment. */
export function createSlash({ store, team, verdicts, log }: GithubParts) {
  async function decide(said: SlashCommand, event: GitHubEvent): Promise<string | undefined> {
    // Whoever replays a payload writes into it whose words they are.
    if (isReplay(event.id)) {
      log.warn({ delivery: event.id, command: said.name }, 'a replay gives no verdict')
      return undefined
    }
    const person = personOf(team(), event.comment!.author)!
    const verdict = readVerdict(said.words)
    if (verdict === undefined) return `Say which: \`/agent ${said.name} req_7\`.`
    if (!(await isOfRepository(verdict.request, event.repository))) {
      return `There is no ${verdict.request} to decide on here.`
    }
    try {
      const decision = said.name === 'approve' ? 'approve' : 'reject'
      const comment = verdict.comment === '' ? {} : { comment: verdict.comment }
      const { request } = await verdicts.decide({ kind: 'person', person: person.name }, verdict.request, {
        decision,
        ...comment,
      })
      const given = request.approvals.length
      return request.state === 'open'
        ? `${verdict.request}: ${given} of ${request.quorum} approvals.`
        : undefined
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      // The same comment worked on again after a crash: its verdict counts already.
      if (error.code === 'CONFLICT' && (await hasSaid(verdict.request, said.name, person.name)))
        return undefined
      log.info({ request: verdict.request, err: error.message }, 'a verdict on GitHub was not taken')
      return `${verdict.request}: ${error.message}.`
    }
  }

  /** This very verdict is that person's, and counts. */
  async function hasSaid(request: string, name: string, person: string): Promise<boolean> {
    const row = await findHumanRequest(store, parseId('req', request) ?? 0)
    if (row === undefined) return false
    if (name === 'reject') return row.state === 'rejected' && row.decided_by === person
    if (row.state === 'rejected') return false
    const given = await readApprovals(store, [row.id])
    return given.some((one) => one.person === person && one.action_hash === row.action_hash)
  }

  /** On GitHub people decide on what is to be done there, in the same repository, and on nothing else. */
  async function isOfRepository(request: string, repository: string | undefined): Promise<boolean> {
    const row = await findHumanRequest(store, parseId('req', request) ?? 0)
    if (row === undefined) return false
    const { github } = JSON.parse(row.context) as { github?: unknown }
    if (typeof github !== 'string') return false
    // A trigger names it as orc.yaml does, and GitHub as its owner does.
    return (await findAction(store, github))?.repository.toLowerCase() === repository?.toLowerCase()
  }

  return async (event: GitHubEvent): Promise<SlashOutcome> => {
    const steps: (RouteStep & { task: string })[] = []
    const replies: string[] = []
    const commands: SlashName[] = []
    const { subject } = event
    const comment = saidIn(event)
    if (comment === undefined) return { steps, commands, replies }
    const author = { association: comment.association, person: personOf(team(), comment.author)?.name }
    for (const said of readSlashCommands(comment.body)) {
      if (said.name === undefined) continue
      if (!maySay(said.name, author)) {
        log.info({ command: said.name, author: comment.author }, 'a command on GitHub is not for its author')
        continue
      }
      commands.push(said.name)
      const role = COMMAND_ROLES[said.name]
      if (said.name === 'help') replies.push(helpText())
      else if (role !== undefined) {
        const about = `${TASKS[said.name]} #${subject?.number ?? ''}`
        if (!steps.some(({ to }) => to === role)) steps.push({ to: role, when: [], on: 'any', task: about })
      } else {
        const reply = await decide(said, event)
        if (reply !== undefined) replies.push(reply)
      }
    }
    return { steps, commands, replies }
  }
}
