/** A stand-in for Claude Code: the test writes its files and calls its hooks, and its pane records what is pasted. */
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { createClaudeCode } from '../../../src/programs/claude-code/program.ts'
import type { PaneScreen, PasteOptions, ProgramSession } from '../../../src/programs/program.ts'
import type { DeliveryResult, Turn } from '../../../src/runtimes/runtime.ts'

import { createRecordingPort } from '../../fakes/recording-port.ts'
import { createFakePane } from '../fake-pane.ts'

const RULE = '─'.repeat(40)

export const message = (id: string) =>
  `[ORCHUB MESSAGE ${id}]\nFrom: lead\n\nhello\n\n[END ORCHUB MESSAGE ${id}]`
export const turn = (id: string) => ({ text: message(id), ids: [id] })
/** The input box after an Escape put the message back. */
export const putBack = (id: string) => boxWith(message(id).replaceAll('\n', '\n  '))

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
  const evidence: string[] = []
  const arrived: string[] = []
  const keys: string[] = []
  const pasted: { turn: Turn; manner: PasteOptions; settle(arrival: DeliveryResult): void }[] = []
  let screen = boxWith('')
  let isSavingBroken = false
  let looked: Promise<void> | undefined
  let questions = 0

  const port = createRecordingPort({
    onStateChange: (_state, why) => void evidence.push(why),
    onEvidence: (ids, state) => void arrived.push(...ids.map((id) => `${id} ${state}`)),
  })
  const { saveState } = port
  port.saveState = async (value) => {
    if (isSavingBroken) throw new Error('the disk is full')
    await saveState(value)
  }
  for (const method of ['onText', 'isPaused', 'onUsage'] as const) vi.spyOn(port, method)
  const pane = createFakePane({
    pid: 4242,
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
    async press(names) {
      keys.push(...names)
    },
  })
  const program = createClaudeCode({
    log: { warn: (fields, text) => void evidence.push(`${text} ${fields.err}`) },
  })
  const order = {
    ...{ name: 'dev', settings: {}, cwd: root, folder: root, nonce: 'n', isReattached: found },
    savedState: { sessionId: 's1', configFolder: root, since: 0, ...savedState },
  }
  const session: ProgramSession = await program.follow(order, pane, port)
  const hook = (name: string, fields: object = {}) =>
    session.hook!(
      { hook_event_name: name, session_id: 's1', transcript_path: transcript, ...fields },
      new AbortController().signal,
    )
  let clock = Date.now()
  let uuids = 0
  const append = (record: object) =>
    appendFileSync(transcript, `${JSON.stringify({ isSidechain: false, ...record })}\n`)

  return {
    root,
    session,
    port,
    transcript,
    evidence,
    said: port.said,
    arrived,
    keys,
    pasted,
    get savedState() {
      return port.savedState as Record<string, unknown>
    },
    /** The next permission dialog. */
    question: () => port.until(() => port.asked[questions]).finally(() => (questions += 1)),
    /** Snapshots of the screen wait for this from now on. */
    delayScreen(until: Promise<void>) {
      looked = until
    },
    failSaving(fails: boolean) {
      isSavingBroken = fails
    },
    show(next: PaneScreen) {
      screen = next
    },
    /** Writes the status file, as the program does, with a later time than every event before. */
    status(status: string, extra: object = {}) {
      clock = Math.max(clock, Date.now()) + 1
      const content = { sessionId: 's1', version: '2.1.197', status, statusUpdatedAt: clock, ...extra }
      writeFileSync(join(sessions, '4242.json'), JSON.stringify(content))
    },
    hook,
    /** A prompt is submitted, and its hook reports it. */
    submit: (prompt: string) => hook('UserPromptSubmit', { prompt }),
    /** Appends a prompt to the transcript. */
    prompt(text: string, extra: object = {}) {
      append({ type: 'user', uuid: `p${++uuids}`, message: { content: text }, ...extra })
    },
    /** Records the response to our Stop hook, as the program does. */
    feedback(text: string) {
      const context = { type: 'hook_additional_context', hookName: 'Stop', hookEvent: 'Stop' }
      append({ type: 'attachment', uuid: `f${++uuids}`, attachment: { ...context, content: [text] } })
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
      append({ type: 'assistant', uuid: `a${uuids}`, timestamp, message, ...extra })
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
