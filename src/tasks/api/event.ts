import { z } from 'zod'
import { DELIVERY_STATES, TASK_MESSAGE_KINDS } from '../../messages/message.ts'
import { HUMAN_REQUEST_KINDS, HUMAN_REQUEST_STATES } from '../../people/human-request.ts'
import { TASK_STATES } from '../task.ts'

const about = {
  seq: z.number().describe("The audit's number of it: Last-Event-ID"),
  at: z.string(),
  task_id: z.string(),
}
const excerpt = z.string().describe('Its beginning')

/** What happens in a tree of tasks, one thing at a time (S2.9, S2.18). */
export const TaskStreamEventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('selected').describe('Who is needed was chosen'),
    ...about,
    agent: z.string().describe('The root: who answers'),
    chosen: z.array(z.string()),
    why: z.string(),
    by: z.enum(['model', 'keywords']),
    unknown: z.array(z.string()).describe('What the model named that is not there'),
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
    text: z.string().describe('The same in words, with the reason'),
  }),
  z.object({
    type: z.literal('message'),
    ...about,
    message_id: z.string(),
    from: z.string(),
    to: z.string(),
    kind: z.enum(TASK_MESSAGE_KINDS),
    text: excerpt,
    delivery: z.enum(DELIVERY_STATES).optional().describe('In a trace: how far it has come by now'),
    attempts: z.number().optional().describe('In a trace: how often it was given'),
  }),
  z.object({
    type: z.literal('asked').describe('A person is asked'),
    ...about,
    request_id: z.string(),
    kind: z.enum(HUMAN_REQUEST_KINDS),
    from: z.string(),
    text: excerpt,
    awaits: z.boolean().describe('False: it is only told to people, nothing waits for a verdict'),
  }),
  z.object({
    type: z.literal('verdict'),
    ...about,
    request_id: z.string(),
    verdict: z.enum(HUMAN_REQUEST_STATES).describe('Never open'),
    by: z.string(),
    to: z.string().optional().describe('Who had asked'),
    text: excerpt,
  }),
  z.object({
    type: z.literal('evidence').describe('What a check or the judge found'),
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
    request_id: z.string().optional().describe('What people were asked, where it is about that'),
  }),
  z.object({
    type: z.literal('halt').describe('Everything was stopped, or goes on'),
    ...about,
    over: z.boolean().describe('True: it goes on'),
    by: z.string(),
    text: z.string(),
  }),
  z.object({
    type: z.literal('end').describe('The task that is followed has ended; nothing comes after it'),
    ...about,
    agent: z.string(),
    state: z.enum(TASK_STATES),
    result: z.string().optional().describe('Whole'),
    reason: z.string().optional(),
  }),
])

export type TaskStreamEvent = z.output<typeof TaskStreamEventSchema>
