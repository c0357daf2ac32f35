/** A real agent program as the receiver: its requests to the model show what it got. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AgentName, installAgents } from '../../scripts/install-agents.ts'
import { startModelServer } from '../../tests/fakes/model-server/model-server.ts'
import type { ModelReply, ModelRequest } from '../../tests/fakes/model-server/play.ts'
import { prepareHome } from '../../tests/real-agents/harness/home.ts'
import { endProcessesOf } from '../../tests/real-agents/harness/leftovers.ts'
import { endWithBench } from './endings.ts'
import { createRecord } from './record.ts'
import { openScene, type Scene } from './scene.ts'

export interface RealScene extends Scene {
  /** Resolves when a dialog is open, with a function that approves it like a person. */
  dialog(): Promise<() => Promise<void>>
}

export interface RealProgram {
  /** The installer's name for it. */
  readonly agent: AgentName
  /** Its name in orc.yaml. */
  readonly program: string
  /** Changes that the input box makes to a text: both sides are compared after it, and the report says so. */
  readonly habit?: { readonly note: string; apply(text: string): string }
}

/** Words in a message that make the scripted model do something. */
export const WORK = 'Please work on it for a while.'
export const RUN = 'Please run the tests.'
const WORK_MS = 700
const DIALOG_MS = 20_000

export async function openRealScene({ agent, program }: RealProgram): Promise<RealScene> {
  await installAgents([agent])
  const root = mkdtempSync(join(tmpdir(), 'orchub-real-'))
  const record = createRecord()
  let calls = 0
  let approved = 0
  let results = 0

  function play(request: ModelRequest): ModelReply | undefined {
    if (request.side) return undefined
    calls += 1
    const isNews = request.userText.trim() !== ''
    if (isNews) record.add({ text: request.userText, ns: String(process.hrtime.bigint()) })
    if (request.toolResults.some((result) => result.includes('tests-pass'))) {
      results += 1
      // The command ran without a person's approval, so one of our keys approved it.
      record.add({ answered: results <= approved ? 'y' : 'Enter' })
    }
    // Small figures, or programs compact their context; never the same words twice, which some take for a loop.
    const usual = { text: `Understood, that was number ${calls}.`, usage: { input: 1000, output: 10 } }
    if (isNews && request.userText.includes(RUN)) {
      return {
        ...usual,
        toolCalls: [{ shell: `touch ran-${calls} && echo tests-pass ${calls}`, escalated: true }],
      }
    }
    return isNews && request.userText.includes(WORK) ? { ...usual, delayMs: WORK_MS } : usual
  }

  const model = await startModelServer({ play })
  const cwd = join(root, 'work')
  const home = await prepareHome(agent, {
    ...{ folder: join(root, 'home'), cwd, modelUrl: model.url, key: 'sk-ant-fake-receiver' },
  })
  const clear = endWithBench(async () => {
    await endProcessesOf(home.env.HOME)
    await model.close()
    rmSync(root, { recursive: true, force: true, maxRetries: 5 })
  })
  const receiver = { agent: { program, folder: cwd, with: home.settings }, record }
  const scene = await openScene({ carrier: 'service.ts', receiver }).catch(async (error: unknown) => {
    await clear()
    throw error
  })

  async function openRequest(): Promise<string | undefined> {
    const [request] = await scene.child.ask<{ id: number }[]>('rows', {
      sql: `SELECT id FROM human_requests WHERE state = 'open' AND purpose = 'permission' ORDER BY id LIMIT 1`,
    })
    return request === undefined ? undefined : `req_${request.id}`
  }

  return {
    ...scene,
    async dialog() {
      const until = Date.now() + DIALOG_MS
      let id = await openRequest()
      while (id === undefined) {
        if (Date.now() > until) throw new Error('no dialog was opened')
        await sleep(30)
        id = await openRequest()
      }
      return async () => {
        approved += 1
        await scene.child.ask('approve', id)
      }
    },
    async close() {
      await scene.close()
      await clear()
    },
  }
}
