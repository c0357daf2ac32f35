import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Sessions } from '../../../../src/agents/sessions.ts'
import type { Orchub } from '../../../../src/main.ts'
import { createTeamFolder, type RunOptions, type TeamFolder } from '../../orc.ts'

let team: TeamFolder
let orchub: Orchub
let env: Record<string, string>
beforeEach(async () => {
  team = createTeamFolder()
  orchub = await team.start()
  env = { ORC_URL: orchub.url, ORC_TOKEN: await team.token('Worker') }
})
afterEach(() => team.close())

function answerHooks(hook: Sessions['hook']) {
  return vi.spyOn(orchub.engine.sessions, 'hook').mockImplementation(hook)
}

const EVENT = { hook_event_name: 'PermissionRequest', tool_name: 'Bash', tool_input: { command: 'ls' } }

/** Runs outside the team's folder, with only the environment to go by. */
function runHook(options: RunOptions & { args?: string } = {}) {
  const { args = 'hook', ...rest } = options
  return team.orc(args, { env, cwd: '/', input: JSON.stringify(EVENT), ...rest })
}

const SILENT = { code: 0, out: '', err: '' }

describe('orc service hook', () => {
  it('sends standard input to the service and prints its answer', async () => {
    const answer = { hookSpecificOutput: { decision: { behavior: 'allow' }, note: 'ü' } }
    const hook = answerHooks(async () => answer)
    const ran = await runHook()
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(ran.json()).toEqual([answer])
    expect(hook).toHaveBeenCalledExactlyOnceWith('Worker', EVENT, expect.any(AbortSignal))
  })

  it('forwards many megabytes of any content', async () => {
    const hook = answerHooks(async () => ({}))
    const event = { tool_input: { content: 'ü\u{1f600}\n'.repeat(1_000_000) } }
    const ran = await runHook({ input: JSON.stringify(event) })
    expect(ran.json()).toEqual([{}])
    expect(hook.mock.calls[0]![1]).toEqual(event)
  })

  it('waits for a slow answer, at most --timeout', async () => {
    answerHooks(() => new Promise((resolve) => setTimeout(resolve, 700, { late: true })))
    expect((await runHook({ args: 'hook --timeout 30' })).json()).toEqual([{ late: true }])
    expect(await runHook({ args: 'hook --timeout=0.2' })).toMatchObject(SILENT)
  })

  it('disconnects when the program does not wait', async () => {
    const gone = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    answerHooks((_agent, _event, signal) => {
      started.resolve()
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          gone.resolve()
          resolve(undefined)
        })
      })
    })
    const running = team.begin('hook', { env, cwd: '/' })
    running.child.stdin.end(JSON.stringify(EVENT))
    await started.promise
    running.child.kill('SIGTERM')
    await gone.promise
    await running.ended
  })

  describe('prints nothing and exits with 0', () => {
    it('when the service is unreachable', async () => {
      await team.stop()
      expect(await runHook()).toMatchObject(SILENT)
    })

    it('when something else answers, or the connection breaks', async () => {
      const server = createServer((socket) => void socket.on('data', () => socket.end('220 hello\r\n')))
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as { port: number }
      expect(await runHook({ env: { ...env, ORC_URL: `http://127.0.0.1:${port}` } })).toMatchObject(SILENT)
      server.close()
    })

    it('when the service refuses: a wrong token, no session, no JSON', async () => {
      expect(await runHook({ env: { ...env, ORC_TOKEN: 'orct_wrong' } })).toMatchObject(SILENT)
      expect(await runHook()).toMatchObject(SILENT)
      answerHooks(async () => ({}))
      expect(await runHook({ input: 'not JSON' })).toMatchObject(SILENT)
    })

    it("when it was started outside of any team, even in a team's folder", async () => {
      const hook = answerHooks(async () => ({}))
      expect(await runHook({ env: {}, cwd: team.folder })).toMatchObject(SILENT)
      expect(await runHook({ env: { ...env, ORC_TOKEN: '' }, cwd: team.folder })).toMatchObject(SILENT)
      expect(hook).not.toHaveBeenCalled()
    })

    it('when its arguments are wrong', async () => {
      expect(await runHook({ args: 'hook --tiemout 3' })).toMatchObject(SILENT)
      expect(await runHook({ args: 'hook --timeout soon' })).toMatchObject(SILENT)
    })
  })

  it('says why it was silent with ORC_DEBUG', async () => {
    const ran = await runHook({ env: { ...env, ORC_TOKEN: 'orct_wrong', ORC_DEBUG: '1' } })
    expect(ran).toMatchObject({ code: 0, out: '', err: expect.stringContaining('UNAUTHENTICATED') })
  })
})
