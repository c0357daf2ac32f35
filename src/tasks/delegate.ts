import { isStopped } from '../agents/agents.ts'
import type { Sessions } from '../agents/sessions.ts'
import { OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import type { Handler, HandlerContext } from '../commands/commands.ts'
import { unknownAgent } from '../commands/identity.ts'
import { type Team, tooLong } from '../commands/team.ts'
import type { Conversations } from '../messages/conversations.ts'
import { type Holding, whyParked } from '../people/hold-command.ts'
import { delegate, type FieldsOf } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import { decideAction, decideSend, strictest } from '../rules/decide.ts'
import { nextHop } from '../rules/loop-breaker.ts'
import type { Action, Decision } from '../rules/rule.ts'
import type { MaybePromise, Tx } from '../store/store.ts'
import { refusalError } from './core/refusal.ts'
import { ownTask, remember, saidBefore } from './references.ts'
import { findTask } from './store.ts'
import { isEnd } from './task.ts'
import type { Tasks } from './tasks.ts'
import { declaredCheck } from './validation/checks.ts'
import { findJudge, isSameJudge } from './validation/judge.ts'
import { unusableSchema } from './validation/result-schema.ts'

interface DelegateOptions {
  tasks: Tasks
  sessions: Pick<Sessions, 'isPaused' | 'session'>
  conversations: Pick<Conversations, 'causeOf' | 'observe'>
  holding: Pick<Holding, 'askToContinue'>
}

export const delegateHandler = (options: DelegateOptions): Handler<FieldsOf<'delegate'>> => ({
  decide({ team, speaker }, fields) {
    const to = team.resolve(fields.to)
    if (to === undefined) return unknownAgent(team, fields.to)
    const { context = {}, result_schema: schema } = fields
    const large = tooLong(team, 'task', fields.task, JSON.stringify(context), JSON.stringify(schema ?? {}))
    if (large !== undefined) return large
    const unusable = schema === undefined ? undefined : unusableSchema(schema)
    if (unusable !== undefined) return unusable
    const found = findJudge(team, fields.judge)
    if (!found.ok) return found.error
    const judge = found.value
    if (judge?.kind === 'agent' && judge.name === to) return judgesItself(to)
    const may = (action: Action) => decideAction(team.rules, speaker.name, action)
    return strictest(
      decideDelegation(team, speaker.name, to),
      ...(declared(team, fields.checks).length === 0 ? [] : [may('declare_checks')]),
      ...(judge === undefined || isSameJudge(judge, team.config.tasks.judge) ? [] : [may('choose_judge')]),
    )
  },

  async handle(context, fields) {
    const { team, tx, speaker } = context
    const { tasks } = options
    const to = team.resolve(fields.to)!
    const duplicate = fields.message_id === undefined ? undefined : await openDuplicate(context, fields, to)
    if (duplicate !== undefined) {
      if (duplicate.parent !== null && duplicate.requiresResponse)
        tasks.spoke(tx, speaker.name, duplicate.parent)
      return delegated(duplicate.id, to, ' already')
    }
    const own = await ownTask(tasks, context, fields.in_response_to)
    if (!own.ok) return own.error
    const parent = own.value
    const found = findJudge(team, fields.judge)
    if (!found.ok) return found.error
    const judge = found.value
    const hop = parent === undefined ? await hopTo(options, context, fields, to) : parent.hop
    if (typeof hop !== 'number') return hop
    const commands = new Set(declared(team, fields.checks))
    const begun = await tasks.delegate(tx, {
      delegator: speaker.name,
      agent: to,
      text: fields.task,
      context: fields.context ?? {},
      requiresResponse: fields.requires_response,
      hop,
      checks: (fields.checks ?? []).map((check) => (commands.has(check) ? declaredCheck(check) : check)),
      judge,
      resultSchema: fields.result_schema,
      timeoutMs: fields.timeout_seconds === undefined ? undefined : fields.timeout_seconds * 1000,
      parent,
    })
    if (!begun.ok) return refusalError(begun.error)
    const { id } = begun.value
    remember(context, fields.message_id, id)
    // If the parent doesn't wait for it, its turn must still end with a report.
    if (parent !== undefined && fields.requires_response) tasks.spoke(tx, speaker.name, parent.id)
    return delegated(id, to, await whyNotNow(options, context, to))
  },
})

/**
 * Limits of a task end every loop inside it. Outside of a task, a report could lead to the next delegation forever
 * (ask 12), so these delegations count as messages for the loop breaker.
 */
async function hopTo(
  { conversations, holding }: DelegateOptions,
  context: HandlerContext,
  fields: FieldsOf<'delegate'>,
  to: string,
) {
  const { tx, team, speaker, approved, once } = context
  if (speaker.name === OPERATOR || approved) return 0
  const reason = await whyParked(tx, speaker.name, to)
  if (reason !== undefined) return { status: 'blocked', reason } satisfies Receipt
  const hop = nextHop(await conversations.causeOf(tx, speaker.name, undefined, tx.now))
  const loop = once(`loop ${to}`, () => conversations.observe(team, speaker.name, to, hop, tx.now))
  return loop === undefined
    ? hop
    : await holding.askToContinue(context, { type: delegate.type, fields }, to, loop)
}

function delegated(task: string, to: string, remark: string): Receipt {
  return { status: 'ok', result: `${task} is delegated to ${to}${remark}`, details: { task_id: task, to } }
}

/** Finds the open task of a delegation that is sent again with the same id, which must not create a second task (C25). */
async function openDuplicate(context: HandlerContext, fields: FieldsOf<'delegate'>, to: string) {
  const ref = await saidBefore(context, fields.message_id)
  const task = ref === undefined ? undefined : await findTask(context.tx, ref)
  const isSame = task !== undefined && task.agent === to && task.text === fields.task
  return isSame && !isEnd(task.state) ? task : undefined
}

/** Adds to the receipt why the agent can't begin now. */
function whyNotNow(
  { sessions }: DelegateOptions,
  { tx, team }: HandlerContext,
  to: string,
): MaybePromise<string> {
  if (sessions.isPaused(to)) return '; it is paused and gets the task when it is resumed'
  const agent = team.config.agents.find(({ name }) => name === to)
  if (agent === undefined || agent.runtime === 'none' || agent.onDemand) return ''
  return sessions.session(to) === undefined ? whyStopped(tx, to) : ''
}

async function whyStopped(tx: Tx, to: string): Promise<string> {
  return (await isStopped(tx, to))
    ? `; it is stopped and gets the task when it is started (orc agent start ${to})`
    : ''
}

/** Names that orc.yaml doesn't define as checks are commands. */
function declared({ config }: Team, checks: readonly string[] | undefined): string[] {
  return (checks ?? []).filter((check) => !Object.hasOwn(config.tasks.checks, check))
}

/** An agent may delegate to its children (S2.2) and to agents that rules.allow names for it; a person to every agent. */
export function decideDelegation(team: Team, from: string, to: string): Decision {
  if (from === to) return itself(from)
  const send = decideSend(team.rules, from, to)
  if (from === OPERATOR || send.verdict === 'deny') return send
  const isChild = team.config.agents.find(({ name }) => name === to)?.parent === from
  if (isChild || send.rule.startsWith('rules.allow')) return send
  const children = team.config.agents.filter(({ parent }) => parent === from).map(({ name }) => name)
  const whom = children.length === 0 ? 'nobody' : children.join(', ')
  return {
    verdict: 'deny',
    rule: 'built-in: delegation',
    reason: `${from} may delegate to ${whom}; ${to} does not report to it`,
  }
}

function judgesItself(name: string): AppError {
  return new AppError('INVALID_COMMAND', `${name} cannot judge its own work`, {
    hint: 'Name another judge, or leave "judge" out.',
  })
}

function itself(name: string): Decision {
  return { verdict: 'deny', rule: 'built-in: delegation', reason: `${name} cannot delegate to itself` }
}
