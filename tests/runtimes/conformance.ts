/** The contract of every runtime; each runs this suite with an agent that follows the instructions in its turns. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AgentStart, Runtime, Session, Turn } from '../../src/runtimes/runtime.ts'
import { createRecordingPort, type RecordingPort } from '../fakes/recording-port.ts'

export interface RuntimeFixture {
  readonly runtime: Runtime
  /** Prints the text after `say ` in a turn, and works for the time in `work MS`. */
  agent(over?: Partial<AgentStart>): AgentStart
  /** Settings that are wrong, and the path of the mistake inside them. */
  readonly wrong: { settings: unknown; path: (string | number)[] }
  /** Settings of an agent whose program is not installed. */
  readonly missing?: unknown
  /** Settings of an agent that ends at once, and its last output. */
  readonly endsAtOnce?: { settings: unknown; lastWords: string }
  /** Restarts the service: another runtime on the same tmux server. */
  reopen?(): Promise<Runtime>
  /** Processes that the agent left running. */
  leftovers?(): Promise<readonly number[]>
  close(): Promise<void>
}

export function turnOf(id: string, body: string): Turn {
  return {
    ids: [id],
    text: [
      `[ORCHUB MESSAGE ${id}]`,
      'From: Bob',
      'Title: a task',
      'Priority: normal',
      '',
      body,
      '',
      `[END ORCHUB MESSAGE ${id}]`,
    ].join('\n'),
  }
}

export function describeRuntime(name: string, open: () => Promise<RuntimeFixture>) {
  describe(`the runtime ${name}`, () => {
    let fixture: RuntimeFixture
    let port: RecordingPort
    const sessions: Session[] = []

    beforeEach(async () => {
      fixture = await open()
      port = createRecordingPort()
    })
    afterEach(async () => {
      await Promise.all(sessions.splice(0).map((session) => session.stop().catch(() => {})))
      await fixture.close()
    })

    async function start(over: Partial<AgentStart> = {}, runtime = fixture.runtime): Promise<Session> {
      const session = await runtime.start(fixture.agent(over), port)
      sessions.push(session)
      return session
    }

    it('starts an agent that becomes idle (S1.3)', async () => {
      const session = await start()
      await port.untilState('idle')
      expect(session.state).toBe('idle')
    })

    it("delivers a turn and reports the agent's answer (S1.2, C27)", async () => {
      const session = await start()
      await port.untilState('idle')
      const arrival = await session.deliver(turnOf('msg_7', 'say the answer is 42'))
      expect(['submitted', 'read']).toContain(arrival.state)
      expect(arrival.evidence).not.toBe('')
      await port.until(() => port.text().includes('the answer is 42'))
    })

    it('delivers each turn once and in order (C25)', async () => {
      const session = await start()
      await port.untilState('idle')
      for (const number of [1, 2, 3]) {
        await session.deliver(turnOf(`msg_${number}`, `say answer-${number}-only`))
        await port.until(() => port.text().includes(`\nanswer-${number}-only`))
        await port.until(() => session.state === 'idle')
      }
      const answers = [...port.text().matchAll(/^answer-(\d)-only$/gm)].map(([, number]) => number)
      expect(answers).toEqual(['1', '2', '3'])
    })

    it('knows that a message was never delivered, or reports that it is unknown (C25)', async () => {
      const session = await start()
      await port.untilState('idle')
      const fixtures = await session.locate(['msg_404', 'msg_405'])
      expect(fixtures).toHaveLength(2)
      for (const { at } of fixtures) expect(['absent', 'unknown']).toContain(at)
    })

    it('shows a notice without ending the turn or failing (C2)', async () => {
      const session = await start()
      await port.untilState('idle')
      await session.notice('[ORCHUB NOTICE] something waits')
      expect(session.state).not.toBe('exited')
    })

    it('reports a turn as stopped only if it was (C2)', async () => {
      const session = await start()
      await port.untilState('idle')
      const delivery = session.deliver(turnOf('msg_1', 'work 1500'))
      await port.untilState('busy')
      const { stopped, evidence } = await session.interrupt()
      expect(evidence).not.toBe('')
      expect(session.state === 'busy').toBe(!stopped)
      await delivery
    })

    it('stops an agent without leaving a process (C15)', async () => {
      const session = await start()
      await port.untilState('idle')
      await session.stop()
      expect(session.state).toBe('exited')
      expect(port.states.at(-1)?.state).toBe('exited')
      expect((await fixture.leftovers?.()) ?? []).toEqual([])
    })

    it('leaves no process of an agent whose start is cancelled at any point (C15)', async () => {
      const reason = new Error('called off')
      await expect(start({ signal: AbortSignal.abort(reason) })).rejects.toThrow('called off')
      for (const ms of [1, 30, 120]) {
        const gone = new AbortController()
        const starting = start({ signal: gone.signal })
        setTimeout(() => gone.abort(reason), ms)
        // A quick one is there before; then it is ended as any other.
        await starting.then(
          (session) => session.stop(),
          (error: unknown) => expect(error).toBe(reason),
        )
        expect((await fixture.leftovers?.()) ?? []).toEqual([])
      }
    })

    it('does not deliver a turn to a stopped agent (C27)', async () => {
      const session = await start()
      await port.untilState('idle')
      await session.stop()
      const arrival = await session.deliver(turnOf('msg_1', 'say hello'))
      expect(arrival.state).toBe('queued')
    })

    it('runs several agents side by side', async () => {
      const ports = [createRecordingPort(), createRecordingPort(), createRecordingPort()]
      const team = await Promise.all(
        ports.map((each, number) => fixture.runtime.start(fixture.agent({ name: `agent${number}` }), each)),
      )
      sessions.push(...team)
      await Promise.all(ports.map((each) => each.untilState('idle')))
      await Promise.all(team.map((session, n) => session.deliver(turnOf(`msg_${n}`, `say I am number ${n}`))))
      for (const [n, each] of ports.entries()) {
        await each.until(() => each.text().includes(`I am number ${n}`))
        expect(each.text()).not.toContain(`I am number ${(n + 1) % 3}`)
      }
    })

    it('names the place of a mistake in the settings', () => {
      const agent = fixture.agent({ settings: fixture.wrong.settings })
      const problems = fixture.runtime.check(agent)
      expect(problems.map((problem) => problem.path)).toContainEqual(fixture.wrong.path)
      expect(problems.every((problem) => problem.hint !== '' && problem.message !== '')).toBe(true)
      expect(fixture.runtime.check(fixture.agent())).toEqual([])
    })

    it('says so when the program is not installed', async ({ skip }) => {
      if (fixture.missing === undefined) return skip()
      await expect(start({ settings: fixture.missing })).rejects.toMatchObject({
        code: 'PROGRAM_MISSING',
        hint: expect.stringMatching(/\w/),
      })
    })

    it('reports how an agent ended that ends at once', async ({ skip }) => {
      if (fixture.endsAtOnce === undefined) return skip()
      const { settings, lastWords } = fixture.endsAtOnce
      let told: string
      try {
        await start({ settings })
        await port.untilState('exited')
        told = port.states.at(-1)!.evidence
      } catch (error) {
        told = (error as Error).message
      }
      expect(told).toContain(lastWords)
    })

    it('reattaches to an agent that outlived the service, without a new token (C25)', async ({ skip }) => {
      if (fixture.reopen === undefined) return skip()
      const session = await start()
      await port.untilState('idle')
      await session.leave()
      await fixture.runtime.close?.()
      sessions.length = 0
      const again = await fixture.reopen()
      const { savedState } = port
      port = createRecordingPort()
      const found = await start(
        { savedState, credentials: () => Promise.reject(new Error('not asked for')) },
        again,
      )
      await port.untilState('idle')
      await found.deliver(turnOf('msg_9', 'say still here'))
      await port.until(() => port.text().includes('still here'))
    })
  })
}
