/** A process that resume.test.ts kills in the middle of a turn. */

import { createModels } from '../../../src/llm/sdk/models.ts'
import { createLlmRuntime } from '../../../src/runtimes/llm/runtime.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../../fakes/real-clock.ts'
import { createRecordingPort } from '../../fakes/recording-port.ts'
import { modelAt, TOOLS } from './test-model.ts'

const [url, folder] = process.argv.slice(2) as [string, string]
const settings = { m: modelAt(url, 'openai-compatible') }
const models = createModels({
  settings: () => settings,
  clock: REAL_CLOCK,
  log: QUIET_LOG,
  env: { MODEL_KEY: 'sk-fake-coder' },
})
const runtime = createLlmRuntime({ models, commands: () => TOOLS, clock: REAL_CLOCK, log: QUIET_LOG })
const port = createRecordingPort()
const session = await runtime.start(
  {
    name: 'coder',
    program: undefined,
    settings: { model: 'm' },
    prompt: 'You write code.',
    cwd: folder,
    folder,
    savedState: undefined,
    nonce: 'n1',
    credentials: () => Promise.reject(new Error('not asked for')),
    command: async () => ({ receipt: { status: 'ok', result: 'Command executed' }, handedOut: [] }),
  },
  port,
)
await port.untilState('idle')
await session.deliver({
  ids: ['msg_7'],
  text: '[ORCHUB MESSAGE msg_7]\nWrite to Bob.\n[END ORCHUB MESSAGE msg_7]',
})
console.log(JSON.stringify(port.savedState))
