import type {
  AgentText,
  PermissionQuestion,
  PermissionVerdict,
  SessionPort,
  Usage,
} from '../../../src/runtimes/runtime.ts'

/** A question that the engine was asked, as a person outside of the pane meets it. */
export interface Asked extends PermissionQuestion {
  isGone: boolean
  answer(verdict: PermissionVerdict): void
}

export interface Arrived {
  readonly ids: readonly string[]
  readonly state: 'submitted' | 'read' | 'queued'
  readonly evidence: string
}

/** The engine's side of a session: takes everything down, and lets a test wait for it. */
export function createRecordingPort() {
  const said: AgentText[] = []
  const states: { state: string; evidence: string }[] = []
  const arrived: Arrived[] = []
  const asked: Asked[] = []
  const used: Usage[] = []
  let savedState: unknown
  const watchers = new Set<() => void>()
  const notify = () => {
    for (const watcher of [...watchers]) watcher()
  }

  const port: SessionPort = {
    async onText(utterance) {
      said.push(utterance)
      notify()
    },
    onStateChange(state, evidence) {
      states.push({ state, evidence })
      notify()
    },
    onObstacle() {},
    isPaused: () => false,
    onEvidence(ids, state, evidence) {
      arrived.push({ ids, state, evidence })
      notify()
    },
    askPermission(question, gone) {
      const { promise, resolve } = Promise.withResolvers<PermissionVerdict | undefined>()
      const entry: Asked = { ...question, isGone: gone.aborted, answer: resolve }
      gone.addEventListener('abort', () => {
        entry.isGone = true
        resolve(undefined)
        notify()
      })
      asked.push(entry)
      notify()
      return promise
    },
    onUsage(usage) {
      used.push(usage)
      notify()
    },
    async saveState(value) {
      // As the store does: what is no JSON does not survive.
      savedState = JSON.parse(JSON.stringify(value))
      notify()
    },
  }

  return {
    port,
    said,
    states,
    arrived,
    asked,
    used,
    get savedState() {
      return savedState
    },
    /** Resolves with what `look` finds, now or later; rejects with everything taken down when it does not in time. */
    until<Found>(look: () => Found | undefined | false, timeoutMs = 90_000): Promise<Found> {
      return new Promise((resolve, reject) => {
        const done = (settle: () => void) => {
          watchers.delete(watcher)
          clearTimeout(timer)
          settle()
        }
        const watcher = () => {
          const found = look()
          if (found !== undefined && found !== false) done(() => resolve(found))
        }
        const all = () => JSON.stringify({ states, said, arrived, asked, savedState }, undefined, 1)
        const timer = setTimeout(() => done(() => reject(new Error(`It never came:\n${all()}`))), timeoutMs)
        watchers.add(watcher)
        watcher()
      })
    },
  }
}

export type RecordingPort = ReturnType<typeof createRecordingPort>
