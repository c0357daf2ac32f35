import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ConfigInput } from '../../src/config/config.ts'
import type { Models } from '../../src/llm/llm.ts'
import { isSettled, type NodeState, type RunNode } from '../../src/runs/run.ts'
import type { SeenRun } from '../../src/runs/runs.ts'
import type { Runtime } from '../../src/runtimes/runtime.ts'
import type { StoreOptions } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { OPERATOR, openTestEngine, send } from '../harness/engine.ts'

export interface RunTeamOptions {
  config?: Partial<ConfigInput>
  models?: Models
  runtimes?: Runtime[]
  autostart?: boolean
  openStore?: (options: StoreOptions) => Promise<Store>
}

/** An engine that carries out plans with real processes; the engine's clock is the test's. */
export async function openRunTeam({ config = {}, ...options }: RunTeamOptions = {}) {
  const input: ConfigInput = { agents: { Helper: {} }, limits: { rate: 'off' }, ...config }
  return withRuns(await openTestEngine(input, options))
}

export type RunTeam = Awaited<ReturnType<typeof openRunTeam>>

function withRuns(engine: Awaited<ReturnType<typeof openTestEngine>>) {
  const folder = join(engine.folder, 'plans')
  mkdirSync(folder, { recursive: true })

  const see = async (id: string): Promise<SeenRun> => (await engine.runs.see(id))!
  /** Processes take real time; `ms` simulated time passes between two looks. */
  async function until<T>(look: () => Promise<T | undefined | false>, ms = 0): Promise<T> {
    for (let tries = 0; tries < 2500; tries++) {
      await engine.clock.advance(ms)
      const found = await look()
      if (found !== undefined && found !== false) return found
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error('it never came to that')
  }
  async function start(plan: string, more: { concurrency?: number } = {}): Promise<string> {
    const order = { plan, folder, ...more }
    return (await send<{ run_id: string }>(engine, OPERATOR, 'start_run', order)).run_id
  }
  /** Until its report is written. */
  async function ended(id: string, ms = 50): Promise<SeenRun> {
    return await until(async () => {
      const seen = await see(id)
      const { outcome, reportPending } = seen.run.head
      return outcome !== null && !reportPending ? seen : undefined
    }, ms)
  }
  return {
    ...engine,
    plans: folder,
    see,
    until,
    write(path: string, text: string, mode = 0o644) {
      const file = join(folder, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text, { mode })
      return file
    },
    start,
    ended,
    /** Starts a run, and waits until it has ended. */
    run: async (plan: string) => await ended(await start(plan)),
    async resume(id: string, plan?: string) {
      return await send<{ run_id: string; round: number; resumed: boolean }>(engine, OPERATOR, 'resume_run', {
        id,
        ...(plan === undefined ? {} : { plan }),
      })
    },
    async node(id: string, name: string): Promise<RunNode> {
      return (await see(id)).run.nodes.get(name)!
    },
    /** Until it is in that state. */
    async becomes(id: string, name: string, state: NodeState, ms = 0): Promise<RunNode> {
      return await until(async () => {
        const node = (await see(id)).run.nodes.get(name)!
        if (node.state !== state && isSettled(node.state))
          throw new Error(`${name} is ${node.state}: ${node.reason}`)
        return node.state === state ? node : undefined
      }, ms)
    },
    file: (id: string, ...path: string[]) => readFileSync(join(folder, 'runs', id, ...path), 'utf8'),
    pathIn: (id: string, ...path: string[]) => join(folder, 'runs', id, ...path),
    async reopened() {
      return withRuns(await engine.reopen())
    },
  }
}

/** The states of all agents, by name. */
export function statesOf({ run }: SeenRun): Record<string, NodeState> {
  return Object.fromEntries([...run.nodes].map(([name, { state }]) => [name, state]))
}

/** A shell agent that makes what is asked of one, and says so by its exit code. */
export const MADE = 'echo Made what was asked for. > outbox/summary.md; echo'
