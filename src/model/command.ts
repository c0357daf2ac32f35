import { z } from 'zod'
import { DECLARED_STATUSES } from './agent.ts'
import { PRIORITIES } from './message.ts'

/**
 * One entry describes a command for every notation at once (S0.16, S0.17, S1.23): XML modern and legacy, JSON,
 * shell, HTTP, and the prompt text are all read off it. Field names are the seeds' own words.
 */
export interface CommandDefinition<Fields extends z.ZodObject = z.ZodObject> {
  type: string
  summary: string
  fields: Fields
  /** The field that an element's body, a shell argument or standard input fills. */
  body?: string
  /** The field in which the speaker may name itself: an assertion, compared with the transport's identity (C3). */
  speaker?: string
  /** The field that names the agent concerned: the caller itself, unless it was granted `permission` (C14). */
  subject?: { field: string; permission: string }
  /** An invocation in the shell form, for `--help` and the docs. */
  example: string
}

export function defineCommand<Fields extends z.ZodObject>(definition: CommandDefinition<Fields>) {
  return definition
}

/** Models write `title=""` for "no title"; an empty value is the same as none (C13). */
const blankIsMissing = (value: unknown) =>
  typeof value === 'string' && value.trim() === '' ? undefined : value
const lowerCase = (value: unknown) => (typeof value === 'string' ? value.trim().toLowerCase() : value)

const name = z.string().trim().min(1).max(200)
const optionalName = z.preprocess(blankIsMissing, name.optional())
const optionalText = z.preprocess(blankIsMissing, z.string().max(2000).optional())

function oneOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  return z.preprocess((value) => blankIsMissing(lowerCase(value)), z.enum(values))
}

const priority = z.preprocess((value) => {
  const said = blankIsMissing(lowerCase(value))
  return said === 'medium' ? 'normal' : said
}, z.enum(PRIORITIES).default('normal'))

export const sendMessage = defineCommand({
  type: 'send_message',
  summary: 'Send a message to another agent, or to everyone with to="*"',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: name.describe('The receiving agent, or * for everyone'),
    title: optionalText.describe("Subject; without one, the message's first line"),
    priority: priority.describe('low, normal, high, or urgent (urgent needs a permission)'),
    in_reply_to: optionalName.describe('The id of the message this one answers'),
    content: z.string().min(1, 'the message has no content').describe('The message itself'),
  }),
  body: 'content',
  speaker: 'from',
  example: 'orc send-message --from Master --to Worker --title "Calculate" "What is 15 + 27?"',
})

export const mailboxCheck = defineCommand({
  type: 'mailbox_check',
  summary: 'Get every message that waits for you',
  fields: z.object({ agent: optionalName.describe('Your own name') }),
  subject: { field: 'agent', permission: 'take_other_mail' },
  example: 'orc mailbox-check',
})

export const queryMailbox = defineCommand({
  type: 'query_mailbox',
  summary: 'Look at a mailbox without marking anything read',
  fields: z.object({
    agent: optionalName.describe('Whose mailbox; your own unless you were granted more'),
    filter: oneOf(['unread', 'all', 'urgent']).default('unread').describe('unread, all, or urgent'),
    after: optionalName.describe('Only messages after this id'),
  }),
  subject: { field: 'agent', permission: 'read_other_mailbox' },
  example: 'orc query-mailbox --agent Worker --filter unread',
})

export const updateStatus = defineCommand({
  type: 'update_status',
  summary: 'Say what you are doing',
  fields: z.object({
    agent: optionalName.describe('Your own name'),
    status: oneOf(DECLARED_STATUSES).describe('idle, working, blocked, or completed'),
    current_task: optionalText.describe('A few words on the current work'),
  }),
  body: 'current_task',
  subject: { field: 'agent', permission: 'update_other_status' },
  example: 'orc update-status --agent Worker --status working "Adding numbers"',
})

export const ACTIONS = [
  'spawn_agent',
  'terminate_agent',
  'reset_session',
  'pause_session',
  'resume_session',
] as const
export type Action = (typeof ACTIONS)[number]

export const requestAction = defineCommand({
  type: 'request_action',
  summary: 'Ask for an agent to be started, stopped, reset, paused or resumed',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    action: oneOf(ACTIONS).describe(ACTIONS.join(', ')),
    target: name.describe('The agent it is about'),
    reason: optionalText.describe('Why it is needed'),
  }),
  body: 'reason',
  speaker: 'from',
  example: 'orc request-action --action spawn_agent --target Worker --reason "there is work"',
})

export const queryState = defineCommand({
  type: 'query_state',
  summary: 'Look at the state of the whole system',
  fields: z.object({
    query: oneOf(['active_agents', 'communication_log', 'global_status']).describe(
      'active_agents, communication_log, or global_status',
    ),
    filter: oneOf(['last_10_minutes', 'specific_agent', 'all'])
      .default('all')
      .describe('last_10_minutes, specific_agent (with agent), or all'),
    agent: optionalName.describe('The agent meant by filter=specific_agent'),
  }),
  example: 'orc query-state --query communication_log --filter last_10_minutes',
})

export const listAgents = defineCommand({
  type: 'list_agents',
  summary: 'List the agents and their status',
  fields: z.object({}),
  example: 'orc list-agents',
})

export const contextStatus = defineCommand({
  type: 'context_status',
  summary: 'Report how much of your context is used',
  fields: z.object({ agent: optionalName.describe('Your own name') }),
  subject: { field: 'agent', permission: 'read_other_mailbox' },
  example: 'orc context-status',
})

export const acknowledge = defineCommand({
  type: 'acknowledge',
  summary: 'Confirm that you got messages, by their ids; what is not confirmed comes again',
  fields: z.object({
    agent: optionalName.describe('Your own name'),
    ids: z
      .union([z.array(z.string()), z.string().transform((text) => text.split(/[\s,]+/).filter(Boolean))])
      .pipe(z.array(z.string().min(1)).min(1, 'name at least one message id').max(1000))
      .describe('Message ids, separated by spaces or commas'),
  }),
  body: 'ids',
  subject: { field: 'agent', permission: 'take_other_mail' },
  example: 'orc acknowledge msg_12 msg_13',
})

export const BUILT_IN_COMMANDS = {
  send_message: sendMessage,
  mailbox_check: mailboxCheck,
  query_mailbox: queryMailbox,
  update_status: updateStatus,
  request_action: requestAction,
  query_state: queryState,
  list_agents: listAgents,
  context_status: contextStatus,
  acknowledge,
} as const

export type CommandType = keyof typeof BUILT_IN_COMMANDS
export type FieldsOf<T extends CommandType> = z.output<(typeof BUILT_IN_COMMANDS)[T]['fields']>

/** Fields that claim to name the speaker, in any codec. Claims are compared with the transport's word, never believed. */
export const CLAIMS: ReadonlySet<string> = new Set(['from', 'from_agent'])

/** A command as its speaker said it, before anyone judged it: what every codec yields. */
export interface SaidCommand {
  type: string
  fields: Record<string, unknown>
  /** Fields the codec already dropped because the command has no such parameter. */
  ignored?: readonly string[]
}

/** A command whose fields fit its schema. */
export interface Command<Fields = Record<string, unknown>> {
  type: string
  fields: Fields
}
