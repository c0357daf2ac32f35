import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createModels } from '../../../src/llm/sdk/models.ts'
import { createLlmRuntime } from '../../../src/runtimes/llm/runtime.ts'
import { startModelServer } from '../../fakes/model-server/model-server.ts'
import type { ModelRequest } from '../../fakes/model-server/play.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../../fakes/real-clock.ts'
import { describeRuntime } from '../conformance.ts'
import { createDoor } from './harness.ts'
import { modelAt, TOOLS, type Wire } from './test-model.ts'

/** Prints the text after `say ` in a turn, and works for the time in `work MS`. */
function obey({ userText }: ModelRequest) {
  const said = /^say (.*)$/m.exec(userText)?.[1]
  const delayMs = Number(/^work (\d+)$/m.exec(userText)?.[1] ?? 0)
  return { text: `As you wish:\n${said ?? 'nothing'}\n`, delayMs }
}

conforms('openai-compatible')
conforms('anthropic')

function conforms(wire: Wire) {
  describeRuntime(`llm, ${wire}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'orc-llm-'))
    const server = await startModelServer({ play: obey })
    const settings = { m: modelAt(server.url, wire) }
    const models = createModels({
      settings: () => settings,
      clock: REAL_CLOCK,
      log: QUIET_LOG,
      env: { MODEL_KEY: 'sk-fake-x' },
    })
    const createRuntime = () =>
      createLlmRuntime({ models, commands: () => TOOLS, clock: REAL_CLOCK, log: QUIET_LOG })
    return {
      runtime: createRuntime(),
      agent: (over = {}) => ({
        name: 'coder',
        program: undefined,
        settings: { model: 'm' },
        prompt: 'You write code.',
        cwd: folder,
        folder: join(folder, over.name ?? 'coder'),
        savedState: undefined,
        nonce: 'n1',
        credentials: () => Promise.reject(new Error('not asked for')),
        command: createDoor().command,
        ...over,
      }),
      wrong: { settings: { model: 'm', max_steps: 0 }, path: ['max_steps'] },
      reopen: async () => createRuntime(),
      async close() {
        await server.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  })
}
