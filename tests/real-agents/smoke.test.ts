import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { AgentName } from '../../scripts/install-agents.ts'
import { type ModelServer, startModelServer } from '../fakes/model-server/model-server.ts'
import { askOnce } from './harness/ask-once.ts'
import { type Home, prepareHome } from './harness/home.ts'
import { processesOf } from './harness/leftovers.ts'
import { openTerminal } from './harness/terminal.ts'

/** `once`: the arguments for a single answer without a terminal. `ready`: its input box is on the screen. */
const PROGRAMS: [AgentName, { once: string[]; ready: RegExp }][] = [
  ['claude-code', { once: ['-p'], ready: /^❯/m }],
  ['claude-code-2.1.197', { once: ['-p'], ready: /^❯/m }],
  ['codex', { once: ['exec', '--json', '--skip-git-repo-check'], ready: /^› Ask Codex/m }],
  ['gemini', { once: ['--output-format', 'stream-json', '-p'], ready: /> {3}Type your message/ }],
  ['opencode', { once: ['run', '--format', 'json'], ready: /Ask anything/ }],
]

const QUESTION = 'Tell me the word of the day.'
const ANSWER = 'The word is rhubarb.'

describe.each(PROGRAMS)('%s with a scripted model (issue 3, §5)', (name, { once, ready }) => {
  let folder: string
  let model: ModelServer

  async function setUp(): Promise<{ home: Home; cwd: string }> {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'orchub-smoke-')))
    model = await startModelServer({ play: [{ when: /word of the day/, reply: { text: ANSWER } }] })
    const cwd = join(folder, 'work')
    const key = 'sk-ant-fake-alice-in-her-own-home'
    return {
      cwd,
      home: await prepareHome(name, { folder: join(folder, 'home'), cwd, modelUrl: model.url, key }),
    }
  }

  afterEach(async () => {
    await model.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  it('answers once without a terminal', async () => {
    const { home, cwd } = await setUp()

    expect(await askOnce(home, cwd, [...once, QUESTION])).toContain(ANSWER)
    const [call, ...more] = model.calls()
    expect(more).toEqual([])
    expect(call).toMatchObject({ agent: 'alice-in-her-own-home', state: 'answered' })
    expect(call?.request?.userText).toContain(QUESTION)
    expect(call?.request?.tools).not.toEqual([])
  })

  it('starts in a terminal, asks nothing and answers there', async () => {
    const { home, cwd } = await setUp()
    const terminal = await openTerminal({ argv: [home.settings.command], cwd, env: home.env })
    try {
      await terminal.shows(ready)
      await terminal.enter(QUESTION)
      await terminal.shows(/The word is rhubarb\./)
      expect(model.calls('alice-in-her-own-home').map((call) => call.request?.userText)).toEqual([QUESTION])
    } finally {
      await terminal.close()
    }
    expect(await processesOf(home.env.HOME)).toEqual([])
  })
})
