/** Messages of Codex 0.166.0's app-server, recorded with a scripted model. */
export const THREAD = '01a1ddf2-fe46-7dd3-b140-31f5ccc4966c'
export const TURN = '01a1ddf3-06f7-7093-8122-aff0d46b3a89'

export const userMessage = (text: string, clientId = '2f91763b-8ec8-46c1-97f2-e39387ecc428') => ({
  type: 'userMessage',
  id: '01a1ddf1-76bc-7fb3-a656-0cce70145936',
  clientId,
  content: [{ type: 'text', text, text_elements: [] }],
  startedAtMs: 1794724951743,
  completedAtMs: 1794724951743,
})

export const agentMessage = (text: string, id = 'msg_mwhgwbmy4') => ({
  type: 'agentMessage',
  id,
  text,
  phase: null,
  memoryCitation: null,
  delivery: null,
  questions: null,
  startedAtMs: 1794724951787,
  completedAtMs: 1794724951787,
})

export const commandExecution = {
  type: 'commandExecution',
  id: 'call_mwhgznq91c',
  pluginId: null,
  scriptPath: null,
  command: "/bin/bash -lc 'sleep 2'",
  cwd: '/home/me/project',
  processId: '69353',
  source: 'unifiedExecStartup',
  status: 'inProgress',
  commandActions: [{ type: 'unknown', command: 'sleep 2' }],
  aggregatedOutput: null,
  exitCode: null,
  durationMs: null,
  startedAtMs: 1794725107425,
  completedAtMs: null,
}

export const turn = (status: 'completed' | 'interrupted' | 'failed' | 'inProgress', id = TURN) => ({
  id,
  rootTurnId: id,
  items: [],
  itemsView: 'notLoaded',
  status,
  error: null,
  startedAt: 1794725054,
  completedAt: 1794725080,
  durationMs: 26178,
})

export const thread = (status: object = { type: 'idle' }, more: object = {}) => ({
  id: THREAD,
  environments: [],
  extra: null,
  sessionId: THREAD,
  forkedFromId: null,
  parentThreadId: null,
  preview: '',
  ephemeral: false,
  historyMode: 'paginated',
  modelProvider: 'fake',
  model: 'fake-model',
  createdAt: 1794725051,
  updatedAt: 1794725054,
  status,
  path: '/home/me/.codex/sessions/2026/11/15/rollout-2026-11-15T06-44-11-01a1ddf2.jsonl',
  cwd: '/home/me/project',
  turns: [],
  ...more,
})

export const commandApproval = {
  kind: 'command',
  threadId: THREAD,
  turnId: TURN,
  itemId: 'call_mwhgyipna',
  startedAtMs: 1794725054294,
  environmentId: 'local',
  reason: 'scripted escalation?',
  command: '/bin/bash -lc "echo \'ESC 2\'"',
  cwd: '/home/me/project',
  commandActions: [{ type: 'unknown', command: "echo 'ESC 2'" }],
  proposedExecpolicyAmendment: ['echo', 'ESC 2'],
  availableDecisions: [
    'accept',
    { acceptWithExecpolicyAmendment: { execpolicy_amendment: ['echo', 'ESC 2'] } },
    'cancel',
  ],
}

export const fileChange = {
  type: 'fileChange',
  id: 'call_mbn_0_0',
  changes: [{ path: '/opt/outside.txt', kind: { type: 'add' }, diff: 'hi\n' }],
  status: 'inProgress',
}

export const fileApproval = {
  threadId: THREAD,
  turnId: TURN,
  itemId: fileChange.id,
  startedAtMs: 1794725054294,
  reason: null,
  grantRoot: null,
}

export const toolApproval = {
  threadId: THREAD,
  turnId: TURN,
  serverName: 'orc',
  mode: 'form',
  _meta: {
    codex_approval_kind: 'mcp_tool_call',
    persist: ['session', 'always'],
    tool_description: 'send a message to another agent',
    tool_params: { to: 'dev-2', body: 'hello via mcp' },
    tool_params_display: [{ name: 'to', value: 'dev-2', display_name: 'to' }],
  },
  message: 'Allow the orc MCP server to run tool "send_message"?',
  requestedSchema: { type: 'object', properties: {} },
}

const tokens = (inputTokens: number, cachedInputTokens: number, outputTokens: number) => ({
  totalTokens: inputTokens + outputTokens,
  inputTokens,
  cachedInputTokens,
  cacheWriteInputTokens: 0,
  outputTokens,
  reasoningOutputTokens: 0,
})

export const tokenUsage = {
  threadId: THREAD,
  turnId: TURN,
  tokenUsage: { total: tokens(900, 500, 90), last: tokens(600, 400, 40), modelContextWindow: 258400 },
}
