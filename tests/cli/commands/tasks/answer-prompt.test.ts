import { describe, expect, it } from 'vitest'
import { readDecision } from '../../../../src/cli/commands/tasks/answer-prompt.ts'
import type { HumanRequest } from '../../../../src/cli/output/request-text.ts'

const request = (given: Partial<HumanRequest>): HumanRequest => ({
  id: 'req_1',
  kind: 'input',
  state: 'open',
  asker: 'Worker',
  question: 'What now?',
  reason: 'Worker asks',
  quorum: 1,
  approvals: [],
  decisions: ['answer'],
  created_at: '2030-01-01T00:00:00.000Z',
  expires_at: '2030-01-02T00:00:00.000Z',
  ...given,
})

describe('the text typed at a request', () => {
  it('is the answer to a question, whatever it says (S2.5)', () => {
    expect(readDecision(request({}), 'approve')).toEqual({ decision: 'answer', comment: 'approve' })
  })

  it('must be approve or reject if a worker asks for more time (S3.19)', () => {
    const extension = request({ decisions: ['approve', 'reject'] })
    expect(readDecision(extension, 'approve')).toEqual({ decision: 'approve' })
    expect(readDecision(extension, 'reject: it takes too long')).toEqual({
      decision: 'reject',
      comment: 'it takes too long',
    })
    expect(readDecision(extension, 'well')).toBeUndefined()
  })

  it('approves exactly the command that was shown, by its hash (C9)', () => {
    const action = { type: 'send_message', fields: {}, hash: 'c0ffee' }
    const held = request({ kind: 'approval', decisions: ['approve', 'reject', 'modify'], action })
    expect(readDecision(held, 'approve')).toEqual({ decision: 'approve', hash: 'c0ffee' })
  })

  it('answers a task that needs help if it is neither approve nor reject', () => {
    const plea = request({ kind: 'escalation', decisions: ['approve', 'reject', 'answer'] })
    expect(readDecision(plea, 'use the other one')).toEqual({
      decision: 'answer',
      comment: 'use the other one',
    })
    // A notice is dismissed with approve and accepts no answer.
    expect(readDecision(request({ kind: 'escalation', decisions: ['approve'] }), 'fine')).toBeUndefined()
  })
})
