import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkAction, describeAction } from '../../../src/github/core/action.ts'
import { DEFAULT_POLICIES, judge } from '../../../src/github/core/policy.ts'
import { EMPTY_REPORT, isEmptyReport, separateConduct, taskError } from '../../../src/github/core/report.ts'

const branch = (...paths: string[]) =>
  checkAction('branch', { branch: 'docs/x', files: paths.map((path) => ({ path, content: 'x' })) })
const CALM = { threshold: 0.95, requiresHitl: false, wantsReview: false }

describe('a file of an agent', () => {
  it.each(['README.md', 'docs/a b.md', '.editorconfig', 'src/.env.example', 'a/..b/c', 'ü/漢.md'])(
    'may be %s',
    (path) => {
      expect(branch(path).ok).toBe(true)
    },
  )

  it.each([
    '',
    '/etc/passwd',
    '../x',
    'a/../b',
    'a/..',
    './a',
    '.git/config',
    'a/.git/hooks/x',
    'a\\b',
    'a\0b',
    'a\u2028/../b',
    'a\u2029/.git/config',
    'a/',
    'C:x',
  ])('may not be %j', (path) => {
    expect(branch(path).ok).toBe(false)
  })

  it('stays inside the repository, whatever its path', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('..', '.', 'a', '', '.git', 'b.md'), { maxLength: 6 }),
        (parts) => {
          const path = parts.join('/')
          const isHarmful = parts.length === 0 || parts.some((part) => ['..', '.', '', '.git'].includes(part))
          expect(branch(path).ok).toBe(!isHarmful)
        },
      ),
    )
  })

  it('of governance needs two approvals, and a workflow is rejected', () => {
    for (const path of [
      'LICENSE',
      'docs/SECURITY.md',
      '.github/CODEOWNERS',
      '.github/ISSUE_TEMPLATE/bug.md',
    ]) {
      const read = branch(path)
      if (!read.ok) throw new Error(read.error)
      expect(judge({ action: read.value, confidence: 1 }, DEFAULT_POLICIES.branch, CALM)).toMatchObject({
        verdict: 'ask',
        quorum: 2,
      })
    }
    expect(branch('.github/workflows/ci.yml')).toMatchObject({
      ok: false,
      error: expect.stringContaining('workflow'),
    })
    expect(branch('x', 'x')).toMatchObject({ ok: false, error: expect.stringContaining('twice') })
  })

  it('is named in the approval request', () => {
    const read = branch('a', 'b', 'c', 'd', 'e', 'f', 'g')
    expect(read.ok && describeAction(read.value)).toBe(
      'create the branch docs/x with a, b, c, d, e and 2 more',
    )
  })
})

describe('a proposal about another thread', () => {
  it('needs approval, whatever the confidence', () => {
    const action = { kind: 'label' as const, number: 7, label: 'bug' }
    expect(
      judge({ action, confidence: 1 }, DEFAULT_POLICIES.label, { ...CALM, isElsewhere: true }),
    ).toMatchObject({ verdict: 'ask' })
    expect(judge({ action, confidence: 1 }, DEFAULT_POLICIES.label, CALM)).toMatchObject({ verdict: 'act' })
  })
})

describe('a report beside a flag', () => {
  it('is stored with the same text, whatever it contained', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (said, flag) => {
        const messages = [said, { message_type: 'coc_violation_flag', violation: flag }]
        expect(separateConduct(messages)?.rest).toBe(EMPTY_REPORT)
      }),
    )
    expect(isEmptyReport(JSON.parse(EMPTY_REPORT))).toBe(true)
  })
})

describe('the error object (S3.12)', () => {
  const failed = {
    task: { state: 'failed' as const, reason: 'no answer within 300 s', attempt: 4 },
    completion: undefined,
    problem: undefined,
    retries: 0,
    at: 'now',
  }

  it('has every documented field, whatever failed', () => {
    expect(taskError(failed)).toEqual({
      error_type: 'timeout',
      error_message: 'no answer within 300 s',
      error_code: 'ERR_TIMEOUT',
      timestamp: 'now',
      retry_count: 3,
      is_recoverable: false,
      suggested_action: expect.stringContaining('took too long'),
    })
    expect(taskError({ ...failed, problem: 'rationale: is missing' })).toMatchObject({
      error_type: 'protocol_violation',
    })
  })
})
