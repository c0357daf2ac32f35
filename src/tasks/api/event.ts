import { z } from 'zod'
import { DELIVERY_STATES, TASK_MESSAGE_KINDS } from '../../messages/message.ts'
import { HUMAN_REQUEST_KINDS, HUMAN_REQUEST_STATES } from '../../people/human-request.ts'
import { TASK_STATES } from '../task.ts'

const about = {
  seq: z.number().describe('Number of the audit entry, for Last-Event-ID'),
  at: z.string(),
  task_id: z.string(),
}
const excerpt = z.string().describe('Beginning of the text')

/** Events of a tree of tasks (S2.9, S2.18). */
export const TaskStreamEventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('selected').describe('Agents were chosen'),
    ...about,
    agent: z.string().describe('The root agent, which answers'),
    chosen: z.array(z.string()),
    why: z.string(),
    by: z.enum(['model', 'keywords']),
    unknown: z.array(z.string()).describe('Names that the model invented'),
    root_why: z.string().optional(),
  }),
  z.object({
    type: z.literal('delegated'),
    ...about,
    parent: z.string().optional(),
    from: z.string(),
    to: z.string(),
    text: excerpt,
  }),
  z.object({
    type: z.literal('state'),
    ...about,
    agent: z.string(),
    state: z.enum(TASK_STATES),
    attempt: z.number(),
    text: z.string().describe('The state in words, with the reason'),
  }),
  z.object({
    type: z.literal('message'),
    ...about,
    message_id: z.string(),
    from: z.string(),
    to: z.string(),
    kind: z.enum(TASK_MESSAGE_KINDS),
    text: excerpt,
    delivery: z.enum(DELIVERY_STATES).optional().describe('In a trace: the current delivery state'),
    attempts: z.number().optional().describe('In a trace: number of delivery attempts'),
  }),
  z.object({
    type: z.literal('asked').describe('A request to a person'),
    ...about,
    request_id: z.string(),
    kind: z.enum(HUMAN_REQUEST_KINDS),
    from: z.string(),
    text: excerpt,
    awaits: z.boolean().describe('False: a notice; no verdict is expected'),
  }),
  z.object({
    type: z.literal('verdict'),
    ...about,
    request_id: z.string(),
    verdict: z.enum(HUMAN_REQUEST_STATES).describe('Never open'),
    by: z.string(),
    to: z.string().optional().describe('The asker'),
    text: excerpt,
  }),
  z.object({
    type: z.literal('evidence').describe('Result of a check or the judge'),
    ...about,
    agent: z.string(),
    step: z.string(),
    outcome: z.string(),
    text: excerpt,
  }),
  z.object({
    type: z.literal('note'),
    ...about,
    text: z.string(),
    request_id: z.string().optional().describe('The request to people that the note is about'),
  }),
  z.object({
    type: z.literal('halt').describe('A halt began or ended'),
    ...about,
    over: z.boolean().describe('True: the halt ended'),
    by: z.string(),
    text: z.string(),
  }),
  z.object({
    type: z.literal('end').describe('The followed task has ended; the last event'),
    ...about,
    agent: z.string(),
    state: z.enum(TASK_STATES),
    result: z.string().optional().describe('The whole result'),
    reason: z.string().optional(),
  }),
])

export type TaskStreamEvent = z.output<typeof TaskStreamEventSchema>
