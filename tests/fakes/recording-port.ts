import type { SessionState } from '../../src/base/agent.ts'
import type {
  AgentText,
  PermissionQuestion,
  PermissionVerdict,
  SessionPort,
  Usage,
} from '../../src/runtimes/runtime.ts'

/** A permission dialog, as a person outside of the pane meets it. */
export interface Asked extends PermissionQuestion {
  isGone: boolean
  answer(verdict: PermissionVerdict): void
}

export interface Arrived {
  readonly ids: readonly string[]
  readonly state: 'submitted' | 'read' | 'queued'
  readonly evidence: string
}

export interface RecordingPort extends SessionPort {
  readonly said: AgentText[]
  readonly states: { state: SessionState; evidence: string }[]
  readonly arrived: Arrived[]
  /** Each reported obstacle, in order. */
  readonly obstacles: (string | undefined)[]
  readonly asked: Asked[]
  readonly used: Usage[]
  /** The last saved state. */
  savedState: unknown
  /** All that was said, in one. */
  text(): string
  /** Resolves with what `look` finds, now or after an event; rejects with everything recorded if that takes too long. */
  until<Found>(look: () => Found | undefined | false, timeoutMs?: number): Promise<Found>
  /** The last state is that one. */
  untilState(state: SessionState, timeoutMs?: number): Promise<unknown>
}

/**
 * The engine's side of a session: records everything, and lets a test wait for it. `over` replaces parts of the port;
 * `patienceMs` is the timeout of `until`.
 */
export function createRecordingPort(over: Partial<SessionPort> = {}, patienceMs = 15_000): RecordingPort {
  const watchers = new Set<() => void>()

  function note<Entry>(list: Entry[], entry: Entry) {
    list.push(entry)
    notify()
  }

  function notify() {
    for (const watcher of [...watchers]) watcher()
  }

  const port: RecordingPort = {
    said: [],
    states: [],
    arrived: [],
    obstacles: [],
    asked: [],
    used: [],
    savedState: undefined,
    onText: async (text) => note(port.said, text),
    onStateChange: (state, evidence) => note(port.states, { state, evidence }),
    onObstacle: (reason) => note(port.obstacles, reason),
    isPaused: () => false,
    onEvidence: (ids, state, evidence) => note(port.arrived, { ids, state, evidence }),
    askPermission(question, gone) {
      const { promise, resolve } = Promise.withResolvers<PermissionVerdict | undefined>()
      const entry: Asked = { ...question, isGone: gone.aborted, answer: resolve }
      gone.addEventListener('abort', () => {
        entry.isGone = true
        resolve(undefined)
        notify()
      })
      note(port.asked, entry)
      return promise
    },
    onUsage: (usage) => note(port.used, usage),
    async saveState(value) {
      // As the store does: only JSON survives.
      port.savedState = JSON.parse(JSON.stringify(value))
      notify()
    },
    text: () => port.said.map(({ text }) => text).join(''),
    until: (look, timeoutMs = patienceMs) =>
      new Promise((resolve, reject) => {
        const done = (settle: () => void) => {
          watchers.delete(watcher)
          clearTimeout(timer)
          settle()
        }
        const watcher = () => {
          const found = look()
          if (found !== undefined && found !== false) done(() => resolve(found))
        }
        const all = () => JSON.stringify(port, undefined, 1)
        const timer = setTimeout(() => done(() => reject(new Error(`It never came:\n${all()}`))), timeoutMs)
        watchers.add(watcher)
        watcher()
      }),
    untilState: (state, timeoutMs) => port.until(() => port.states.at(-1)?.state === state, timeoutMs),
    ...over,
  }
  return port
}
