import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import { formatId } from '../base/ids.ts'
import type { Team } from '../commands/team.ts'
import type { Receipt } from '../protocol/receipt.ts'
import { renderResponse } from '../protocol/response.ts'
import type { Tx } from '../store/store.ts'
import { changesText } from './approvals.ts'
import type { HeldInTasks } from './hold-command.ts'
import { askPeople, type HumanRequestRow } from './people.ts'
import { intactAction } from './request-view.ts'

interface VerdictOutcome {
  state: 'approved' | 'modified' | 'rejected' | 'expired'
  receipt: Receipt
  comment: string | null
  by: string
}

export interface NotifyAskerOptions {
  team(): Team
  /** Stores a message to an agent and wakes the agent. */
  post(
    tx: Tx,
    message: { to: string; title: string; content: string; priority: 'normal' | 'high' },
  ): Promise<void>
  tasks: Pick<HeldInTasks, 'onDecided'>
  /** Data that makes an audit entry show up with its task or run. */
  about(tx: Tx, row: HumanRequestRow): Promise<Readonly<Record<string, unknown>>>
}

/** Notifies and wakes the asker after every verdict, including a rejection or an expiry (C9). */
export function createNotifyAsker({ team, post, tasks, about }: NotifyAskerOptions) {
  async function send(tx: Tx, to: string, title: string, content: string, priority: 'normal' | 'high') {
    if (team().resolve(to) !== undefined) await post(tx, { to, title, content, priority })
  }

  /** Sends the asker the result of the held command. */
  async function decided(tx: Tx, row: HumanRequestRow, { state, receipt, comment, by }: VerdictOutcome) {
    if (row.purpose === 'notice' || team().resolve(row.asker) === undefined) return
    // A damaged action can still be rejected or expire.
    const type = intactAction(row)?.type ?? 'command'
    const changes = state === 'modified' ? `\n${changesText(row)}` : ''
    const remark = comment === null ? '' : `\n${nameOf(by)} remarks: ${comment}\n`
    const content = `${row.question}\nVerdict: ${state}.${changes}${remark}\n${renderResponse(type, receipt)}`
    if (await tasks.onDecided(tx, row, state, content)) return
    await send(tx, row.asker, `${formatId('req', row.id)} ${state}: ${type}`, content, 'high')
  }

  async function answered(tx: Tx, row: HumanRequestRow, answer: string) {
    const content = `You asked: ${row.question}\nA person answers: ${answer}`
    await send(tx, row.asker, `${formatId('req', row.id)} answered`, content, 'normal')
  }

  async function expired(tx: Tx, row: HumanRequestRow) {
    if (row.purpose === 'question') {
      const content = `You asked: ${row.question}\nNobody answered in time. Continue as well as you can without an answer.`
      return await send(tx, row.asker, `${formatId('req', row.id)} expired`, content, 'normal')
    }
    const receipt: Receipt = { status: 'blocked', reason: 'nobody decided in time' }
    await decided(tx, row, { state: 'expired', receipt, comment: null, by: ORCHESTRATOR })
  }

  /** Puts a notice about an expired request into the inbox. */
  async function escalate(tx: Tx, row: HumanRequestRow) {
    const expiredId = formatId('req', row.id)
    const what =
      row.purpose === 'question' ? 'Nobody answered in time' : 'Nobody decided in time, so this was not done'
    await askPeople(tx, {
      kind: 'escalation',
      purpose: 'notice',
      asker: row.asker,
      actor: ORCHESTRATOR,
      question: `${what}: ${row.question}`,
      reason: `${expiredId} expired`,
      context: row.context,
      text: `${expiredId} expired without a verdict`,
      about: async () => ({ expired: expiredId, ...(await about(tx, row)) }),
    })
  }

  return { decided, answered, expired, escalate }
}

/** Agents don't know the operator's name. */
function nameOf(person: string): string {
  return person === OPERATOR ? 'A person' : person
}
