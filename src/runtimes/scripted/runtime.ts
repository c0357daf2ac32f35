import type { SessionState } from '../../base/agent.ts'
import type { Runtime, Session, SessionPort } from '../runtime.ts'
import { checkScript, openScript, type ScriptLine, ScriptSettings } from '../script.ts'

interface ScriptedOptions {
  /** Calls back after that long; the returned function cancels. */
  after(ms: number, callback: () => void): () => void
}

/**
 * An agent in this process that plays a script: it receives text and outputs text that may contain commands,
 * like any other agent. The engine treats it like a real one: its commands pass the scanner and the door.
 */
export function createScriptedRuntime(options: ScriptedOptions): Runtime {
  return {
    name: 'scripted',
    check: ({ settings }) => checkScript(settings),
    async start({ settings, signal }, port) {
      signal?.throwIfAborted()
      return startScript(ScriptSettings.parse(settings), port, options)
    },
  }
}

function startScript(settings: ScriptSettings, port: SessionPort, { after }: ScriptedOptions): Session {
  const script = openScript(settings)
  let state: SessionState = 'initializing'
  let turn = 0
  let cancelThought: (() => void) | undefined

  function become(next: SessionState, evidence: string) {
    state = next
    port.onStateChange(next, evidence)
  }

  function say(text: string) {
    void port.onText({ text: `${text}\n`, channel: 'api' })
  }

  function play(line: ScriptLine | undefined) {
    turn += 1
    const number = turn
    if (line === undefined) {
      become('idle', `no rule matched turn ${number}`)
      return
    }
    become('busy', `turn ${number} began`)
    cancelThought = after(line.afterMs, () => {
      cancelThought = undefined
      say(line.say)
      if (state === 'busy') become('idle', `turn ${number} ended`)
    })
  }

  async function end() {
    cancelStart()
    cancelThought?.()
    become('exited', 'the script was stopped')
  }

  // Runs after the caller has received the session.
  const cancelStart = after(0, () => play(script.atStart()))

  return {
    get state() {
      return state
    },
    async deliver({ text }) {
      if (state !== 'idle') return { state: 'queued', evidence: `the script is ${state}` }
      play(script.toTurn(text))
      return { state: 'read', evidence: `the script accepted it as turn ${turn}` }
    },
    async notice(text) {
      const line = script.toNotice(text)
      if (line !== undefined) say(line.say)
    },
    // A script keeps its memory in this process, so it never saw what an earlier process received.
    async locate(ids) {
      return ids.map(() => ({ at: 'absent', evidence: 'the script started again' }))
    },
    async interrupt() {
      if (cancelThought === undefined) return { stopped: true, evidence: 'no turn was running' }
      cancelThought()
      cancelThought = undefined
      become('idle', `turn ${turn} was interrupted`)
      return { stopped: true, evidence: `turn ${turn} was interrupted` }
    },
    stop: end,
    leave: end,
  }
}
