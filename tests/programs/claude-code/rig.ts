/** Claude Code without Claude Code: its files are written and its hooks called by the test, its pane is a record. */
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { createClaudeCode } from '../../../src/programs/claude-code/program.ts'
import type { Pane, PaneScreen, PasteOptions, ProgramSession } from '../../../src/programs/program.ts'
import type { DeliveryResult, SessionPort, Turn } from '../../../src/runtimes/runtime.ts'

const RULE = '─'.repeat(40)

export function boxWith(text: string): PaneScreen {
  const lines = ['conversation', RULE, ...`❯ ${text}`.split('\n'), RULE, '  ? for shortcuts']
  const y = lines.length - 3
  return { lines, styled: lines, cursor: { x: lines[y]!.length, y } }
}

export async function openRig(savedState: object = {}, found = false) {
  const root = mkdtempSync(join(tmpdir(), 'claude-rig-'))
  const sessions = join(root, 'sessions')
  mkdirSync(sessions)
  const transcript = join(root, 'conversation.jsonl')
  const states: string[] = []
  const evidence: string[] = []
  const said: { text: string; key?: string }[] = []
  const arrived: string[] = []
  const keys: string[] = []
  const pasted: { turn: Turn; manner: PasteOptions; settle(arrival: DeliveryResult): void }[] = []
  let screen = boxWith('')
  let last: unknown
  let failsToKeep = false
  let looked: Promise<void> | undefined
  let questions: { tool: string; gone: AbortSignal; answer(allow: boolean, comment?: string): void }[] = []

  const port: SessionPort = {
    onText: vi.fn(async (utterance) => void said.push(utterance)),
    onStateChange(state, why) {
      states.push(state)
      evidence.push(why)
    },
    onObstacle: vi.fn(),
    isPaused: vi.fn(() => false),
    onEvidence: (ids, state) => void arrived.push(...ids.map((id) => `${id} ${state}`)),
    askPermission: (question, gone) =>
      new Promise((resolve) => {
        gone.addEventListener('abort', () => resolve(undefined))
        questions.push({
          tool: question.tool,
          gone,
          answer: (allow, comment) => resolve({ allow, ...(comment === undefined ? {} : { comment }) }),
        })
      }),
    onUsage: vi.fn(),
    async saveState(value) {
      if (failsToKeep) throw new Error('the disk is full')
      last = JSON.parse(JSON.stringify(value))
    },
  }
  const pane: Pane = {
    pid: 4242,
    log: async () => join(root, 'pane.log'),
    screen: async () => {
      await looked
      return screen
    },
    async paste(turn, manner) {
      if (manner.state() !== 'idle' || manner.inputBox(screen) !== 'empty')
        return { state: 'queued', evidence: 'guard' }
      const { promise, resolve } = Promise.withResolvers<DeliveryResult>()
      pasted.push({ turn, manner, settle: resolve })
      return await Promise.race([promise, manner.evidence])
    },
    hasReadInput: async () => true,
    submitPending: async () => false,
    markAccepted() {},
    async press(names) {
      keys.push(...names)
    },
  }
  const program = createClaudeCode({
    log: { warn: (fields, text) => void evidence.push(`${text} ${fields.err}`) },
  })
  const order = {
    ...{ name: 'dev', settings: {}, cwd: root, folder: root, nonce: 'n', isReattached: found },
    savedState: { sessionId: 's1', configFolder: root, since: 0, ...savedState },
  }
  const session: ProgramSession = await program.follow(order, pane, port)
  let clock = Date.now()
  let uuids = 0

  return {
    root,
    session,
    port,
    transcript,
    states,
    evidence,
    said,
    arrived,
    keys,
    pasted,
    get savedState() {
      return last as Record<string, unknown>
    },
    question() {
      return vi.waitFor(() => {
        const next = questions[0]
        if (next === undefined) throw new Error('nothing was asked')
        questions = questions.slice(1)
        return next
      })
    },
    /** From now on a look at the screen takes until then. */
    lookTakes(until: Promise<void>) {
      looked = until
    },
    keepFails(fails: boolean) {
      failsToKeep = fails
    },
    show(next: PaneScreen) {
      screen = next
    },
    /** As the program writes it: the time is always later than that of what we know. */
    status(status: string, extra: object = {}) {
      clock = Math.max(clock, Date.now()) + 1
      const content = { sessionId: 's1', version: '2.1.197', status, statusUpdatedAt: clock, ...extra }
      writeFileSync(join(sessions, '4242.json'), JSON.stringify(content))
    },
    hook: (name: string, fields: object = {}, gone = new AbortController().signal) =>
      session.hook!(
        { hook_event_name: name, session_id: 's1', transcript_path: transcript, ...fields },
        gone,
      ),
    /** Records of the transcript: a prompt, an answer. */
    prompt(text: string, extra: object = {}) {
      const record = {
        type: 'user',
        uuid: `p${++uuids}`,
        isSidechain: false,
        message: { content: text },
        ...extra,
      }
      appendFileSync(transcript, `${JSON.stringify(record)}\n`)
    },
    /** As the program writes down what our Stop hook answered. */
    feedback(text: string) {
      const attachment = {
        type: 'hook_additional_context',
        hookName: 'Stop',
        hookEvent: 'Stop',
        content: [text],
      }
      const record = { type: 'attachment', uuid: `f${++uuids}`, isSidechain: false, attachment }
      appendFileSync(transcript, `${JSON.stringify(record)}\n`)
    },
    answer(text: string, extra: object = {}) {
      const usage = {
        input_tokens: 1,
        output_tokens: 2,
        cache_read_input_tokens: 3,
        cache_creation_input_tokens: 4,
      }
      const message = { id: `m${++uuids}`, model: 'claude-opus-5', content: [{ type: 'text', text }], usage }
      const timestamp = new Date().toISOString()
      const record = {
        type: 'assistant',
        uuid: `a${uuids}`,
        isSidechain: false,
        timestamp,
        message,
        ...extra,
      }
      appendFileSync(transcript, `${JSON.stringify(record)}\n`)
    },
    state: (wanted: string) =>
      vi.waitFor(
        () => {
          if (session.state !== wanted) throw new Error(`it is ${session.state}: ${evidence.at(-1)}`)
        },
        { timeout: 5000, interval: 10 },
      ),
    async close() {
      await session.close('leave')
      rmSync(root, { recursive: true, force: true })
    },
  }
}

export type Rig = Awaited<ReturnType<typeof openRig>>
