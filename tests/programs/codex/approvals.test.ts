import { describe, expect, it } from 'vitest'
import { createApprovals } from '../../../src/programs/codex/approvals.ts'
import type { PermissionQuestion, PermissionVerdict } from '../../../src/runtimes/runtime.ts'
import { commandApproval, fileApproval, fileChange, TURN, toolApproval } from './recorded.ts'

function open() {
  const questions: PermissionQuestion[] = []
  const replies: [string | number, object][] = []
  const remarks: PermissionVerdict[] = []
  const gone: AbortSignal[] = []
  const answers: ((verdict: PermissionVerdict | undefined) => void)[] = []
  const approvals = createApprovals({
    ask(question, signal) {
      questions.push(question)
      gone.push(signal)
      return new Promise((resolve) => answers.push(resolve))
    },
    reply: (id, result) => void replies.push([id, result]),
    remark: (verdict) => void remarks.push(verdict),
    warn: (fields) => {
      throw fields.err
    },
  })
  const answer = async (verdict: PermissionVerdict | undefined) => {
    answers.shift()!(verdict)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { approvals, questions, replies, remarks, gone, answer }
}

describe('approvals', () => {
  it.each([
    {
      method: 'item/commandExecution/requestApproval',
      params: commandApproval,
      question: {
        tool: 'shell',
        reason: 'scripted escalation?',
        input: { command: '/bin/bash -lc "echo \'ESC 2\'"', cwd: '/home/me/project' },
      },
      yes: { decision: 'accept' },
      no: { decision: 'decline' },
    },
    {
      method: 'item/fileChange/requestApproval',
      params: fileApproval,
      question: { tool: 'apply_patch', input: { changes: fileChange.changes } },
      yes: { decision: 'accept' },
      no: { decision: 'decline' },
    },
    {
      method: 'item/permissions/requestApproval',
      params: {
        ...fileApproval,
        cwd: '/home/me/project',
        reason: 'May I?',
        permissions: { network: { enabled: true }, fileSystem: null },
      },
      question: {
        tool: 'request_permissions',
        reason: 'May I?',
        input: { network: { enabled: true }, cwd: '/home/me/project' },
      },
      yes: { permissions: { network: { enabled: true } }, scope: 'turn' },
      no: { permissions: {}, scope: 'turn' },
    },
    {
      method: 'mcpServer/elicitation/request',
      params: toolApproval,
      question: {
        tool: 'mcp:orc',
        reason: 'Allow the orc MCP server to run tool "send_message"?',
        input: { to: 'dev-2', body: 'hello via mcp' },
      },
      yes: { action: 'accept', content: {} },
      no: { action: 'decline', content: null },
    },
  ])('asks about $method, and answers in its own words', async ({ method, params, question, yes, no }) => {
    const { approvals, questions, replies, answer } = open()
    approvals.asked(7, method, params, fileChange)
    expect(questions).toEqual([{ ...question, key: expect.stringContaining(TURN) }])
    await answer({ allow: true })
    approvals.asked(8, method, params, fileChange)
    await answer({ allow: false })
    expect(replies).toEqual([
      [7, yes],
      [8, no],
    ])
    expect(questions[1]!.key).toBe(questions[0]!.key)
  })

  it('leaves questions other than yes or no to the person', () => {
    const { approvals, questions } = open()
    approvals.asked(1, 'item/tool/requestUserInput', { threadId: 't', questions: [] }, undefined)
    approvals.asked(2, 'mcpServer/elicitation/request', { ...toolApproval, _meta: null }, undefined)
    approvals.asked(3, 'attestation/generate', {}, undefined)
    expect(questions).toEqual([])
  })

  it('closes its question when somebody else answers, and sends no verdict', async () => {
    const { approvals, replies, gone, answer } = open()
    approvals.asked(7, 'item/commandExecution/requestApproval', commandApproval, undefined)
    approvals.resolved(7)
    expect(gone[0]!.aborted).toBe(true)
    await answer({ allow: true })
    expect(replies).toEqual([])
  })

  it('asks once, however often the server reports a dialog', () => {
    const { approvals, questions } = open()
    for (let n = 0; n < 3; n++)
      approvals.asked(7, 'item/commandExecution/requestApproval', commandApproval, undefined)
    expect(questions).toHaveLength(1)
  })

  it('passes a comment on with a denial only', async () => {
    const { approvals, remarks, answer } = open()
    approvals.asked(7, 'item/commandExecution/requestApproval', commandApproval, undefined)
    await answer({ allow: true, comment: 'go on' })
    approvals.asked(8, 'item/commandExecution/requestApproval', commandApproval, undefined)
    await answer({ allow: false, comment: 'not on a Friday' })
    expect(remarks).toEqual([{ allow: false, comment: 'not on a Friday' }])
  })
})
