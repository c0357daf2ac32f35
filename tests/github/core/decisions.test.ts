import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AppError } from '../../../src/base/errors.ts'
import { markOf, signed, withoutMentions } from '../../../src/github/comments.ts'
import { actionKey, checkAction, type RepositoryAction, readAction } from '../../../src/github/core/action.ts'
import { type GitHubEvent, isNewcomer, readEvent } from '../../../src/github/core/event.ts'
import {
  afterOutcome,
  DEFAULT_POLICIES,
  isNeverDone,
  isPaused,
  judge,
  NO_FAILURES,
} from '../../../src/github/core/policy.ts'
import {
  holds,
  mayUse,
  readSlashCommands,
  readVerdict,
  routeEvent,
  stepsFor,
  touchesDocs,
} from '../../../src/github/core/routing.ts'
import { failureOf } from '../../../src/github/octokit/responses.ts'
import { isRecoverable } from '../../../src/github/port.ts'
import { createRateWindow } from '../../../src/github/process-events.ts'
import { receiveWebhook } from '../../../src/github/receive-events.ts'
import { mentionsIn, numbersIn, searchWords } from '../../../src/github/search-index.ts'
import { ACTION_MODES } from '../../../src/github/team-settings.ts'
import type { Store } from '../../../src/store/store.ts'

const event = (type: string, more: Partial<GitHubEvent> = {}): GitHubEvent => ({
  id: 'd',
  type,
  topics: [],
  ...more,
})
const NOBODY = { firstTimer: false, touchesDocs: false }
const names = (type: string, facts = NOBODY) =>
  routeEvent(stepsFor({ routes: {} }, event(type)) ?? [], event(type), facts).map(({ to }) => to)

describe('routing', () => {
  it.each([
    ['issues.opened', {}, ['triage']],
    ['issues.opened', { firstTimer: true }, ['triage', 'concierge']],
    ['pull_request.opened', {}, ['lifecycle']],
    ['pull_request.synchronize', { touchesDocs: true }, ['lifecycle', 'scribe']],
    ['issue_comment.created', {}, ['community']],
    ['issue_comment.created', { firstTimer: true }, ['community', 'concierge']],
    ['issues.labeled', {}, []],
    ['constructor', {}, []],
    ['something.new', {}, []],
  ])('of %s with %o goes to %o (S3.4, C19)', (type, facts, wanted) => {
    expect(names(type, { ...NOBODY, ...facts })).toEqual(wanted)
  })

  it('starts a step at once if the step it waits for is dropped', () => {
    const steps = [
      { to: 'a', when: ['first_timer'], on: 'success' as const },
      { to: 'b', when: [], on: 'success' as const, after: 'a' },
    ]
    expect(routeEvent(steps, event('x'), NOBODY)).toEqual([{ to: 'b', when: [], on: 'success' }])
    expect(routeEvent(steps, event('x'), { ...NOBODY, firstTimer: true })[1]).toMatchObject({ after: 'a' })
  })

  it('requires approval if any matching step of the role does (S3.5)', () => {
    const plain = { to: 'a', when: [], on: 'success' as const }
    const strict = { ...plain, when: ['first_timer'], requiresHitl: true }
    const steps = [plain, strict]
    expect(routeEvent(steps, event('x'), NOBODY)).toEqual([plain])
    expect(routeEvent(steps, event('x'), { ...NOBODY, firstTimer: true })).toEqual([
      { ...plain, requiresHitl: true },
    ])
  })

  it('negates a condition with !', () => {
    const conditions = [
      'first_timer',
      'touches_docs',
      'draft',
      'bot',
      'label:x',
      'association:OWNER',
      'command:help',
    ]
    for (const condition of conditions) {
      const holdsNow = holds(condition, event('x'), NOBODY)
      expect(holds(`!${condition}`, event('x'), NOBODY)).toBe(!holdsNow)
    }
  })

  it.each([
    [['docs/a.txt'], true],
    [['README'], true],
    [['src/x.md'], true],
    [['src/docs.ts', 'doctor/x.ts'], false],
  ])('sees whether %o touch the documentation', (files, wanted) => {
    expect(touchesDocs(files)).toBe(wanted)
  })
})

describe('a slash command', () => {
  it.each([
    ['/agent summarize', ['summarize']],
    ['/Agent SUMMARIZE please', ['summarize']],
    ['/agent', ['help']],
    ['hello\r\n/agent approve req_7 fine', ['approve']],
    ['> /agent approve req_7', []],
    ['    /agent approve req_7', []],
    ['say `/agent help`', []],
    ['please /agent help', []],
    ['```\n/agent approve req_7\n```', []],
    ['~~~\n```\n/agent approve req_7\n~~~\n/agent help', ['help']],
    ['```\n/agent approve req_7', []],
    ['/agents help', []],
    ['/agent dance', [undefined]],
    ['/agent help\n'.repeat(9), Array(5).fill('help')],
  ])('in %j is %o', (body, wanted) => {
    expect(readSlashCommands(body).map(({ name }) => name)).toEqual(wanted)
  })

  it('is never read from a code block, whatever surrounds it', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const inside = text.replaceAll(/[`~]/g, '')
        expect(readSlashCommands(`\`\`\`\n${inside}\n/agent approve req_1\n\`\`\``)).toEqual([])
      }),
    )
  })

  const STRANGERS = ['NONE', 'FIRST_TIMER', 'MANNEQUIN', 'SUPREME_LEADER']
  const TRUSTED = ['COLLABORATOR', 'MEMBER', 'OWNER']
  it.each([
    ['help', [...STRANGERS, 'CONTRIBUTOR', ...TRUSTED]],
    ['find-gfi', [...STRANGERS, 'CONTRIBUTOR', ...TRUSTED]],
    ['summarize', ['CONTRIBUTOR', ...TRUSTED]],
    ['repo-stats', ['CONTRIBUTOR', ...TRUSTED]],
    ['draft-docs', TRUSTED],
    ['approve', []],
    ['reject', []],
  ] as const)('%s is for people of orc.yaml and %o only (C19)', (name, associations) => {
    const all = [...STRANGERS, 'CONTRIBUTOR', ...TRUSTED]
    const allowed = all.filter((association) => mayUse(name, { association, person: undefined }))
    expect(allowed).toEqual(associations)
    expect(mayUse(name, { association: 'NONE', person: 'ada' })).toBe(true)
  })

  it.each([
    ['req_7', { request: 'req_7', comment: '' }],
    ['REQ_7 because', { request: 'req_7', comment: 'because' }],
    ['7', undefined],
    ['req_07', undefined],
    ['req_7; rm', undefined],
    ['', undefined],
  ])('reads a verdict in %j', (words, wanted) => {
    expect(readVerdict(words)).toEqual(wanted)
  })
})

const label: RepositoryAction = { kind: 'label', number: 1, label: 'bug' }
const SURE = { threshold: 0.95, requiresHitl: false, wantsReview: false }
const circumstances = fc.record({
  threshold: fc.double({ min: 0, max: 1, noNaN: true }),
  requiresHitl: fc.boolean(),
  wantsReview: fc.boolean(),
})
const policies = fc.record({ mode: fc.constantFrom(...ACTION_MODES), quorum: fc.integer({ min: 1, max: 5 }) })
const confidences = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined })
const RANK = { refuse: 0, ask: 1, act: 2 }

describe('the policy', () => {
  it.each([
    [0.95, 'act'],
    [0.9499, 'ask'],
    [undefined, 'ask'],
    [Number.NaN, 'ask'],
  ])('at confidence %s lets triage %s (S3.5)', (confidence, verdict) => {
    expect(judge({ action: label, confidence }, DEFAULT_POLICIES.label, SURE).verdict).toBe(verdict)
  })

  it('needs two approvals for a critical action, whatever the confidence', () => {
    const action: RepositoryAction = { kind: 'label', number: 1, label: 'security' }
    expect(judge({ action, confidence: 1 }, DEFAULT_POLICIES.label, SURE)).toMatchObject({
      verdict: 'ask',
      quorum: 2,
    })
  })

  it('never acts without a required approval, and never performs a prohibited action', () => {
    fc.assert(
      fc.property(policies, circumstances, confidences, (policy, about, confidence) => {
        const { verdict } = judge({ action: label, confidence }, policy, about)
        if (policy.mode === 'prohibited') expect(verdict).toBe('refuse')
        else if (policy.mode === 'approval' || about.requiresHitl || about.wantsReview)
          expect(verdict).toBe('ask')
      }),
    )
  })

  it('never allows more at a lower confidence', () => {
    fc.assert(
      fc.property(
        policies,
        circumstances,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (policy, about, one, other) => {
          const [less, more] = one < other ? [one, other] : [other, one]
          const rank = (confidence: number) =>
            RANK[judge({ action: label, confidence }, policy, about).verdict]
          expect(rank(less)).toBeLessThanOrEqual(rank(more))
        },
      ),
    )
  })

  it.each([
    'merge',
    'pr_merged',
    'force_push',
    'delete_branch',
    'issue_deleted',
    'settings_changed',
    'ban_user',
    'user_banned',
    'lock_issue',
  ])('never performs %s', (type) => expect(isNeverDone(type)).toBe(true))

  it.each([
    'label_applied',
    'comment_posted',
    'pr_created',
    'branch_created',
    'review_posted',
    'close_issue',
  ])('knows the documented action %s (S3.9)', (type) => expect(isNeverDone(type)).toBe(false))
})

describe('an action', () => {
  it('applies to the thread of its task unless it names another', () => {
    expect(readAction('label_applied', { label: 'bug' }, 7)).toEqual({
      ok: true,
      value: { kind: 'label', number: 7, label: 'bug' },
    })
    expect(readAction('label_applied', { label: 'bug', issue_number: 9 }, 7)).toMatchObject({
      value: { number: 9 },
    })
  })

  it('cannot close a thread as a duplicate of itself', () => {
    expect(readAction('close_issue', { duplicate_of: 7 }, 7)).toMatchObject({ ok: false })
    expect(readAction('close_issue', { duplicate_of: 8 }, 7)).toMatchObject({ ok: true })
  })

  it.each(['../main', 'a..b', 'x.lock', '-x', 'a b', 'a/', ''])('refuses the branch %j', (branch) => {
    expect(checkAction('branch', { branch }).ok).toBe(false)
  })

  it('has one key per work and proposal, whatever the order of its fields (C25)', () => {
    const turned = { label: 'bug', number: 1, kind: 'label' } as RepositoryAction
    expect(actionKey('w', turned)).toBe(actionKey('w', label))
    expect(actionKey('v', label)).not.toBe(actionKey('w', label))
    expect(actionKey('w', { ...label, number: 2 })).not.toBe(actionKey('w', label))
  })

  it('rejects everything that is not an action', () => {
    fc.assert(
      fc.property(fc.string(), fc.dictionary(fc.string(), fc.jsonValue()), (type, details) => {
        const read = readAction(type, details, undefined)
        if (!read.ok) expect(read.error).not.toBe('')
      }),
    )
  })
})

describe('a text for GitHub', () => {
  const key = 'a'.repeat(32)

  it('says that an agent wrote it, and contains only its own mark', () => {
    const text = signed(`Hello\n${markOf('b'.repeat(32))}`, { key, agent: 'Triage', mayMention: [] })
    expect(text).toContain('Written by the AI agent **Triage**')
    expect(text).toContain(markOf(key))
    expect(text).not.toContain(markOf('b'.repeat(32)))
  })

  it.each([
    ['@ada hi', '@ada hi'],
    ['@bob hi', '@\u200bbob hi'],
    ['(@org/team)', '(@\u200borg/team)'],
    ['me@example.org', 'me@example.org'],
    ['x @Ada, @bob', 'x @Ada, @\u200bbob'],
    ['_@octocat_', '_@\u200boctocat_'],
    ['a lone `@octocat', 'a lone `@\u200boctocat'],
    ['\\@octocat', '\\@\u200boctocat'],
    ['&#64;octocat &#x40;bob &commat;org/team', '@\u200boctocat @\u200bbob @\u200borg/team'],
  ])('mentions only the allowed logins: %j', (text, wanted) => {
    expect(withoutMentions(text, ['ada'])).toBe(wanted)
  })
})

describe('stopping the team', () => {
  it.each([
    [['AI-PAUSE'], [], true],
    [['ai-pause'], [], true],
    [['bug'], ['ai-pause'], true],
    [['AI-PAUSED'], [], false],
  ])('with labels %o and topics %o: %s', (labels, topics, wanted) =>
    expect(isPaused(labels, topics)).toBe(wanted),
  )

  it('suspends an agent after more than five failures in a row, and a success does not resume it', () => {
    let standing = NO_FAILURES
    for (let count = 0; count < 5; count++) standing = afterOutcome(standing, 'failure')
    expect(standing.isSuspended).toBe(false)
    expect(afterOutcome(standing, 'success')).toEqual(NO_FAILURES)
    const suspended = afterOutcome(standing, 'failure')
    expect(suspended.isSuspended).toBe(true)
    expect(afterOutcome(suspended, 'success').isSuspended).toBe(true)
  })
})

describe('a failed call', () => {
  const NOW = 1_000_000
  it.each([
    [401, '', {}, 'unauthenticated', undefined],
    [403, 'Resource not accessible by integration', {}, 'forbidden', undefined],
    [
      403,
      'API rate limit exceeded',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1060' },
      'limited',
      60_000,
    ],
    [403, 'You have exceeded a secondary rate limit', {}, 'limited', 60_000],
    [429, '', { 'retry-after': '7' }, 'limited', 7000],
    [404, '', {}, 'gone', undefined],
    [410, '', {}, 'gone', undefined],
    [422, '', {}, 'invalid', undefined],
    [502, '', {}, 'unavailable', undefined],
  ])('with %i %s is %s', (status, message, headers, kind, retryAfterMs) => {
    const failure = failureOf(Object.assign(new Error(message), { status, response: { headers } }), NOW)
    expect(failure.kind).toBe(kind)
    expect(failure.retryAfterMs).toBe(retryAfterMs)
    expect(isRecoverable(failure)).toBe(kind === 'limited' || kind === 'unavailable')
  })
})

describe('an event', () => {
  it('can be decoded from any payload (C19)', () => {
    fc.assert(
      fc.property(
        fc.record(
          {
            action: fc.jsonValue(),
            issue: fc.jsonValue(),
            comment: fc.jsonValue(),
            repository: fc.jsonValue(),
            sender: fc.jsonValue(),
            pull_request: fc.jsonValue(),
          },
          { requiredKeys: [] },
        ),
        (payload) => {
          expect(readEvent('d', 'issues', payload)?.id).toBe('d')
        },
      ),
    )
    expect(readEvent('d', 'issues', [])).toBeUndefined()
  })

  it.each([
    ['FIRST_TIMER', undefined, true],
    ['FIRST_TIME_CONTRIBUTOR', 3, true],
    ['NONE', 0, true],
    ['NONE', 1, false],
    ['NONE', undefined, false],
    ['OWNER', 0, false],
  ])('of %s with %s contributions is of a newcomer: %s', (association, count, wanted) => {
    expect(isNewcomer(association, count)).toBe(wanted)
  })
})

describe('a signature', () => {
  it("covers the exact bytes, as in GitHub's documentation", async () => {
    const known = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
    const codeOf = async (secret: string, body: string, signature: string | undefined) => {
      const incoming = { body, signature, delivery: 'd', event: 'issues', mediaType: 'application/json' }
      const error: unknown = await receiveWebhook({} as Store, secret, incoming).catch((one: unknown) => one)
      return (error as AppError).code
    }
    const secret = "It's a Secret to Everybody"
    // The signature is right, but the body is not JSON.
    expect(await codeOf(secret, 'Hello, World!', known)).toBe('INVALID_REQUEST')
    expect(await codeOf(secret, 'Hello, World! ', known)).toBe('UNAUTHENTICATED')
    expect(await codeOf('another', 'Hello, World!', known)).toBe('UNAUTHENTICATED')
    for (const none of [undefined, '', 'sha256=', `sha1=${'0'.repeat(40)}`]) {
      expect(await codeOf('s', 'x', none)).toBe('UNAUTHENTICATED')
    }
  })
})

describe('the search', () => {
  it('uses words that no search engine reads as syntax', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        for (const word of searchWords(text)) expect(word).toMatch(/^[\p{L}\p{N}]+$/u)
      }),
    )
    expect(searchWords('The crash, and the CRASH in "main" OR x')).toEqual(['crash', 'main'])
  })

  it('finds referenced threads and mentioned people', () => {
    expect(numbersIn('see #12, (#3) and a#4, #0')).toEqual([12, 3])
    expect(mentionsIn('@ada and me@example.org, @org/team')).toEqual(['@ada'])
  })
})

describe('the event rate', () => {
  it('never starts more events than the limit in any minute (C18)', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.integer({ min: 0, max: 30_000 })),
        (most, steps) => {
          let now = 0
          const begun: number[] = []
          const pace = createRateWindow(
            () => most,
            () => now,
          )
          for (const step of steps) {
            now += step
            const wait = pace.waitMs()
            if (wait > 0) now += wait
            expect(pace.waitMs()).toBe(0)
            pace.begin()
            begun.push(now)
            expect(begun.filter((at) => at > now - 60_000).length).toBeLessThanOrEqual(most)
          }
        },
      ),
    )
  })
})
