import { randomUUID } from 'node:crypto'
import { AppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import { type GitHubEvent, newComment } from '../core/event.ts'
import { COMMAND_ROLES } from '../core/routing.ts'
import {
  helpText,
  maySay,
  readSlashCommands,
  readVerdict,
  type SlashCommand,
  type SlashName,
} from '../core/slash-commands.ts'
import { findAction } from '../store/actions.ts'
import type { RouteStep } from '../terms.ts'
import { type GithubParts, proposalOf } from './parts.ts'
import { personOf } from './settings.ts'

interface SlashOutcome {
  /** Work for agents. */
  readonly steps: readonly (RouteStep & { task: string })[]
  /** The commands that their author may use. */
  readonly commands: readonly SlashName[]
  /** Comments that the service posts as an answer. */
  readonly replies: readonly string[]
}

const TASKS: Readonly<Record<string, string>> = {
  summarize: 'Summarize the thread for a new reader, as one comment, on',
  'find-gfi': 'Name up to five open issues that are good for a newcomer, as one comment, on',
  'draft-docs': 'Draft documentation for the topic of this thread, as one comment, on',
  'repo-stats': 'Describe how the repository is doing, as one comment, on',
}

/** Runs `/agent …` commands: verdicts are decided at once, everything else becomes a task. */
export function createSlashCommands({ store, team, people, log }: GithubParts) {
  async function decide(command: SlashCommand, event: GitHubEvent): Promise<string | undefined> {
    // GitHub did not sign a replayed payload, so its author could be forged.
    if (isReplay(event.id)) {
      log.warn({ delivery: event.id, command: command.name }, 'ignored a verdict in a replayed event')
      return undefined
    }
    const person = personOf(team(), event.comment!.author)!
    const verdict = readVerdict(command.words)
    if (verdict === undefined) return `Name the request: \`/agent ${command.name} req_7\`.`
    if (!(await isAboutRepository(verdict.request, event.repository))) {
      return `There is no ${verdict.request} to decide in this repository.`
    }
    try {
      const { request } = await people.decide({ kind: 'person', person: person.name }, verdict.request, {
        decision: command.name === 'approve' ? 'approve' : 'reject',
        ...(verdict.comment === '' ? {} : { comment: verdict.comment }),
      })
      const given = request.approvals.length
      return request.state === 'open'
        ? `${verdict.request}: ${given} of ${request.quorum} approvals.`
        : undefined
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      // After a crash the same comment is processed again, and its verdict already counts.
      if (error.code === 'CONFLICT' && (await hasDecided(verdict.request, command.name, person.name)))
        return undefined
      log.info({ request: verdict.request, err: error.message }, 'refused a verdict from GitHub')
      return `${verdict.request}: ${error.message}.`
    }
  }

  async function hasDecided(request: string, name: string, person: string): Promise<boolean> {
    const row = await people.find(store, parseId('req', request) ?? 0)
    if (row === undefined) return false
    if (name === 'reject') return row.state === 'rejected' && row.decided_by === person
    if (row.state === 'rejected') return false
    const given = await people.approvals(store, row.id)
    return given.some((one) => one.person === person && one.action_hash === row.action_hash)
  }

  /** Comments on GitHub can decide only proposals for the same repository. */
  async function isAboutRepository(request: string, repository: string | undefined): Promise<boolean> {
    const row = await people.find(store, parseId('req', request) ?? 0)
    const proposal = row && proposalOf(row)
    if (proposal === undefined) return false
    // A scheduled trigger spells the name as orc.yaml does, GitHub as the owner does.
    return (await findAction(store, proposal))?.repository.toLowerCase() === repository?.toLowerCase()
  }

  return async (event: GitHubEvent): Promise<SlashOutcome> => {
    const steps: (RouteStep & { task: string })[] = []
    const replies: string[] = []
    const commands: SlashName[] = []
    const { subject } = event
    const comment = newComment(event)
    if (comment === undefined) return { steps, commands, replies }
    const author = { association: comment.association, person: personOf(team(), comment.author)?.name }
    for (const command of readSlashCommands(comment.body)) {
      if (command.name === undefined) continue
      if (!maySay(command.name, author)) {
        log.info(
          { command: command.name, author: comment.author },
          'the author may not use this slash command',
        )
        continue
      }
      commands.push(command.name)
      const role = COMMAND_ROLES[command.name]
      if (command.name === 'help') replies.push(helpText())
      else if (role !== undefined) {
        const task = `${TASKS[command.name]} #${subject?.number ?? ''}`
        if (!steps.some(({ to }) => to === role)) steps.push({ to: role, when: [], on: 'any', task })
      } else {
        const reply = await decide(command, event)
        if (reply !== undefined) replies.push(reply)
      }
    }
    return { steps, commands, replies }
  }
}

const REPLAY = 'replay-'

export function newReplayId(): string {
  return `${REPLAY}${randomUUID()}`
}

function isReplay(delivery: string): boolean {
  return delivery.startsWith(REPLAY)
}

/** Answers to slash commands are posted even where the team is paused. */
export const replySource = (delivery: string, index: number) => `${delivery}/reply/${index}`

export function isReply(source: string): boolean {
  return /\/reply\/\d+$/.test(source)
}
