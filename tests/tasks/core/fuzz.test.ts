import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TaskEvent, TaskEventType } from '../../../src/tasks/core/events-and-effects.ts'
import { isLegal } from '../../../src/tasks/core/transitions.ts'
import { isEnd } from '../../../src/tasks/task.ts'
import { createWorld, MODEL, REVIEWER } from './world.ts'

const by = fc.constantFrom('lead', 'ada', 'bob', 'rev', 'operator', 'orchestrator', 'nobody')
const id = fc.constantFrom('q1', 'q2', 'q3', 'task_1', 'task_2', 'task_3', '')
const text = fc.constantFrom('Yes.', ' ', '')
const claim = fc.nat(3)
const flag = fc.boolean()

/** One entry per kind of event: a new kind does not compile until it is fuzzed. */
const FIELDS: { [T in TaskEventType]: fc.Arbitrary<Omit<Extract<TaskEvent, { type: T }>, 'type'>> } = {
  delegated: fc.record({}),
  acknowledged: fc.record({ by }),
  started: fc.record({ by }),
  ack_timed_out: fc.record({}),
  retry_due: fc.record({}),
  deadline_passed: fc.record({}),
  worker_exited: fc.record({ by, why: text }),
  worker_unreachable: fc.record({ by, why: text, recoverable: flag }),
  interrupted: fc.record({ interrupt: claim }),
  child_delegated: fc.record({ by, child: fc.constantFrom('task_2', 'task_3'), requiresResponse: flag }),
  query_asked: fc.record({ by, question: id, to: by, text, requiresResponse: flag }),
  user_asked: fc.record({ by, question: id, text }),
  approval_asked: fc.record({ by, question: id, text }),
  extension_requested: fc.record({ by, question: id, seconds: fc.double(), reason: text }),
  reported: fc.record({
    by,
    report: id,
    status: fc.constantFrom('completed', 'partial', 'needs_help'),
    result: text,
  }),
  turn_ended: fc.record({ by, responded: flag, lastWords: text }),
  answered: fc.record({ by, question: id, answer: text }),
  approval_decided: fc.record({
    by,
    question: id,
    verdict: fc.constantFrom('approved', 'modified', 'rejected', 'expired'),
    text,
  }),
  extension_granted: fc.record({ by, question: id }),
  extension_refused: fc.record({ by, question: id, reason: text }),
  question_expired: fc.record({ question: id }),
  wait_timed_out: fc.record({}),
  followed_up: fc.record({ by, text }),
  settled: fc.record({ by, as: fc.constantFrom('completed', 'failed', 'skipped'), reason: text }),
  cancelled: fc.record({ by, reason: text }),
  taken_over: fc.record({ by }),
  held: fc.record({ by, reason: text }),
  released: fc.record({ by }),
  validation_began: fc.record({ claim, step: fc.constantFrom('checks', 'judge') }),
  checks_passed: fc.record({ claim, evidence: text }),
  checks_failed: fc.record({ claim, evidence: text }),
  judged: fc.record({ by, claim, completed: flag, reason: text }),
  review_taken: fc.record({ by }),
  review_turn_ended: fc.record({ by, lastWords: text }),
  review_lost: fc.record({ by, why: text }),
  validation_gave_up: fc.record({ claim, why: text }),
  validation_timed_out: fc.record({}),
  child_changed: fc.record({ child: id }),
  parent_ended: fc.record({
    as: fc.constantFrom('completed', 'failed', 'cancelled', 'skipped'),
    reason: text,
  }),
}

const event = fc.oneof(
  ...Object.entries(FIELDS).map(([type, fields]) => fields.map((rest) => ({ ...rest, type }) as TaskEvent)),
)
const ACTS = fc.array(
  fc.record({
    task: fc.constantFrom('task_1', 'task_2', 'task_3'),
    event,
    wait: fc.constantFrom(0, 0, 0, 1, 31, 700),
  }),
  { maxLength: 40 },
)

describe('random events from random senders', () => {
  it('never throw, leave an end state or break the transition table, and have no effect if refused (C6)', () => {
    fc.assert(
      fc.property(ACTS, (acts) => {
        const world = createWorld()
        world.delegate({ agent: 'lead' })
        world.delegate({ agent: 'ada', under: 'task_1', checks: ['tests'], judge: MODEL })
        world.delegate({ agent: 'bob', under: 'task_2', judge: REVIEWER, requiresResponse: false })
        for (const { task: id, event, wait } of acts) {
          const before = world.task(id)
          const effects = world.effects.length
          const stepped = world.say(id, event)
          const after = world.task(id)
          if (!stepped.ok) expect([after, world.effects.length]).toEqual([before, effects])
          expect(isLegal(before, after)).toBe(true)
          if (isEnd(before.state))
            expect(after).toEqual({ ...before, version: after.version, interrupting: after.interrupting })
          world.pass(wait)
        }
      }),
      { numRuns: 500 },
    )
  })
})
