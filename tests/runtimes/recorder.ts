import type { SessionState } from '../../src/base/agent.ts'
import type { AgentText, SessionPort, Usage } from '../../src/runtimes/runtime.ts'

export interface Recorder extends SessionPort {
  readonly utterances: AgentText[]
  readonly states: { state: SessionState; evidence: string }[]
  readonly arrivals: { ids: readonly string[]; state: string; evidence: string }[]
  /** Each reported obstacle, in order. */
  readonly obstacles: (string | undefined)[]
  readonly usages: Usage[]
  /** The last saved state. */
  savedState: unknown
  /** All that was said, in one. */
  text(): string
  /** Resolves when it is true; looks whenever something is told. */
  until(what: string, isTrue: () => boolean, ms?: number): Promise<void>
  /** The last state is that one. */
  untilState(state: SessionState, ms?: number): Promise<void>
}

/** A port that writes down what a session tells it. */
export function createRecorder(over: Partial<SessionPort> = {}): Recorder {
  const looks = new Set<() => void>()
  const tell = () => {
    for (const look of [...looks]) look()
  }
  const recorder: Recorder = {
    utterances: [],
    states: [],
    arrivals: [],
    obstacles: [],
    usages: [],
    savedState: undefined,
    async onText(utterance) {
      recorder.utterances.push(utterance)
      tell()
    },
    onStateChange(state, evidence) {
      recorder.states.push({ state, evidence })
      tell()
    },
    isPaused: () => false,
    onObstacle(reason) {
      recorder.obstacles.push(reason)
      tell()
    },
    onEvidence(ids, state, evidence) {
      recorder.arrivals.push({ ids, state, evidence })
      tell()
    },
    askPermission: async () => undefined,
    onUsage(usage) {
      recorder.usages.push(usage)
      tell()
    },
    async saveState(value) {
      // As it comes back from a store.
      recorder.savedState = JSON.parse(JSON.stringify(value))
      tell()
    },
    text: () => recorder.utterances.map(({ text }) => text).join(''),
    until: (what, isTrue, ms = 15_000) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!isTrue()) return
          clearTimeout(timer)
          looks.delete(look)
          resolve()
        }
        const timer = setTimeout(() => {
          looks.delete(look)
          const seen = JSON.stringify({ states: recorder.states, said: recorder.utterances }).slice(-2000)
          reject(new Error(`waited in vain until ${what}; seen: ${seen}`))
        }, ms)
        looks.add(look)
        look()
      }),
    untilState: (state, ms) =>
      recorder.until(`it is ${state}`, () => recorder.states.at(-1)?.state === state, ms),
    ...over,
  }
  return recorder
}
