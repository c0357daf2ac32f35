import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeTeamMessage,
  encodeTeamMessage,
  readTeamMessage,
  type TaskCompletion,
  type TaskDelegation,
  type TeamMessage,
} from '../../../src/github/core/protocol.ts'

/** The example messages of the seed, with one value of each alternative. */
const EXAMPLES = JSON.parse(readFileSync(new URL('examples.json', import.meta.url), 'utf8')) as Record<
  string,
  Record<string, unknown>
>

function decoded(value: unknown): TeamMessage {
  const result = decodeTeamMessage(JSON.stringify(value))
  if (!result.ok) throw new Error(result.error)
  return result.value
}

function problemOf(value: unknown): string {
  const result = decodeTeamMessage(JSON.stringify(value))
  return result.ok ? '' : result.error
}

const completion = EXAMPLES.task_completion!

describe('the messages of the GitHub team', () => {
  it.each(Object.keys(EXAMPLES))('decode and encode the example %s without a change (S3.3–S3.16)', (name) => {
    const message = decoded(EXAMPLES[name])
    expect(JSON.parse(encodeTeamMessage(message))).toEqual(EXAMPLES[name])
  })

  it('use our field names inside the service: id, type, from, to, inReplyTo, taskId, at (C10)', () => {
    const message = decoded(completion) as TaskCompletion
    expect(message).toMatchObject({
      type: 'task_completion',
      id: 'unique_uuid',
      inReplyTo: 'original_message_id',
      taskId: 'original_task_id',
      at: '2025-10-20T14:30:15Z',
      from: 'concierge',
      to: 'orchestrator',
      actionsTaken: [
        { actionType: 'label_applied', at: '2025-10-20T14:30:05Z', details: { issue_number: 123 } },
      ],
    })
  })

  it('without a task_id get the id of the delegation (C10)', () => {
    const { task_id: _, ...without } = completion
    expect(decoded(without)).toMatchObject({ taskId: 'original_message_id' })
  })

  it("accept present and future values of GitHub's enumerations (C19)", () => {
    const delegation = structuredClone(EXAMPLES.task_delegation) as {
      to_agent: string
      event_context: { event_type: string }
      context: { user: { author_association: string }; content: { state: string } }
    }
    delegation.to_agent = 'gardener'
    delegation.event_context.event_type = 'discussion.answered'
    delegation.context.user.author_association = 'MANNEQUIN'
    delegation.context.content.state = 'merged'
    expect((decoded(delegation) as TaskDelegation).context.user?.authorAssociation).toBe('MANNEQUIN')
  })

  it.each([
    [
      'a rationale of 1,001 characters',
      { rationale: 'x'.repeat(1001) },
      'rationale: is over 1000 characters',
    ],
    [
      '51 actions',
      { actions_taken: Array.from({ length: 51 }, () => ({ action_type: 'a' })) },
      'more than 50 actions',
    ],
    ['success without confidence', { confidence_score: undefined }, 'may be missing on failure only'],
    ['a confidence over 1', { confidence_score: 1.1 }, 'confidence_score'],
    [
      'a failure without an error',
      { status: 'failure', confidence_score: undefined },
      'a failure must describe the error',
    ],
    ['a status of its own', { status: 'sort_of' }, 'status'],
    ['a time that is none', { timestamp: 'yesterday' }, 'timestamp'],
    ['no in_reply_to', { in_reply_to: undefined }, 'in_reply_to'],
    ['an unknown type', { message_type: 'gossip' }, 'message_type is "gossip"'],
  ])('are rejected with %s (S3.17, S3.18, C10)', (_, change, problem) => {
    expect(problemOf({ ...completion, ...change })).toContain(problem)
  })

  it('may have 1,000 characters beyond the basic plane, and 50 actions (S3.18)', () => {
    const actions_taken = Array.from({ length: 50 }, () => ({ action_type: 'label_applied', details: {} }))
    expect(problemOf({ ...completion, rationale: '🙂'.repeat(1000), actions_taken })).toBe('')
    expect(problemOf({ ...completion, rationale: '🙂'.repeat(1001) })).toContain('1000 characters')
  })

  it('over 102,400 bytes are rejected as a whole, never cut (C20)', () => {
    const large = JSON.stringify({ ...completion, human_review_reason: 'ä'.repeat(52_000) })
    expect(decodeTeamMessage(large)).toMatchObject({
      ok: false,
      error: expect.stringContaining('the limit is 102400'),
    })
    const message = { ...decoded(completion), humanReviewReason: 'ä'.repeat(51_000) } as TaskCompletion
    expect(() => encodeTeamMessage(message)).toThrow(/too large/)
  })

  it('never throw on invalid input', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(readTeamMessage(value).ok).toBe(false)
        readTeamMessage({ ...completion, actions_taken: value, flags: value, error: value })
      }),
    )
    fc.assert(fc.property(fc.string(), (text) => void decodeTeamMessage(text)))
  })

  it('keep free fields with any keys unchanged', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string().filter((key) => key !== '__proto__'),
          fc.jsonValue(),
        ),
        (flags) => {
          const written = { ...completion, flags: JSON.parse(JSON.stringify(flags)) }
          expect(JSON.parse(encodeTeamMessage(decoded(written))).flags).toEqual(written.flags)
        },
      ),
    )
  })
})
