import { z } from 'zod'
import { DECLARED_STATUSES } from '../base/agent.ts'
import { PRIORITIES } from '../messages/message.ts'
import { REPORT_STATUSES } from '../tasks/task.ts'

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
  /** Where the command line lists a built-in command: `agent list`. Its type, `orc list-agents`, works as well. */
  shell?: string
  /** Success tells the speaker nothing new, so a listening agent isn't woken for the receipt. */
  confirmation?: true
  /** For what is only ever held and decided on: nobody is offered it. */
  hidden?: boolean
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
  shell: 'message check',
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
  shell: 'message query',
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
  shell: 'agent update-status',
  confirmation: true,
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
  shell: 'agent request-action',
  confirmation: true,
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
  shell: 'service query-state',
})

export const listAgents = defineCommand({
  type: 'list_agents',
  summary: 'List the agents and their status',
  fields: z.object({}),
  example: 'orc list-agents',
  shell: 'agent list',
})

export const contextStatus = defineCommand({
  type: 'context_status',
  summary: 'Report how much of your context is used',
  fields: z.object({ agent: optionalName.describe('Your own name') }),
  subject: { field: 'agent', permission: 'read_other_mailbox' },
  example: 'orc context-status',
  shell: 'agent context',
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
  shell: 'message acknowledge',
  confirmation: true,
})

/** Text notations know no booleans. */
function toBoolean(value: unknown): unknown {
  const said = blankIsMissing(lowerCase(value))
  if (said === 'true' || said === 'yes') return true
  return said === 'false' || said === 'no' ? false : said
}

const yesOrNo = (otherwise: boolean) => z.preprocess(toBoolean, z.boolean().default(otherwise))

/** An object in JSON; elsewhere JSON in a text, or simply words. */
const taskContext = z.preprocess((value) => {
  const said = blankIsMissing(value)
  if (typeof said !== 'string') return said
  try {
    const parsed: unknown = JSON.parse(said)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed
  } catch {
    // Words, not JSON.
  }
  return { note: said }
}, z.record(z.string(), z.unknown()).optional())

/** A JSON schema: an object, elsewhere the same as a text. */
const jsonSchema = z.preprocess((value) => {
  const said = blankIsMissing(value)
  return typeof said === 'string' ? parsedJson(said) : said
}, z.record(z.string(), z.unknown(), 'it is no JSON object').optional())

const names = z.preprocess((value) => {
  const said = blankIsMissing(value)
  if (typeof said !== 'string') return said
  return said.startsWith('[') ? parsedJson(said) : said.split(/[,\n]+/).map((one) => one.trim())
}, z.array(name).max(20).optional())

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const ownId = optionalName.describe('An id of your own; a reply may name it')
const seconds = z.preprocess((value) => {
  const said = blankIsMissing(value)
  return typeof said === 'string' ? Number(said) : said
}, z.number().positive().max(86_400).optional())

export const delegate = defineCommand({
  type: 'delegate',
  summary: 'Give a task to an agent that reports to you; its report comes as a message',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: name.describe('The agent that is to do it'),
    task: z.string().trim().min(1, 'the task is empty').describe('What is to be done, complete in itself'),
    context: taskContext.describe('What the agent should know for it, as a JSON object or in words'),
    requires_response: yesOrNo(true).describe('false: you go on without its report'),
    checks: names.describe('Names of the checks that its work must pass, separated by commas'),
    judge: optionalName.describe('The model or agent that judges its work, if you may choose'),
    result_schema: jsonSchema.describe('A JSON schema that the reported result must fit'),
    timeout_seconds: seconds.describe('Working time, if not the usual one'),
    in_response_to: optionalName.describe('Your own task that this serves, if you have several'),
    message_id: ownId,
  }),
  body: 'task',
  speaker: 'from',
  example: 'orc delegate --from Master --to Worker "Find the cheapest flight from LAX"',
  shell: 'task delegate',
  confirmation: true,
})

export const report = defineCommand({
  type: 'report',
  summary: 'Report the result of a task to whoever gave it to you',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: optionalName.describe('Who gave you the task'),
    status: oneOf(REPORT_STATUSES).describe('completed, partial, or needs_help'),
    in_response_to: optionalName.describe('The task, such as task_7; may be left out if you have only one'),
    message_id: ownId,
    result: z.string().describe('The result itself, or what you need'),
  }),
  body: 'result',
  speaker: 'from',
  example: 'orc report --from Worker --in-response-to task_7 --status completed "It is 42."',
  shell: 'task report',
  confirmation: true,
})

export const query = defineCommand({
  type: 'query',
  summary: 'Ask whoever gave you a task, or an agent you gave one to; the answer comes as a message',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: optionalName.describe('Whom you ask; without it, who gave you the task'),
    question: z.string().trim().min(1, 'the question is empty').describe('The question'),
    requires_response: yesOrNo(true).describe('false: you go on without an answer'),
    in_response_to: optionalName.describe('Your task that it is about, if you have several'),
    message_id: ownId,
  }),
  body: 'question',
  speaker: 'from',
  example: 'orc query --from Worker --to Master "Price or convenience?"',
  shell: 'task query',
  confirmation: true,
})

export const answer = defineCommand({
  type: 'answer',
  summary: 'Answer a question that was put to you with query, or help with a task',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    to: optionalName.describe('Who asked'),
    in_response_to: optionalName.describe('The question, such as msg_12, or the task that it is about'),
    message_id: ownId,
    answer: z.string().describe('The answer'),
  }),
  body: 'answer',
  speaker: 'from',
  example: 'orc answer msg_12 "Price."',
  shell: 'task answer',
  confirmation: true,
})

const choices = z.preprocess((value) => {
  const said = blankIsMissing(value)
  if (typeof said !== 'string') return said
  if (said.trimStart().startsWith('[')) return parsedJson(said)
  const parts = said.split(/[,\n]+/).map((one) => one.trim())
  return parts.filter((one) => one !== '')
}, z.array(z.string().trim().min(1).max(500)).min(1).max(50).optional())

export const requestUserInput = defineCommand({
  type: 'request_user_input',
  summary: 'Ask a person; the answer comes as a message',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    question: z.string().trim().min(1, 'the question is empty').describe('The question'),
    context: optionalText.describe('Why you need to know it'),
    choices: choices.describe(
      'Answers to choose from: a JSON list of texts, or texts separated by commas or line ends',
    ),
    default: optionalText.describe('What an empty answer of the person means'),
    allow_other: yesOrNo(false).describe('true: besides the choices, any other answer will do'),
    awaiting_response: yesOrNo(true).describe(
      'false: your task does not wait; an answer comes as a message if it comes',
    ),
    in_response_to: optionalName.describe('Your task that it is about, if you have several'),
    message_id: ownId,
  }),
  body: 'question',
  speaker: 'from',
  example: 'orc request-user-input --from Worker "What is your departure city?"',
  shell: 'task ask-user',
  confirmation: true,
})

export const userResponse = defineCommand({
  type: 'user_response',
  summary: 'A person answers a question that an agent asked',
  fields: z.object({
    to: optionalName.describe('The agent that asked'),
    in_response_to: optionalName.describe('The request, such as req_3, or the task that it is about'),
    message_id: ownId,
    answer: z.string().describe('The answer'),
  }),
  body: 'answer',
  example: 'orc user-response --in-response-to req_3 "LAX"',
  shell: 'task user-response',
})

const claimNumber = z.preprocess((value) => {
  const said = blankIsMissing(value)
  return typeof said === 'string' ? Number(said) : said
}, z.int().min(1))

export const judge = defineCommand({
  type: 'judge',
  summary: 'Judge a claim that a task is done, when you are asked to',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    task_id: name.describe('The task, such as task_7'),
    claim: claimNumber.describe('The number of the claim that you judge'),
    completed: z.preprocess(toBoolean, z.boolean()).describe('true: the task is done as it was given'),
    reason: z
      .string()
      .trim()
      .min(1, 'the reason is empty')
      .max(10_000)
      .describe('Why, for the one who did it'),
  }),
  body: 'reason',
  speaker: 'from',
  example: 'orc judge --task-id task_7 --claim 1 --completed false "The tests are missing."',
  shell: 'task judge',
  confirmation: true,
})

export const TASK_ACTIONS = [
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

export const taskAction = defineCommand({
  type: 'task_action',
  summary:
    'Decide on a task that you gave: cancel it, follow it up, accept it; or ask for more time for yours',
  fields: z.object({
    from: optionalName.describe('Your own name'),
    task_id: name.describe('The task, such as task_7'),
    action: oneOf(TASK_ACTIONS).describe(TASK_ACTIONS.join(', ')),
    seconds: seconds.describe('With extend: how much more time'),
    text: z.string().default('').describe('What else is to be done, or why'),
  }),
  body: 'text',
  speaker: 'from',
  example: 'orc task-action --task-id task_7 --action follow_up "Take the train into account."',
  shell: 'task action',
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
