import { z } from 'zod'
import { DECLARED_STATUSES } from '../base/agent.ts'
import { PRIORITIES } from '../messages/message.ts'
import { REPORT_STATUSES } from '../tasks/task.ts'

/**
 * Describes a command for every notation (S0.16, S0.17, S1.23): modern and legacy XML, JSON, shell, HTTP and the prompts
 * all derive from it. Field names are those of the protocols that agents already know.
 */
export interface CommandDefinition {
  type: string
  summary: string
  fields: z.ZodObject
  /** The field filled by an element's body, a shell argument or standard input. */
  body?: string
  /** The field in which the sender may name itself: a claim, checked against the transport's identity (C3). */
  speaker?: string
  /** The field that names the agent concerned: the caller itself, unless it has `permission` (C14). */
  subject?: { field: string; permission: string }
  /** A shell invocation for `--help` and the docs. */
  example: string
  /** The place of a built-in command in the CLI: `agent list`. Its type, `orc list-agents`, works too. */
  shell?: string
  /** The command can destroy something: MCP clients ask a person before they call it. */
  destructive?: true
  /** Success carries no information, so a listening agent isn't woken for the receipt. */
  confirmation?: true
  /**
   * Who may send it. Default: everyone. `people`: it is in no prompt or tool list, and the door refuses it to agents.
   * `nobody`: the service creates it itself, for people to decide on.
   */
  audience?: 'people' | 'nobody'
  /** Describes the details of its receipt: the body of its HTTP route's response. */
  details?: z.ZodObject
}

export function defineCommand<const Definition extends CommandDefinition>(
  definition: Definition,
): Definition {
  return definition
}

/** The part of an HTTP route that its command determines. A route with path parameters takes them out of the body. */
export function routeOf<const Definition extends CommandDefinition & { details: z.ZodObject }>(
  definition: Definition,
) {
  return {
    command: definition.type,
    summary: definition.summary,
    body: definition.fields,
    answer: definition.details,
  } as {
    command: string
    summary: string
    body: Definition['fields']
    answer: Definition['details']
  }
}

/** Models write `title=""` for "no title", so an empty value counts as missing (C13). */
const blankIsMissing = (value: unknown) =>
  typeof value === 'string' && value.trim() === '' ? undefined : value
const lowerCase = (value: unknown) => (typeof value === 'string' ? value.trim().toLowerCase() : value)

const name = z.string().trim().min(1).max(200)
const optionalName = z.preprocess(blankIsMissing, name.optional())
const optionalText = z.preprocess(blankIsMissing, z.string().max(2000).optional())

function oneOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  return z.preprocess((value) => blankIsMissing(lowerCase(value)), z.enum(values))
}

/** Text notations write every value as text: `convert` turns it into the value that the schema expects. */
function fromText<Schema extends z.ZodType>(convert: (text: string) => unknown, schema: Schema) {
  return z.preprocess((value) => {
    const given = blankIsMissing(value)
    return typeof given === 'string' ? convert(given) : given
  }, schema)
}

const priority = z.preprocess((value) => {
  const given = blankIsMissing(lowerCase(value))
  return given === 'medium' ? 'normal' : given
}, z.enum(PRIORITIES).default('normal'))

export const sendMessage = defineCommand({
  type: 'send_message',
  summary: 'Send a message to another agent, or to everyone with to="*"',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: name.describe('The receiving agent, or * for everyone'),
    title: optionalText.describe("Subject. Default: the message's first line"),
    priority: priority.describe('low, normal, high, or urgent (urgent needs a permission)'),
    in_reply_to: optionalName.describe('The id of the message you reply to'),
    content: z.string().min(1, 'the message has no content').describe('The text of the message'),
  }),
  body: 'content',
  speaker: 'from',
  example: 'orc send-message --from Master --to Worker --title "Calculate" "What is 15 + 27?"',
})

const mailboxCheck = defineCommand({
  type: 'mailbox_check',
  summary: 'Get all messages waiting for you',
  fields: z.object({ agent: optionalName.describe('Your own name') }),
  subject: { field: 'agent', permission: 'take_other_mail' },
  example: 'orc mailbox-check',
  shell: 'message check',
})

const queryMailbox = defineCommand({
  type: 'query_mailbox',
  summary: 'Read a mailbox without marking messages as read',
  fields: z.object({
    agent: optionalName.describe('Owner of the mailbox. Default: you; others need a permission'),
    filter: oneOf(['unread', 'all', 'urgent']).default('unread').describe('unread, all, or urgent'),
    after: optionalName.describe('Only messages after this id'),
  }),
  subject: { field: 'agent', permission: 'read_other_mailbox' },
  example: 'orc query-mailbox --agent Worker --filter unread',
  shell: 'message query',
})

const updateStatus = defineCommand({
  type: 'update_status',
  summary: 'Report what you are doing',
  fields: z.object({
    agent: optionalName.describe('Your own name'),
    status: oneOf(DECLARED_STATUSES).describe('idle, working, blocked, or completed'),
    current_task: optionalText.describe('The current work in a few words'),
  }),
  body: 'current_task',
  subject: { field: 'agent', permission: 'update_other_status' },
  example: 'orc update-status --agent Worker --status working "Adding numbers"',
  shell: 'agent update-status',
  confirmation: true,
})

export const AGENT_ACTIONS = [
  'spawn_agent',
  'terminate_agent',
  'reset_session',
  'pause_session',
  'resume_session',
] as const
export type AgentAction = (typeof AGENT_ACTIONS)[number]

const requestAction = defineCommand({
  type: 'request_action',
  summary: 'Start, stop, reset, pause or resume an agent',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    action: oneOf(AGENT_ACTIONS).describe(AGENT_ACTIONS.join(', ')),
    target: name.describe('The agent to act on'),
    reason: optionalText.describe('Why the action is needed'),
  }),
  body: 'reason',
  speaker: 'from',
  example: 'orc request-action --action spawn_agent --target Worker --reason "there is work"',
  shell: 'agent request-action',
  destructive: true,
  confirmation: true,
})

const queryState = defineCommand({
  type: 'query_state',
  summary: 'Query the state of the whole team',
  fields: z.object({
    query: oneOf(['active_agents', 'communication_log', 'global_status']).describe(
      'active_agents, communication_log, or global_status',
    ),
    filter: oneOf(['last_10_minutes', 'specific_agent', 'all'])
      .default('all')
      .describe('last_10_minutes, specific_agent (with agent), or all'),
    agent: optionalName.describe('The agent for filter=specific_agent'),
  }),
  example: 'orc query-state --query communication_log --filter last_10_minutes',
  shell: 'service query-state',
})

const listAgents = defineCommand({
  type: 'list_agents',
  summary: 'List the agents and their status',
  fields: z.object({}),
  example: 'orc list-agents',
  shell: 'agent list',
})

const contextStatus = defineCommand({
  type: 'context_status',
  summary: 'Show how much of your context is used',
  fields: z.object({ agent: optionalName.describe('Your own name') }),
  subject: { field: 'agent', permission: 'read_other_mailbox' },
  example: 'orc context-status',
  shell: 'agent context',
})

const acknowledge = defineCommand({
  type: 'acknowledge',
  summary: 'Confirm messages by their ids; unconfirmed messages are delivered again',
  fields: z.object({
    agent: optionalName.describe('Your own name'),
    ids: z
      .union([z.array(z.string()), z.string().transform((text) => text.split(/[\s,]+/).filter(Boolean))])
      .pipe(z.array(z.string().min(1)).min(1, 'give at least one message id').max(1000))
      .describe('Message ids, separated by spaces or commas'),
  }),
  body: 'ids',
  subject: { field: 'agent', permission: 'take_other_mail' },
  example: 'orc acknowledge msg_12 msg_13',
  shell: 'message acknowledge',
  confirmation: true,
})

function toBoolean(value: unknown): unknown {
  const given = blankIsMissing(lowerCase(value))
  if (given === 'true' || given === 'yes') return true
  return given === 'false' || given === 'no' ? false : given
}

const yesOrNo = (otherwise: boolean) => z.preprocess(toBoolean, z.boolean().default(otherwise))

/** A JSON object; in text notations JSON text or plain words. */
const taskContext = fromText((text) => {
  const parsed = parsedJson(text)
  return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? parsed : { note: text }
}, z.record(z.string(), z.unknown()).optional())

/** A JSON schema: an object, or JSON text in text notations. */
const jsonSchema = fromText(parsedJson, z.record(z.string(), z.unknown(), 'must be a JSON object').optional())

const names = fromText(
  (text) => (text.startsWith('[') ? parsedJson(text) : text.split(/[,\n]+/).map((one) => one.trim())),
  z.array(name).max(20).optional(),
)

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const ownId = optionalName.describe('Your own id for this message; a reply can refer to it')
const seconds = fromText(Number, z.number().positive().max(86_400).optional())

export const delegate = defineCommand({
  type: 'delegate',
  summary: 'Delegate a task to an agent that reports to you; its report arrives as a message',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: name.describe('The agent that does the task'),
    task: z.string().trim().min(1, 'the task is empty').describe('The complete task'),
    context: taskContext.describe('Background for the task, as a JSON object or plain text'),
    requires_response: yesOrNo(true).describe('false: continue without waiting for the report'),
    checks: names.describe('Names of the checks that the work must pass, separated by commas'),
    judge: optionalName.describe('The model or agent that judges the work; needs a permission'),
    result_schema: jsonSchema.describe('A JSON schema that the result must match'),
    timeout_seconds: seconds.describe('Time limit in seconds. Default: the configured one'),
    in_response_to: optionalName.describe('Your own task that this is part of, if you have several'),
    message_id: ownId,
  }),
  body: 'task',
  speaker: 'from',
  example: 'orc delegate --from Master --to Worker "Find the cheapest flight from LAX"',
  shell: 'task delegate',
  confirmation: true,
})

const report = defineCommand({
  type: 'report',
  summary: 'Report the result of a task that was delegated to you',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: optionalName.describe('The agent or person that delegated the task'),
    status: oneOf(REPORT_STATUSES).describe('completed, partial, or needs_help'),
    in_response_to: optionalName.describe('The task, such as task_7; optional if you have only one'),
    message_id: ownId,
    result: z.string().describe('The result, or what you need'),
  }),
  body: 'result',
  speaker: 'from',
  example: 'orc report --from Worker --in-response-to task_7 --status completed "It is 42."',
  shell: 'task report',
  confirmation: true,
})

const query = defineCommand({
  type: 'query',
  summary:
    'Ask the agent that delegated a task to you, or one you delegated to; the answer arrives as a message',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: optionalName.describe('The agent to ask. Default: the one that delegated your task'),
    question: z.string().trim().min(1, 'the question is empty').describe('The question'),
    requires_response: yesOrNo(true).describe('false: continue without waiting for an answer'),
    in_response_to: optionalName.describe('Your task that the question is about, if you have several'),
    message_id: ownId,
  }),
  body: 'question',
  speaker: 'from',
  example: 'orc query --from Worker --to Master "Price or convenience?"',
  shell: 'task query',
  confirmation: true,
})

const answer = defineCommand({
  type: 'answer',
  summary: 'Answer a query, or help with a task',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: optionalName.describe('The agent that asked'),
    in_response_to: optionalName.describe('The question, such as msg_12, or its task'),
    message_id: ownId,
    answer: z.string().describe('The answer'),
  }),
  body: 'answer',
  speaker: 'from',
  example: 'orc answer msg_12 "Price."',
  shell: 'task answer',
  confirmation: true,
})

const choices = fromText((text) => {
  if (text.trimStart().startsWith('[')) return parsedJson(text)
  const parts = text.split(/[,\n]+/).map((one) => one.trim())
  return parts.filter((one) => one !== '')
}, z.array(z.string().trim().min(1).max(500)).min(1).max(50).optional())

const requestUserInput = defineCommand({
  type: 'request_user_input',
  summary: 'Ask a person; the answer arrives as a message',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    question: z.string().trim().min(1, 'the question is empty').describe('The question'),
    context: optionalText.describe('Why you are asking'),
    choices: choices.describe(
      'Answers to choose from: a JSON list of texts, or texts separated by commas or line breaks',
    ),
    default: optionalText.describe('The answer to assume if the person leaves it empty'),
    allow_other: yesOrNo(false).describe('true: also accept answers that are not among the choices'),
    awaiting_response: yesOrNo(true).describe('false: your task does not wait for the answer'),
    in_response_to: optionalName.describe('Your task that the question is about, if you have several'),
    message_id: ownId,
  }),
  body: 'question',
  speaker: 'from',
  example: 'orc request-user-input --from Worker "What is your departure city?"',
  shell: 'task ask-user',
  confirmation: true,
})

const userResponse = defineCommand({
  type: 'user_response',
  summary: "Answer an agent's question as a person",
  fields: z.object({
    to: optionalName.describe('The agent that asked'),
    in_response_to: optionalName.describe('The request, such as req_3, or its task'),
    message_id: ownId,
    answer: z.string().describe('The answer'),
  }),
  body: 'answer',
  example: 'orc user-response --in-response-to req_3 "LAX"',
  shell: 'task user-response',
})

const judge = defineCommand({
  type: 'judge',
  summary: 'Judge whether a task is done, when you are asked to',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    task_id: name.describe('The task, such as task_7'),
    claim: fromText(Number, z.int().min(1)).describe('The number of the claim to judge'),
    completed: z.preprocess(toBoolean, z.boolean()).describe('true: the task is done as requested'),
    reason: z
      .string()
      .trim()
      .min(1, 'the reason is empty')
      .max(10_000)
      .describe('Your reasons, for the agent that did the work'),
  }),
  body: 'reason',
  speaker: 'from',
  example: 'orc judge --task-id task_7 --claim 1 --completed false "The tests are missing."',
  shell: 'task judge',
  confirmation: true,
})

const TASK_ACTIONS = [
  'cancel',
  'follow_up',
  'accept',
  'fail',
  'skip',
  'extend',
  'grant_extension',
  'refuse_extension',
  'take_over',
  'hold',
  'release',
] as const
export type TaskAction = (typeof TASK_ACTIONS)[number]

const taskAction = defineCommand({
  type: 'task_action',
  summary:
    'Cancel, follow up, accept or otherwise decide a task you delegated, or request more time for your own',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    task_id: name.describe('The task, such as task_7'),
    action: oneOf(TASK_ACTIONS).describe(TASK_ACTIONS.join(', ')),
    seconds: seconds.describe('With extend: additional time in seconds'),
    text: z.string().default('').describe('Further instructions, or the reason'),
  }),
  body: 'text',
  speaker: 'from',
  example: 'orc task-action --task-id task_7 --action follow_up "Take the train into account."',
  shell: 'task action',
  destructive: true,
  confirmation: true,
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
  delegate,
  report,
  query,
  answer,
  request_user_input: requestUserInput,
  user_response: userResponse,
  judge,
  task_action: taskAction,
} as const

export type CommandType = keyof typeof BUILT_IN_COMMANDS
export type FieldsOf<T extends CommandType> = z.output<(typeof BUILT_IN_COMMANDS)[T]['fields']>

/** Fields that claim to name the sender, in any notation. They are checked against the transport's identity, never trusted. */
export const CLAIMS: ReadonlySet<string> = new Set(['from', 'from_agent'])

/** A decoded command before validation: the output of every codec. */
export interface RawCommand {
  type: string
  fields: Record<string, unknown>
  /** Fields that the codec dropped because the command doesn't have them. */
  ignored?: readonly string[]
}

/** A command whose fields match its schema. */
export interface Command<Fields = Record<string, unknown>> {
  type: string
  fields: Fields
}
