import type { SessionState } from '../../src/base/agent.ts'
import type {
  AgentStart,
  DeliveryResult,
  Runtime,
  Session,
  SessionPort,
  Turn,
} from '../../src/runtimes/runtime.ts'

/** A runtime whose agents do only what the test makes them do. */
export interface Puppet {
  readonly start: AgentStart
  readonly port: SessionPort
  readonly turns: Turn[]
  readonly notices: string[]
  /** Why deliveries were aborted before they ended. */
  readonly withdrawn: string[]
  readonly interrupts: number
  /** The ids of each search for messages of earlier attempts. */
  readonly searches: string[][]
  readonly ended: 'stop' | 'leave' | undefined
  /** The results of the next deliveries. */
  arrival: DeliveryResult | Promise<DeliveryResult> | Error
  whereabouts: 'submitted' | 'absent' | 'unknown'
  /** A text of an earlier service is still in the input box; `onLocate` says when it is submitted. */
  hasUnsent: boolean
  onLocate: (() => void) | undefined
  /** A stop waits for this. */
  stopped: Promise<void>
  become(state: SessionState, evidence?: string): void
}

export interface Puppets extends Runtime {
  /** The agent's newest session. */
  of(name: string): Puppet
  started(name: string): number
  /** The ids of all messages that the agent ever got. */
  given(name: string): string[]
  failNext?: Error
  /** The engine reads the agents' output from a file. */
  heardLate?: boolean
  /** The agents resume earlier conversations. */
  isResumed?: boolean
  /** The agents report which messages they got in earlier sessions. */
  remembers?: boolean
}

export function createPuppets(name: 'tmux' | 'acp' | 'scripted' = 'tmux'): Puppets {
  const puppets = new Map<string, Puppet[]>()
  const runtime: Puppets = {
    name,
    check: () => [],
    of: (agent) => puppets.get(agent)!.at(-1)!,
    started: (agent) => puppets.get(agent)?.length ?? 0,
    given: (agent) => (puppets.get(agent) ?? []).flatMap(({ turns }) => turns.flatMap(({ ids }) => [...ids])),
    async start(start, port) {
      const failure = runtime.failNext
      delete runtime.failNext
      if (failure !== undefined) throw failure
      if (runtime.isResumed === true) await start.credentials({ isResumed: true })
      const { puppet, session } = makePuppet(start, port, runtime)
      const { locate } = session
      session.locate = async (ids) => {
        if (runtime.remembers !== true) return await locate(ids)
        const given = new Set(runtime.given(start.name))
        return ids.map((id) => ({
          at: given.has(id) ? 'submitted' : 'absent',
          evidence: 'the puppet remembers',
        }))
      }
      puppets.set(start.name, [...(puppets.get(start.name) ?? []), puppet])
      return session
    },
  }
  return runtime
}

function makePuppet(start: AgentStart, port: SessionPort, { heardLate = false }: Puppets) {
  let state: SessionState = 'initializing'
  const puppet = {
    start,
    port,
    turns: [] as Turn[],
    notices: [] as string[],
    withdrawn: [] as string[],
    interrupts: 0,
    searches: [] as string[][],
    hasUnsent: false,
    onLocate: undefined as Puppet['onLocate'],
    ended: undefined as 'stop' | 'leave' | undefined,
    arrival: { state: 'submitted', evidence: 'the puppet nodded' } as Puppet['arrival'],
    whereabouts: 'absent' as Puppet['whereabouts'],
    stopped: Promise.resolve(),
    become(next: SessionState, evidence = 'the test says so') {
      state = next
      port.onStateChange(next, evidence)
    },
  }
  const session: Session = {
    get state() {
      return state
    },
    hasDelayedOutput: heardLate,
    async deliver(turn, gone) {
      puppet.turns.push(turn)
      gone?.addEventListener('abort', () => puppet.withdrawn.push(String(gone.reason)))
      if (puppet.arrival instanceof Error) throw puppet.arrival
      const arrival = await puppet.arrival
      if (arrival.state === 'submitted') puppet.become('busy')
      return arrival
    },
    async locate(ids) {
      puppet.searches.push([...ids])
      if (puppet.onLocate !== undefined) puppet.onLocate()
      return ids.map(() => ({ at: puppet.whereabouts, evidence: `it is ${puppet.whereabouts}` }))
    },
    hasPendingInput: () => puppet.hasUnsent,
    async notice(text) {
      puppet.notices.push(text)
    },
    async interrupt() {
      puppet.interrupts += 1
      puppet.become('idle', 'interrupted')
      return { stopped: true, evidence: 'interrupted' }
    },
    async hook(event) {
      return { heard: event }
    },
    async stop() {
      await puppet.stopped
      puppet.ended = 'stop'
      puppet.become('exited', 'stopped')
    },
    async leave() {
      puppet.ended = 'leave'
    },
  }
  return { puppet, session }
}
