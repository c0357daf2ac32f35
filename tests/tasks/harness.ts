import type { ConfigInput } from '../../src/config/config.ts'
import type { Models } from '../../src/llm/llm.ts'
import type { StoreOptions } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { findTask } from '../../src/tasks/store.ts'
import type { Task } from '../../src/tasks/task.ts'
import { createPuppets, type Puppets } from '../fakes/puppet-runtime.ts'
import { openTestEngine } from '../harness/engine.ts'

/** A team of scripted agents with tasks; agents speak in their own turns. */
export async function openTeam(
  agents: ConfigInput['agents'],
  more: Partial<ConfigInput> = {},
  puppets: Puppets = createPuppets(),
  models?: Models,
  openStore?: (options: StoreOptions) => Promise<Store>,
) {
  const runtime = { runtime: 'tmux' as const, program: 'any' as const, with: { command: 'true' } }
  const engine = await openTestEngine(
    {
      agents: Object.fromEntries(
        Object.entries(agents).map(([name, agent]) => [name, { ...runtime, ...agent }]),
      ),
      limits: { rate: 'off' },
      ...more,
    },
    {
      runtimes: [puppets],
      ...(models === undefined ? {} : { models }),
      ...(openStore === undefined ? {} : { openStore }),
    },
  )
  return await withTasks(engine, puppets)
}

export type TaskTeam = Awaited<ReturnType<typeof openTeam>>

async function withTasks(engine: Awaited<ReturnType<typeof openTestEngine>>, puppets: Puppets) {
  const settle = () => engine.clock.advance(0)
  const taskOf = async (id: string): Promise<Task> => (await findTask(engine.store, id))!
  await settle()
  return {
    ...engine,
    puppets,
    settle,
    task: taskOf,
    /** Lets all running agents become idle. */
    async rest(...names: string[]) {
      for (const name of names) puppets.of(name).become('idle')
      await settle()
    },
    /** The last text that the agent got. */
    turn: (name: string) => puppets.of(name).turns.at(-1)?.text ?? '',
    turns: (name: string) => puppets.of(name).turns.length,
    async says(name: string, type: string, fields: Record<string, unknown> = {}) {
      const receipt = await engine.say(name, type, fields)
      await settle()
      return receipt
    },
    async orders(type: string, fields: Record<string, unknown> = {}) {
      const receipt = await engine.order(type, fields)
      await settle()
      return receipt
    },
    /** The agent prints its last words and ends its turn. */
    async ends(name: string, words = '') {
      if (words !== '')
        await puppets.of(name).port.onText({ text: words, channel: 'api', key: `${name}${words}` })
      puppets.of(name).become('idle')
      await settle()
    },
    /** Checks are real processes, which take real time. `ms`: simulated time between two polls. */
    async until(reached: () => Promise<boolean>, ms = 0) {
      for (let tries = 0; tries < 300; tries++) {
        await engine.clock.advance(ms)
        if (await reached()) return
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      throw new Error('it never came to that')
    },
    async restarted(awayMs = 0) {
      return await withTasks(await engine.reopen(undefined, awayMs), puppets)
    },
  }
}
