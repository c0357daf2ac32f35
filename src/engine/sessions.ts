import type { AgentConfig } from '../config.ts'
import type { SessionState } from '../model/agent.ts'
import type { Action } from '../model/command.ts'
import { parseId } from '../model/identifier.ts'
import type { Priority } from '../model/message.ts'
import type { Arrival, Runtime, Session } from '../runtimes/runtime.ts'
import { readAgents, registerAgent, setSession } from '../store/agents.ts'
import type { Store } from '../store/store.ts'
import { renderEnvelope } from '../wire/envelope.ts'
import type { Answer, Listener } from './listener.ts'
import type { Mailroom } from './mailroom.ts'
import type { Clock, Log } from './surroundings.ts'
import type { Team } from './team.ts'

/** The agents that a runtime of ours runs: starting them, hearing them, and putting their mail before them. */
export interface Sessions {
  /** Why an action cannot be done right now, if it cannot. */
  impossible(agent: string, action: Action): { reason: string; hint: string } | undefined
  start(agent: string): Promise<void>
  stop(agent: string): Promise<void>
  reset(agent: string): Promise<void>
  setPaused(agent: string, paused: boolean): void
  usage(agent: string): { lines: number; tokens: number } | undefined
  /** Brings the team's rows up to date and starts what starts by itself. */
  open(): Promise<void>
  /** After a reload: new agents are registered and started, those no longer in the team are stopped. */
  follow(): Promise<void>
  close(): Promise<void>
}

export interface SessionsOptions {
  store: Store
  mailroom: Mailroom
  clock: Clock
  log: Log
  runtimes: readonly Runtime[]
  team: () => Team
  prompt: (agent: string) => string
  /** Reads commands out of what an agent says, has them carried out, and gives the answers. */
  listen: (agent: string, answer: Answer) => Listener
}

interface Running {
  /** Undefined while it starts. */
  session: Session | undefined
  listener: Listener
  /** Answers to the agent's own commands, waiting for its next turn, with the messages they hand out. */
  answers: { block: string; handedOut: readonly string[] }[]
  delivering: boolean
  /** Something may be there for it. */
  wanted: boolean
  noticedAt: number
  usage: { lines: number; characters: number }
}

/** A runtime of ours gives its own evidence; this only covers a crash in between. */
const RUNTIME_ACK_MS = 120_000
/** Roughly, for English and code; the real figure comes with an agent program's own usage record. */
const CHARACTERS_PER_TOKEN = 4
/** A flood of important messages is one notice (C2). */
const NOTICE_EVERY_MS = 2000
/** After a full disk or a lost database. */
const TRY_AGAIN_MS = 2000

export function createSessions(options: SessionsOptions): Sessions {
  const { store, mailroom, log, team } = options
  const running = new Map<string, Running>()
  const paused = new Set<string>()
  const runtimes = new Map(options.runtimes.map((runtime) => [runtime.name, runtime]))
  let known: ReadonlySet<string> = new Set()
  let closing = false

  const agentConfig = (name: string): AgentConfig | undefined =>
    team().config.agents.find((one) => one.name === name)
  const runtimeOf = (name: string): Runtime | undefined => runtimes.get(agentConfig(name)?.runtime ?? 'none')

  async function start(name: string) {
    const config = agentConfig(name)
    const runtime = runtimeOf(name)
    if (config === undefined || runtime === undefined || running.has(name) || closing) return
    const state: Running = {
      session: undefined,
      listener: options.listen(name, (block, handedOut) => {
        state.answers.push({ block, handedOut })
        void deliverNext(name)
      }),
      answers: [],
      delivering: false,
      wanted: false,
      noticedAt: Number.NEGATIVE_INFINITY,
      usage: { lines: 0, characters: 0 },
    }
    // Before the first await, or two requests at once would start it twice.
    running.set(name, state)
    try {
      const session = await runtime.start(
        { name, prompt: options.prompt(name), settings: config.with },
        {
          said(text) {
            count(state, text)
            state.listener.hear(text)
          },
          changed(session, evidence) {
            if (session !== 'busy') state.listener.endTurn()
            if (session === 'exited' && running.get(name) === state) running.delete(name)
            void record(name, session, evidence).then(() => deliverNext(name))
          },
        },
      )
      state.session = session
      // It was stopped while it started.
      if (running.get(name) !== state) await session.stop()
    } catch (error) {
      running.delete(name)
      log.error({ agent: name, err: error }, 'the agent could not be started')
      await record(name, 'error', `could not be started: ${reasonOf(error)}`)
    }
  }

  async function stop(name: string) {
    const state = running.get(name)
    running.delete(name)
    try {
      await state?.session?.stop()
    } catch (error) {
      log.error({ agent: name, err: error }, 'the agent could not be stopped')
      await record(name, 'error', `could not be stopped: ${reasonOf(error)}`)
    }
  }

  async function record(name: string, session: SessionState, evidence: string) {
    if (closing) return
    try {
      await store.write(async (tx) => {
        await setSession(tx, name, session)
        tx.audit({
          type: 'session.changed',
          class: 'internal',
          actor: name,
          text: `${name} is ${session}: ${evidence}`,
          data: { agent: name, session, evidence },
        })
      })
    } catch (error) {
      log.error({ agent: name, err: error }, 'a change of state could not be stored')
    }
  }

  /** Called whenever something may be there for the agent. While a turn is given, it makes us look again after it. */
  async function deliverNext(name: string) {
    const state = running.get(name)
    if (state === undefined) return
    state.wanted = true
    if (state.delivering) return
    state.delivering = true
    try {
      while (state.wanted && isListening(name, state)) {
        state.wanted = false
        await deliverTurn(name, state)
      }
    } catch (error) {
      if (closing) return
      log.error({ agent: name, err: error }, 'a delivery failed; it will be tried again')
      options.clock.after(TRY_AGAIN_MS, () => void deliverNext(name))
    } finally {
      state.delivering = false
    }
  }

  function isListening(name: string, state: Running): boolean {
    return running.get(name) === state && !paused.has(name) && state.session?.state === 'idle'
  }

  /** First the answers to its own commands, then the messages that wait, as one turn. */
  async function deliverTurn(name: string, state: Running) {
    const { messages } = await store.write((tx) =>
      mailroom.handOut(tx, name, `given to the ${runtimeOf(name)?.name} runtime`, {
        byPriority: true,
        ackMs: RUNTIME_ACK_MS,
      }),
    )
    const answers = state.answers.splice(0)
    if (answers.length === 0 && messages.length === 0) return
    const text = [...answers.map((answer) => answer.block), ...messages.map(renderEnvelope)].join('\n\n')
    let arrival: Arrival
    try {
      arrival = await state.session!.deliver(text)
    } catch (error) {
      state.answers.unshift(...answers)
      throw error
    }
    if (arrival.state === 'queued') state.answers.unshift(...answers)
    // What a mailbox_check of its own handed out has arrived with the answer to it.
    const ids = [...answers.flatMap((answer) => answer.handedOut), ...messages.map((mail) => mail.id)]
    const keys = ids.map((id) => parseId('msg', id)!)
    await store.write((tx) => mailroom.moved(tx, name, keys, arrival.state, arrival.evidence))
  }

  async function registerAll() {
    await store.write(async (tx) => {
      for (const agent of team().config.agents) await registerAgent(tx, agent.name, 'unknown')
    })
  }

  /** Normal waits until the agent is idle; high is announced at once; urgent interrupts (C2). */
  async function newMail(name: string, priority: Priority, from: string) {
    const state = running.get(name)
    const session = state?.session
    if (state === undefined || session === undefined || paused.has(name)) return
    if (session.state === 'busy') {
      if (priority === 'urgent') await session.interrupt()
      else if (priority === 'high') await giveNotice(state, session, from)
    }
    await deliverNext(name)
  }

  async function giveNotice(state: Running, session: Session, from: string) {
    const now = options.clock.now()
    if (now - state.noticedAt < NOTICE_EVERY_MS) return
    state.noticedAt = now
    await session.notice(`[ORCHUB NOTICE] A message of high priority from ${from} waits for you.`)
  }

  mailroom.onMail((agent, priority, from) => {
    newMail(agent, priority, from).catch((error: unknown) =>
      log.error({ agent, err: error }, 'mail was not announced'),
    )
  })

  return {
    impossible(name, action) {
      if (action === 'pause_session' || action === 'resume_session') return undefined
      if (runtimeOf(name) === undefined) {
        return {
          reason: `${name} is run by no runtime of ours, so that it cannot be started or stopped here`,
          hint: 'Say `runtime:` for it in orc.yaml, or start and stop its program yourself.',
        }
      }
      if (action === 'spawn_agent' && running.has(name)) {
        return { reason: `${name} is running already`, hint: 'Use reset_session to start it afresh.' }
      }
      if (action !== 'spawn_agent' && !running.has(name)) {
        return { reason: `${name} is not running`, hint: 'Use spawn_agent to start it.' }
      }
      return undefined
    },
    start,
    stop,
    async reset(name) {
      await stop(name)
      await start(name)
    },
    setPaused(name, hold) {
      mailroom.setHeld(name, hold)
      if (hold) paused.add(name)
      else if (paused.delete(name)) void deliverNext(name)
    },
    usage(name) {
      const state = running.get(name)
      if (state === undefined) return undefined
      return { lines: state.usage.lines, tokens: Math.ceil(state.usage.characters / CHARACTERS_PER_TOKEN) }
    },
    async follow() {
      await registerAll()
      for (const name of running.keys()) if (agentConfig(name) === undefined) await stop(name)
      // Only what is new: an agent that was stopped on purpose stays stopped.
      const added = team().config.agents.filter((agent) => !known.has(agent.name))
      known = new Set(team().names)
      for (const agent of added) if (agent.autostart) await start(agent.name)
    },
    async open() {
      await registerAll()
      known = new Set(team().names)
      for (const row of await readAgents(store)) {
        if (row.paused !== 1) continue
        paused.add(row.name)
        mailroom.setHeld(row.name, true)
      }
      for (const agent of team().config.agents) if (agent.autostart) await start(agent.name)
    },
    async close() {
      closing = true
      await Promise.all([...running.values()].map((state) => state.session?.stop()))
      running.clear()
    },
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function count(state: Running, text: string) {
  state.usage.characters += text.length
  for (const character of text) if (character === '\n') state.usage.lines += 1
}
