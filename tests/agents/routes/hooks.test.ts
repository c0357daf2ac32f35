import { request } from 'node:http'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Sessions } from '../../../src/agents/sessions.ts'
import { openTestService, type TestService } from '../../harness/service.ts'

let service: TestService
beforeEach(async () => {
  service = await openTestService()
})
afterEach(() => service.close())

const STOP = { hook_event_name: 'Stop', session_id: 's-1', last_assistant_message: 'Done.' }

/** The session's side of a hook. */
function answerHooks(hook: Sessions['hook']) {
  return vi.spyOn(service.engine.sessions, 'hook').mockImplementation(hook)
}

/** A hook that is answered by nothing but the end of its caller. */
function waitForEver() {
  const started = Promise.withResolvers<AbortSignal>()
  const hook = answerHooks((_agent, _event, gone) => {
    started.resolve(gone)
    return new Promise((resolve) => gone.addEventListener('abort', () => resolve(undefined)))
  })
  return { hook, started: started.promise }
}

function post(token: string, body: unknown) {
  return service.call('POST', '/hooks', { token, body })
}

describe('POST /hooks', () => {
  it("passes the payload to the session of the token's agent, and returns its answer (S1.2)", async () => {
    const answer = { decision: 'block', reason: '[ORCHUB MESSAGE msg_1] …' }
    const hook = answerHooks(async () => answer)
    const reply = await post(service.tokens.worker, STOP)
    expect(reply).toMatchObject({ status: 200, json: answer })
    expect(hook).toHaveBeenCalledExactlyOnceWith('Worker', STOP, expect.any(AbortSignal))
  })

  it('answers {} when there is no answer', async () => {
    answerHooks(async () => undefined)
    expect((await post(service.tokens.worker, STOP)).text).toBe('{}')
  })

  it('accepts a payload of many megabytes, and reports one that is too large', async () => {
    const hook = answerHooks(async () => undefined)
    const event = { tool_input: { content: 'x'.repeat(15 * 1024 * 1024) } }
    expect((await post(service.tokens.worker, event)).status).toBe(200)
    expect(hook.mock.calls[0]![1]).toEqual(event)
    const larger = { tool_input: { content: 'x'.repeat(16 * 1024 * 1024) } }
    expect(await post(service.tokens.worker, larger)).toMatchObject({
      status: 413,
      json: { code: 'TOO_LARGE' },
    })
  })

  it('waits as long as a person takes, while others get their answers', async () => {
    const verdict = Promise.withResolvers<unknown>()
    answerHooks((agent) => (agent === 'Worker' ? verdict.promise : Promise.resolve({ at: 'once' })))
    const waiting = post(service.tokens.worker, STOP)
    expect((await post(service.tokens.master, STOP)).json).toEqual({ at: 'once' })
    expect((await service.get('/metrics')).text).toContain('orchub_open_calls{kind="hook"} 1')
    verdict.resolve({ behavior: 'allow' })
    expect((await waiting).json).toEqual({ behavior: 'allow' })
    expect((await service.get('/metrics')).text).toContain('orchub_open_calls{kind="hook"} 0')
  })

  it('tells the session when the program hangs up', async () => {
    const { started } = waitForEver()
    const headers = { authorization: `Bearer ${service.tokens.worker}`, 'content-type': 'application/json' }
    const asked = request({ host: '127.0.0.1', port: service.port, method: 'POST', path: '/hooks', headers })
    asked.on('error', () => {})
    asked.end(JSON.stringify(STOP))
    const gone = await started
    expect(gone.aborted).toBe(false)
    asked.destroy()
    await vi.waitFor(() => expect(gone.aborted).toBe(true))
  })

  it('ends at once when the token is revoked', async () => {
    const { id, token } = await service.tokenBook.mint('Worker')
    const { started } = waitForEver()
    const waiting = post(token, STOP)
    await started
    await service.tokenBook.revoke(id)
    expect(await waiting).toMatchObject({ status: 401, json: { code: 'UNAUTHENTICATED' } })
  })

  it('ends at once when the service stops', async () => {
    const { started } = waitForEver()
    const waiting = post(service.tokens.worker, STOP)
    const gone = await started
    await service.http.close()
    expect(await waiting).toMatchObject({ status: 503, json: { code: 'SERVICE_STOPPING' } })
    expect(gone.aborted).toBe(true)
  })

  it('refuses the operator, who is not an agent', async () => {
    const hook = answerHooks(async () => undefined)
    const reply = await post(service.tokens.operator, STOP)
    expect(reply).toMatchObject({ status: 403, json: { code: 'FORBIDDEN' } })
    expect(reply.json.message).toContain('the operator is not an agent')
    expect(hook).not.toHaveBeenCalled()
  })

  it('refuses a body that is not JSON', async () => {
    answerHooks(async () => undefined)
    expect((await post(service.tokens.worker, 'Stop!')).json).toMatchObject({ code: 'INVALID_REQUEST' })
  })

  it('reports an agent that is not run here', async () => {
    const reply = await post(service.tokens.worker, STOP)
    expect(reply).toMatchObject({ status: 409, json: { code: 'CONFLICT' } })
  })
})
