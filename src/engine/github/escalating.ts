import { type Action, actionKey } from '../../github/action.ts'
import type { TaskError } from '../../github/task-error.ts'
import { ORCHESTRATOR } from '../../model/agent.ts'
import { formatId } from '../../model/identifier.ts'
import { type GithubWork, insertAction } from '../../store/github.ts'
import { insertHumanRequest } from '../../store/human-requests.ts'
import type { Tx } from '../../store/store.ts'
import type { Proposals } from './proposals.ts'
import type { GithubParts } from './settings.ts'

const NOTICE_MS = 30 * 24 * 3600_000
const ERROR_LABEL = 'agent-error'

/** What agents cannot go on with comes to people: in the inbox, and on GitHub to the maintainers (S3.12, C7, C9). */
export function createEscalating(
  { settings, redact }: Pick<GithubParts, 'settings' | 'redact'>,
  proposals: Proposals,
) {
  const tagged = () =>
    settings()
      .maintainers.map((login) => `@${login}`)
      .join(' ')

  async function notice(tx: Tx, agent: string, question: string, reason: string): Promise<void> {
    const request = await insertHumanRequest(tx, {
      kind: 'escalation',
      purpose: 'notice',
      asker: agent,
      question,
      reason,
      action: null,
      action_hash: null,
      context: '{}',
      expires_at: tx.now + NOTICE_MS,
    })
    const id = formatId('req', request)
    tx.audit({
      type: 'human.told',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: agent,
      text: `${id}: ${question}`,
      data: { request_id: id },
    })
  }

  async function label(tx: Tx, source: string, repository: string, number: number): Promise<void> {
    const action: Action = { kind: 'label', number, label: ERROR_LABEL }
    await insertAction(tx, {
      key: actionKey(source, action),
      work: source,
      agent: ORCHESTRATOR,
      repository,
      number,
      action: JSON.stringify(action),
      confidence: null,
      rationale: '',
      state: 'ready',
      request: null,
      note: null,
    })
  }

  return {
    notice,
    /** After the last attempt. What the agent says of it is for the inbox: its words may quote what is not public. */
    async failed(tx: Tx, { id, agent, repository, number }: GithubWork, error: TaskError): Promise<void> {
      const where = number === null ? repository : `${repository}#${number}`
      const tries = error.retry_count === 0 ? '' : ` after ${error.retry_count} retries`
      await notice(
        tx,
        agent,
        `${agent} failed at ${where}${tries}: ${error.error_type}`,
        redact(`${error.error_message} ${error.suggested_action}`.slice(0, 2000)),
      )
      if (number === null) return
      const source = `${id}/failed`
      await label(tx, source, repository, number)
      if (tagged() === '') return
      const text = `**${agent}** could not do its work here (\`${error.error_type}\`${tries}). ${error.suggested_action} ${tagged()}`
      await proposals.say(tx, source, repository, number, text)
    },
    /** Nobody answered in time: the inbox says so by itself, and here those who should have answered hear of it. */
    async expired(
      tx: Tx,
      about: { request: string; agent: string; repository: string; number: number | null; what: string },
    ): Promise<void> {
      const { request, agent, repository, number, what } = about
      if (number === null) return
      const approvers = proposals
        .approverLogins()
        .map((login) => `@${login}`)
        .join(' ')
      const text =
        `Nobody decided on ${request} within 72 hours, so **${agent}** did not ${what}. ${approvers}`.trimEnd()
      await proposals.say(tx, `${request}/expired`, repository, number, text)
    },
  }
}
